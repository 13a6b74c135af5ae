"""A curriculum of states: a share of the episodes begins where much was left to learn.

Sources: Ecoffet and others, "First return, then explore" (2021), for the return to states of the agent's own games;
Jiang and others, "Prioritized Level Replay" (2021), for the size of advantages as a measure of what is left to learn.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.ocean import OceanEnv
from pufferlib.seeding import env_seed
from pufferlib.training.config import TrainConfig
from pufferlib.wrappers.vector import VectorWrapper

__all__ = ["StateCurriculum", "make_curriculum"]

STREAM = 2**31 - 1  # of the random numbers: no environment has this index
CANDIDATES_SHARE = 4  # one of so many states that are kept is looked for in each rollout
FADING = 0.9  # of a priority in each update: what was surprising is learned from


class _Candidate(NamedTuple):
    """A state that was saved in a rollout, or is kept; ``priority`` is the mean size of its agents' advantages."""

    game: int
    step: int
    state: bytes
    priority: float


class _Restartable(Protocol):
    """Games of a batch, by their numbers, as a curriculum needs them."""

    count: int
    is_partial: npt.NDArray[np.bool_]  # the episode that runs began in the middle; read where infos tell of single ones

    def save(self, game: int) -> bytes:
        """The state of a game."""

    def restart(self, games: list[int], state: bytes) -> None:
        """Begin the next episodes of some games in ``state``; they are not counted."""

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        """Leave out the infos about episodes that began in the middle; ``ended`` tells which have just ended."""


