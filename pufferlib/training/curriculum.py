"""Curriculum of states: a share of the episodes starts in states where much is left to learn.

Sources: Ecoffet et al., "First return, then explore" (2021), for returning to states of earlier episodes.
Jiang et al., "Prioritized Level Replay" (2021), for the size of advantages as a measure of what is left to learn.
"""

import contextlib
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.ocean import OceanEnv
from pufferlib.seeding import env_seed
from pufferlib.settings.config import TrainConfig
from pufferlib.training.advantage import generalized_advantage
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import Transitions, VectorWrapper

__all__ = ["RestartedGames", "StateCurriculum"]

STREAM = 2**31 - 1  # stream of random numbers, an index that no environment has
CANDIDATES_SHARE = 4  # each rollout saves a quarter as many new states as are kept
FADING = 0.9  # factor of each priority per update, because surprising states are learned over time


class _Candidate(NamedTuple):
    """State that was saved in a rollout or is kept. ``priority`` is the mean absolute advantage of its agents."""

    game: int
    step: int
    state: bytes
    priority: float


class _Restartable(Protocol):
    """Environments of a batch, by index, with the operations that a curriculum needs."""

    count: int
    is_partial: npt.NDArray[np.bool_]  # whether the running episode started in the middle

    def save(self, game: int) -> bytes:
        """Return the state of an environment."""

    def restart(self, games: list[int], state: bytes) -> Array:
        """Start the next episodes of ``games`` in ``state``, uncounted. Return the observations of the batch."""

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        """Return the infos except those of episodes that started in the middle. ``ended`` marks episodes just ended."""