class StateCurriculum:
    """Chooses states in the games that are played, and restarts games from them.

    In each rollout a few states are saved, at random. Those whose actions had the largest advantages, either way, are
    kept, and as episodes end, a share of the games goes on from one of them, drawn at random.

    Args:
        games: Those of the batch.
        horizon: Steps of a rollout.
        config: ``restart_share``, ``restart_states`` and ``seed`` are read.
    """

    def __init__(self, games: _Restartable, horizon: int, config: TrainConfig) -> None:
        self._games, self._horizon, self._config = games, horizon, config
        self._generator = np.random.default_rng(env_seed(config.seed, STREAM))
        self._kept: list[_Candidate] = []
        self._found: list[_Candidate] = []
        self._due: dict[int, list[int]] = {}  # games whose state is to be saved, by the steps of the rollout

    def forget_episodes(self) -> None:
        """Note that all games begin new episodes, from their start."""
        self._games.is_partial[:] = False

    def begin_rollout(self) -> None:
        """Draw the games and steps that are looked at in the next rollout."""
        count = -(-self._config.restart_states // CANDIDATES_SHARE)
        self._found, self._due = [], {}
        for step, game in self._generator.integers(0, (self._horizon, self._games.count), (count, 2)).tolist():
            self._due.setdefault(step, []).append(game)

    def look(self, step: int) -> None:
        """Save the states that were drawn for this ``step`` of the rollout, before anybody acts in it."""
        for game in self._due.get(step, ()):
            self._found.append(_Candidate(game, step, self._games.save(game), 0.0))

    def restart(self, ended: npt.NDArray[np.bool_]) -> None:
        """Begin the next episodes of a share of the games in a state that is kept.

        Args:
            ended: Agents whose episode has just ended, bool ``(num_agents,)``.
        """
        if not self._kept:
            return
        games = np.flatnonzero(self._ended(ended))
        if not len(games):
            return
        games = games[self._generator.random(len(games)) < self._config.restart_share]
        chosen = self._generator.integers(len(self._kept), size=len(games))
        for state in np.unique(chosen).tolist():
            self._games.restart(games[chosen == state].tolist(), self._kept[state].state)

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        """Leave out the infos about episodes that began in the middle; ``ended`` as for ``restart``."""
        return self._games.counted(infos, self._ended(ended))

    def learn(self, advantages: Tensor) -> None:
        """Keep the states whose actions had the largest advantages, ``(horizon, num_agents)``, of the rollout."""
        sizes = self._by_game(advantages.abs().T.cpu().numpy()).mean(1).T  # (horizon, games)
        found = [one._replace(priority=float(sizes[one.step, one.game])) for one in self._found]
        kept = [one._replace(priority=one.priority * FADING) for one in self._kept]
        self._kept = sorted(kept + found, key=lambda one: -one.priority)[: self._config.restart_states]

    def state_dict(self) -> dict[str, Any]:
        """Everything that, with the states of the games, decides what will be restarted."""
        states = [torch.from_numpy(np.frombuffer(one.state, np.uint8).copy()) for one in self._kept]
        priorities = [one.priority for one in self._kept]
        marks = torch.from_numpy(self._games.is_partial.copy())
        return {
            "states": states,
            "priorities": priorities,
            "partial": marks,
            "generator": self._generator.bit_generator.state,
        }

    def load_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""
        states = [state.cpu().numpy().tobytes() for state in saved["states"]]
        pairs = zip(states, saved["priorities"], strict=True)
        self._kept = [_Candidate(0, 0, state, priority) for state, priority in pairs]
        self._games.is_partial[:] = saved["partial"].cpu().numpy()
        self._generator.bit_generator.state = saved["generator"]

    def _ended(self, agents: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Games all of whose agents have ended."""
        return np.asarray(self._by_game(agents).all(axis=1))

    def _by_game(self, agents: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """``(num_agents, ...)`` as ``(games, agents of a game, ...)``."""
        return agents.reshape(self._games.count, -1, *agents.shape[1:])


def make_curriculum(vecenv: Any, horizon: int, config: TrainConfig) -> StateCurriculum | None:
    """The curriculum that ``config`` asks for; None where ``restart_share`` is 0.

    Raises:
        APIUsageError: The states of single games cannot be told apart in such a batch, or it shows something else.
    """
    if not config.restart_share:
        return None
    if config.overlap == "learning" or isinstance(vecenv, VectorWrapper):
        raise APIUsageError(
            "train.restart_share: rollouts must be learned from before the next begins, in environments that nothing "
            f"wraps, got train.overlap {config.overlap!r} and {type(vecenv).__name__}; leave out train.overlap, "
            "train.normalize_observations and train.normalize_rewards"
        )
    if vecenv.agents_per_batch != vecenv.num_agents or vecenv.autoreset != "same_step":
        raise APIUsageError(
            "train.restart_share: batches must be whole and begin new episodes in the same step, got "
            f"{vecenv.agents_per_batch} of {vecenv.num_agents} agents and autoreset={vecenv.autoreset!r}; leave out "
            "vec.batch_size and autoreset"
        )
    if getattr(vecenv.driver_env, "agents_end", False):
        raise APIUsageError(
            "train.restart_share: the agents of a game must begin and end together, got agents that end one by one; "
            "leave it out"
        )
    if isinstance(vecenv, OceanEnv):
        return StateCurriculum(_CGames(vecenv), horizon, config)
    if not vecenv.emulated:
        raise APIUsageError(
            "train.restart_share: the environment must be in C with vec.backend native, or of Gymnasium or PettingZoo, "
            f"got {type(vecenv).__name__} of another; leave it out"
        )
    return StateCurriculum(_EmulatedGames(vecenv), horizon, config)


class _CGames:
    """The games of a C environment, whose reports leave out by themselves what began in the middle."""

    def __init__(self, env: OceanEnv) -> None:
        self._env, self.count = env, env.num_envs
        self.is_partial = np.zeros(self.count, bool)

    def save(self, game: int) -> bytes:
        """See ``_Restartable``."""
        return self._env.save_state(game)

    def restart(self, games: list[int], state: bytes) -> None:
        """See ``_Restartable``."""
        self._env.restart_from(state, games)

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        """See ``_Restartable``."""
        return infos


class _EmulatedGames:
    """Emulated environments of a batch, each of which is a game; an info comes as an episode ends."""

    def __init__(self, vecenv: Any) -> None:
        self._vecenv, self.count = vecenv, vecenv.num_envs
        self.is_partial = np.zeros(self.count, bool)

    def save(self, game: int) -> bytes:
        """See ``_Restartable``."""
        try:
            state: bytes = self._vecenv.save_state(game, allow_pickle=False)[0]
        except APIUsageError as error:
            raise APIUsageError(f"train.restart_share: states must be plain data; leave it out, or: {error}") from error
        return state

    def restart(self, games: list[int], state: bytes) -> None:
        """See ``_Restartable``."""
        self._vecenv.load_state([state] * len(games), games)
        self.is_partial[games] = True

    def counted(self, infos: Infos, ended: npt.NDArray[np.bool_]) -> Infos:
        """See ``_Restartable``."""
        if not self.is_partial.any():
            return infos
        sources = self._vecenv.info_sources
        found = [info for info, of in zip(infos, sources, strict=True) if not self.is_partial[of.env_id]]
        self.is_partial &= ~ended
        return found