class RestartedGames(VectorWrapper):
    """Environments in which a share of the episodes starts in the middle of an earlier one.

    In each rollout a few states are saved at random. The states whose actions had the largest absolute advantages are
    kept. When episodes end, a share of the environments restarts from one of these states, drawn at random.

    Args:
        vecenv: Environments in C or emulated ones, in whole batches with autoreset "same_step" and without wrappers.
        games: Environments of the batch.
        config: Settings, of which ``restart_share``, ``restart_states`` and ``seed`` are read.

    Attributes:
        horizon: Number of steps of a rollout.
    """

    def __init__(self, vecenv: AnyVectorEnv, games: _Restartable, config: TrainConfig) -> None:
        super().__init__(vecenv)
        self._resets = True  # whether the next batch comes from a reset
        self._games, self._config = games, config
        self._random = np.random.default_rng(env_seed(config.seed, STREAM))
        self._kept: list[_Candidate] = []
        self._found: list[_Candidate] = []
        self._due: dict[int, list[int]] = {}  # environments whose state is to be saved, by step of the rollout
        self.begin(0)

    def begin(self, horizon: int) -> None:
        """Start a rollout of ``horizon`` steps with the next step."""
        self.horizon = self._step = horizon

    @override
    def transform_actions(self, actions: Any) -> Any:
        """Save the states that were drawn for this step of the rollout, before any agent acts."""
        if self._step == self.horizon:
            self._begin_rollout()
        for game in self._due.get(self._step, ()):
            self._found.append(_Candidate(game, self._step, self._games.save(game), 0.0))
        self._step += 1
        return actions

    @override
    def transform(self, transitions: Transitions) -> None:
        """Drop reports of episodes that started in the middle, and restart environments whose episodes have ended."""
        if self._resets:
            self._games.is_partial[:] = self._resets = False
            return
        if transitions.reset_rows is not None:
            self._games.is_partial[self._by_env(transitions.reset_rows).any(axis=1)] = False
            return
        # The agents of a game may end one by one. It is over when the last of those that acted end.
        stays = np.zeros_like(transitions.ended) if transitions.acted is None else ~transitions.acted
        each_ended = self._by_env(transitions.ended)
        ended = np.asarray(each_ended.any(axis=1) & (each_ended | self._by_env(stays)).all(axis=1))
        transitions.infos = self._games.counted(transitions.infos, ended)
        # Loading a state overwrites rewards and ends.
        outcome = transitions.rewards.copy(), transitions.terminals.copy(), transitions.truncations.copy()
        if (observations := self.restart(ended)) is not None:
            transitions.observations = observations
            transitions.rewards, transitions.terminals, transitions.truncations = outcome

    @override
    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        self._resets = others.get("env_ids") is None
        return super().reset(seed, **others)

    @override
    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        self._resets = True
        super().async_reset(seed, *options, **more)

    def _begin_rollout(self) -> None:
        """Draw the environments and steps whose states are saved in the next rollout."""
        count = -(-self._config.restart_states // CANDIDATES_SHARE)
        self._step, self._found, self._due = 0, [], {}
        for step, game in self._random.integers(0, (self.horizon, self._games.count), (count, 2)).tolist():
            self._due.setdefault(step, []).append(game)

    def restart(self, ended: npt.NDArray[np.bool_]) -> Array | None:
        """Start the next episodes of a share of the environments in kept states.

        Args:
            ended: Environments whose episodes have just ended, bool ``(environments,)``.

        Returns:
            Observations of the batch, or None if no environment was restarted.
        """
        if not self._kept or not ended.any():
            return None
        games = np.flatnonzero(ended)
        games = games[self._random.random(len(games)) < self._config.restart_share]
        chosen = self._random.integers(len(self._kept), size=len(games))
        observations = None
        for state in np.unique(chosen).tolist():
            observations = self._games.restart(games[chosen == state].tolist(), self._kept[state].state)
        return observations

    def learn(self, advantages: Tensor) -> None:
        """Keep the states of the rollout whose actions had the largest absolute advantages.

        Args:
            advantages: Advantages, float32 ``(horizon, num_agents)``.
        """
        sizes = self._by_env(advantages.abs().T.cpu().numpy()).mean(1).T  # (horizon, games)
        found = [one._replace(priority=float(sizes[one.step, one.game])) for one in self._found]
        kept = [one._replace(priority=one.priority * FADING) for one in self._kept]
        self._kept = sorted(kept + found, key=lambda one: -one.priority)[: self._config.restart_states]

    def kept_states(self) -> dict[str, Any]:
        """Return the kept states and the random number generator's state, for the checkpoint of a run."""
        states = [torch.from_numpy(np.frombuffer(one.state, np.uint8).copy()) for one in self._kept]
        priorities = [one.priority for one in self._kept]
        return {"states": states, "priorities": priorities, "generator": self._random.bit_generator.state}

    def load_kept_states(self, saved: Mapping[str, Any]) -> None:
        """Restore the result of ``kept_states``. Warn and keep no states if the environments cannot load them.

        The environments must have been reset, and must be reset again afterwards.
        """
        self._random.bit_generator.state = saved["generator"]
        states = [state.cpu().numpy().tobytes() for state in saved["states"]]
        pairs = zip(states, saved["priorities"], strict=True)
        self._kept = []
        try:
            for state in states[:1]:  # all of them were saved by the same code
                self._games.restart([0], state)
        except APIUsageError as error:
            warnings.warn(f"train.restart_share starts without the states of the checkpoint: {error}", stacklevel=2)
            return
        self._kept = [_Candidate(0, 0, state, priority) for state, priority in pairs]

    def _episode_arrays(self) -> dict[str, Array]:
        return {"partial": self._games.is_partial}

    def _by_env(self, agents: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Reshape ``(num_agents, ...)`` to ``(environments, agents per environment, ...)``."""
        return agents.reshape(self._games.count, -1, *agents.shape[1:])


class StateCurriculum(Callback):
    """Callback that starts a share of the episodes in states of large advantages, as ``train.restart_share`` says.

    Args:
        config: Settings of this rank.
    """

    every_rank = True
    games: RestartedGames

    def __init__(self, config: TrainConfig) -> None:
        self._config = config

    @override
    def wrap_envs(self, vecenv: AnyVectorEnv, policy: Policy) -> RestartedGames:
        """Wrap the environments.

        Raises:
            APIUsageError: Single environments of the batch cannot be restarted.
        """
        _check_restartable(vecenv, self._config)
        games: _Restartable = _CEnvs(vecenv) if isinstance(vecenv, OceanEnv) else _EmulatedEnvs(vecenv)
        self.games = RestartedGames(vecenv, games, self._config)
        return self.games

    @override
    def on_training_start(self, trainer: TrainerView) -> None:
        self.games.begin(trainer.config.train.horizon)

    @override
    def on_rollout_end(self, trainer: TrainerView) -> None:
        rollout, config = trainer.rollout, trainer.config.train
        self.games.learn(
            generalized_advantage(
                rollout.rewards, rollout.values, rollout.episode_ends, config.gamma, config.gae_lambda
            )
        )

    @override
    def state_dict(self) -> dict[str, Any]:
        return self.games.kept_states()

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.games.load_kept_states(state)


def _check_restartable(vecenv: Any, config: TrainConfig) -> None:
    """Raise APIUsageError unless single environments of a batch can be restarted."""
    if config.overlap == "learning" or isinstance(vecenv, VectorWrapper):
        raise APIUsageError(
            "train.restart_share works without overlapped learning and without wrappers around the environments, "
            f"got train.overlap {config.overlap!r} and {type(vecenv).__name__}; leave out train.overlap, "
            "train.normalize_observations and train.normalize_rewards"
        )
    if vecenv.agents_per_batch != vecenv.num_agents or vecenv.autoreset != AutoresetMode.SAME_STEP:
        raise APIUsageError(
            "train.restart_share: batches must contain all agents and autoreset must be 'same_step', got "
            f"{vecenv.agents_per_batch} of {vecenv.num_agents} agents and autoreset={vecenv.autoreset!r}; leave out "
            "vec.batch_size and autoreset"
        )
    if getattr(vecenv.driver_env, "agents_end", False):
        raise APIUsageError(
            "train.restart_share: the agents of an environment must start and end episodes together, got agents that "
            "end one by one; leave it out"
        )
    if not isinstance(vecenv, OceanEnv) and not vecenv.emulated:
        raise APIUsageError(
            "train.restart_share needs a C environment with vec.backend native, or an environment of Gymnasium or "
            f"PettingZoo, got {type(vecenv).__name__}; leave it out"
        )


class _CEnvs:
    """C environments, which drop reports of episodes that started in the middle by themselves."""

    def __init__(self, env: OceanEnv) -> None:
        self._env, self.count = env, env.num_envs
        self.is_partial = np.zeros(self.count, bool)

    def save(self, game: int) -> bytes:
        return self._env.save_state(game)

    def restart(self, games: list[int], state: bytes) -> Array:
        return self._env.restart_from(state, games)

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        return infos


class _EmulatedEnvs:
    """Emulated environments of a batch. Each info is about an episode that ends."""

    def __init__(self, vecenv: Any) -> None:
        self._vecenv, self.count = vecenv, vecenv.num_envs
        self.is_partial = np.zeros(self.count, bool)

    def save(self, game: int) -> bytes:
        try:
            state: bytes = self._vecenv.save_state(game, allow_pickle=False)[0]
        except APIUsageError as error:
            raise APIUsageError(f"train.restart_share: states must be plain data, or leave it out: {error}") from error
        return state

    def restart(self, games: list[int], state: bytes) -> Array:
        vecenv, generators = self._vecenv, None
        each = vecenv.num_agents // self.count
        rows = (np.array(games)[:, None] * each + np.arange(each)).ravel()
        final = vecenv.final_observations[rows]  # a copy, because the state has those of another episode
        with contextlib.suppress(AttributeError):  # an environment of PettingZoo may have none
            generators = vecenv.get_attr("np_random", games)
        observations: Array = vecenv.load_state([state] * len(games), games)
        vecenv.final_observations[rows] = final
        if generators is not None:  # continue the random streams, so that games in one state do not play alike
            vecenv.set_attr("np_random", generators, games)
        self.is_partial[games] = True
        return observations

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        if not self.is_partial.any():
            return infos
        sources = self._vecenv.info_sources
        found = [info for info, of in zip(infos, sources, strict=True) if not self.is_partial[of.env_id]]
        self.is_partial &= ~ended
        return found
