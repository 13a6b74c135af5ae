"""Self-play: in a share of the games, opponents from a pool play one side, as if they were part of the environment."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from typing_extensions import override

from pufferlib import registry
from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.settings.config import Config
from pufferlib.training.callbacks import Callback, TrainerView
from pufferlib.training.distributed.ranks import ALONE, Ranks
from pufferlib.training.opponent_pool import OpponentPool
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import Transitions, VectorWrapper

__all__ = ["GameResults", "Opponents", "SelfPlay", "check_two_sides", "first_side_scores", "games_of"]


class Opponents(VectorWrapper):
    """Games in which opponents act for the agents of one side.

    Masks are False for the agents of an opponent, so the policy does not learn from them.

    The sides of a game are the first and the second half of its agents. The opponent is drawn when a game starts, and
    stays until the game is over. After ``reset``, the first episode of each game has no opponent.

    Args:
        vecenv: Games with two sides, in whole batches, with autoreset "same_step".
        pool: Opponent pool.
        policy: Network like the networks of the opponents.
        seed: Seed for the opponents' actions.

    Attributes:
        pool: Opponent pool.
        numbers: Number of each game's opponent in the pool, int64 ``(games,)``. -1 if the policy plays both sides.
        sides: Side of each game's opponent, 0 or 1, int64 ``(games,)``.
        masks: True for agents that are present and for which the policy acts, bool ``(num_agents,)``.
    """

    def __init__(self, vecenv: AnyVectorEnv, pool: OpponentPool, policy: Policy, seed: int) -> None:
        super().__init__(vecenv)
        self.pool = pool
        games, rows = games_of(vecenv), int(vecenv.num_agents)
        self._shape = (games, rows // games)
        self.numbers = np.full(games, -1)
        self.sides = np.zeros(games, np.int64)
        self._frozen = np.zeros(self._shape, bool)  # agents for which the opponent acts
        self._results = GameResults(*self._shape)
        self.masks = np.ones(rows, bool)
        self._memory = policy.initial_state(rows)
        self._generator = torch.Generator().manual_seed(seed)
        self._rows: dict[int, npt.NDArray[np.int64]] | None = None  # rows of each opponent, or None if unknown
        self._observations: Array
        self._restarts_all = True

    def end_rollout(self, policy: Policy, updates: int, ranks: Ranks = ALONE) -> dict[str, float]:
        """Add ``policy`` to the pool if a snapshot is due or the pool is empty, and draw opponents for the next games.

        Args:
            policy: Policy that learns.
            updates: Number of updates of its run so far.
            ranks: Processes that train the policy together. All of their games count in the ratings.

        Returns:
            Metrics of the pool.
        """
        metrics = self.pool.pop_metrics(ranks) if self.pool.members else {}
        if not self.pool.members or updates % self.pool.config.snapshot_interval == 0:
            self.pool.add(policy, updates)
        self.pool.draw()
        self.pool.forget(set(self.numbers.tolist()))
        return metrics

    def pool_state(self) -> dict[str, Any]:
        """Return the pool and the state of the random number generator, for the checkpoint of a run."""
        return {**self.pool.state_dict(), "actions": self._generator.get_state()}

    def load_pool_state(self, state: Mapping[str, Any], policy: Policy) -> None:
        """Restore ``pool_state``. ``policy`` is a network like the networks of the opponents."""
        self.pool.load_state_dict(state, policy)
        self._generator.set_state(state["actions"].cpu())

    @override
    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        self._restarts_all = others.get("env_ids") is None
        return super().reset(seed, **others)

    @override
    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        self._restarts_all = True
        super().async_reset(seed, *options, **more)

    @override
    def transform(self, transitions: Transitions) -> None:
        """Count the results of games that are over, draw opponents for new games, and mask the opponents' agents."""
        if self._restarts_all:
            self._assign_opponents(np.arange(self._shape[0]), np.full(self._shape[0], -1))
            self._restarts_all = False
        elif transitions.reset_rows is not None:
            games = np.flatnonzero(transitions.reset_rows.reshape(self._shape).any(1))
            self._assign_opponents(games, np.full(len(games), -1))
        elif transitions.any_ended:
            self._end(transitions)
        self._results.see(transitions.masks)
        np.logical_and(transitions.masks, ~self._frozen.ravel(), out=self.masks)
        transitions.masks = self.masks
        self._observations = transitions.observations

    @override
    def transform_actions(self, actions: Any) -> Any:
        """Replace the actions of the opponents' agents by the opponents' choices."""
        if self._rows is None:
            self._rows = self._find_rows()
        if not self._rows:
            return actions
        chosen = np.array(actions)
        for number, rows in self._rows.items():
            opponent = self.pool[number]
            index = torch.from_numpy(rows)
            state = {name: memory[index].to(opponent.device) for name, memory in self._memory.items()}
            chosen[rows] = opponent.act(self._observations[rows], state, self._generator)
            for name, memory in state.items():
                self._memory[name][index] = memory.cpu()
        return chosen

    def _episode_arrays(self) -> dict[str, Array]:
        self._rows = None  # the caller may write to the arrays, so the rows must be computed again
        memory = {f"memory.{name}": memory.numpy() for name, memory in self._memory.items()}
        return {
            "numbers": self.numbers,
            "sides": self.sides,
            "frozen": self._frozen,
            **self._results.arrays(),
            "masks": self.masks,
            **memory,
        }

    def _end(self, transitions: Transitions) -> None:
        """Record the agents that ended. Count the results of games that are over, and start the next games."""
        games, scores = self._results.end(transitions.rewards, transitions.terminals, transitions.truncations)
        for number, side, score in zip(self.numbers[games], self.sides[games], scores, strict=True):
            if number >= 0:
                self.pool.record(int(number), float(score if side == 1 else 1 - score))
        self._assign_opponents(games, self.pool.assign(len(games)))

    def _assign_opponents(self, games: npt.NDArray[np.int64], numbers: npt.NDArray[np.int64]) -> None:
        """Start ``games`` with the opponents of these ``numbers``, each on a random side."""
        self.numbers[games] = numbers
        self.sides[games] = 0
        faced = games[numbers >= 0]
        self.sides[faced] = self.pool.random.integers(0, 2, len(faced))
        sides = np.repeat([0, 1], self._shape[1] // 2)
        self._frozen[games] = (sides == self.sides[games, None]) & (numbers >= 0)[:, None]
        self._results.begin(games)
        for memory in self._memory.values():
            memory.view(*self._shape, *memory.shape[1:])[torch.from_numpy(games)] = 0
        self._rows = None

    def _find_rows(self) -> dict[int, npt.NDArray[np.int64]]:
        numbers = np.where(self._frozen, self.numbers[:, None], -1).ravel()
        return {int(number): np.flatnonzero(numbers == number) for number in np.unique(numbers) if number >= 0}


class SelfPlay(Callback):
    """Callback that adds opponents from a pool to the games, as ``selfplay.*`` of the settings asks.

    It adds metrics to each update: ``selfplay/elo`` and ``selfplay/pool`` (number of opponents) and, if games against
    them ended, ``selfplay/games``, ``selfplay/win_rate``, ``selfplay/draw_rate``, ``selfplay/win_rate_oldest`` and
    ``selfplay/win_rate_newest``.

    Attributes:
        opponents: Environments with opponents. Available once the trainer is built.

    Args:
        config: Settings of this rank.

    Raises:
        APIUsageError: The settings exclude each other.
    """

    every_rank = True
    opponents: Opponents

    def __init__(self, config: Config) -> None:
        if config.train.restart_share:
            raise APIUsageError(
                "selfplay.opponents and train.restart_share exclude each other, because the result of a game that "
                "starts in the middle does not count; set one of them to 0"
            )
        self._config = config
        self._metrics: dict[str, float] = {}

    @override
    def wrap_envs(self, vecenv: AnyVectorEnv, policy: Policy) -> Opponents:
        config = self._config
        check_two_sides("selfplay.opponents", config.env_name, vecenv)
        pool = OpponentPool(config.selfplay, config.train.seed)
        self._policy, self.opponents = policy, Opponents(vecenv, pool, policy, config.train.seed)
        return self.opponents

    @override
    def on_rollout_end(self, trainer: TrainerView) -> None:
        self._metrics = self.opponents.end_rollout(trainer.policy, trainer.updates, trainer.ranks)

    @override
    def on_update_end(self, trainer: TrainerView, metrics: dict[str, float]) -> None:
        metrics |= self._metrics

    @override
    def state_dict(self) -> dict[str, Any]:
        return self.opponents.pool_state()

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.opponents.load_pool_state(state, self._policy)


Games = npt.NDArray[np.int64]


def check_two_sides(where: str, env_name: str, vecenv: AnyVectorEnv) -> None:
    """Raise APIUsageError unless a game has two sides of agents that end together, in whole batches."""
    agents = vecenv.num_agents // games_of(vecenv)
    if agents % 2:
        keywords = registry.both_sides(env_name)
        flags = " ".join(f"--env.{name.replace('_', '-')} {value}" for name, value in keywords.items())
        remedy = (
            f"add {flags}" if keywords else "choose an environment with two agents, or with two teams of equal size"
        )
        raise APIUsageError(
            f"{where}: both sides of a game must be agents, got {agents} in each game of {env_name}; {remedy}"
        )
    if getattr(vecenv.driver_env, "agents_end", False):
        raise APIUsageError(
            f"{where}: the agents of a game must begin and end together, got agents of {env_name} that end one by one; "
            "choose another environment"
        )
    if vecenv.agents_per_batch != vecenv.num_agents or vecenv.autoreset != AutoresetMode.SAME_STEP:
        raise APIUsageError(
            f"{where}: batches must be whole and begin new episodes in the same step, got {vecenv.agents_per_batch} of "
            f"{vecenv.num_agents} agents and autoreset={vecenv.autoreset!r}; leave out vec.batch_size, "
            "train.overlap 'envs' and env.autoreset"
        )


def games_of(vecenv: AnyVectorEnv) -> int:
    """Return the number of games in a batch. One environment object may contain several games."""
    driver = vecenv.driver_env
    agents = driver.num_agents // (1 if driver.emulated else getattr(driver, "num_envs", 1))
    return int(vecenv.num_agents // agents)


def first_side_scores(
    rewards: npt.NDArray[np.float32], cut_off: npt.NDArray[np.bool_], sides: int = 2
) -> npt.NDArray[np.float64]:
    """Return the scores of the first side in games that are over: 1 for a win, 0.5 for a draw, 0 for a loss.

    The side with the greater reward at the end has won, because games pay their result there. Truncated games, and
    games with equal rewards, are draws.

    Args:
        rewards: Reward of each agent in the last step of its episode, ``(games, agents of a game)``. The sides are the
            first and the second half of the agents.
        cut_off: Whether each game was truncated, ``(games,)``.
        sides: Number of sides. 1 if all agents are one side, against an opponent of the environment.
    """
    size = rewards.shape[1] // sides
    lead = rewards[:, :size].sum(1) - rewards[:, size:].sum(1)
    return np.asarray(np.where(cut_off, 0.5, (np.sign(lead) + 1) / 2))


class GameResults:
    """Record of the games of a batch, their progress and scores.

    Args:
        games: Number of games.
        agents: Number of agents in each game.
        sides: Number of sides, as in ``first_side_scores``.
    """

    def __init__(self, games: int, agents: int, sides: int = 2) -> None:
        self._shape, self._sides = (games, agents), sides
        self._seen = np.zeros(self._shape, bool)  # agents that were present at some time in their game
        self._over = np.zeros(self._shape, bool)  # agents whose episode has ended, in games that continue
        self._cut_off = np.zeros(games, bool)
        self._rewards = np.zeros(self._shape, np.float32)  # reward of each agent's last step

    def begin(self, games: Games | slice) -> None:
        """Start ``games``."""
        self._seen[games] = self._over[games] = self._cut_off[games] = False

    def see(self, masks: npt.NDArray[np.bool_]) -> None:
        """Record which agents are present, ``(num_agents,)``."""
        self._seen |= masks.reshape(self._shape)

    def end(
        self,
        rewards: npt.NDArray[np.float32],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
    ) -> tuple[Games, npt.NDArray[np.float64]]:
        """Record a step in which agents ended. All arguments have shape ``(num_agents,)``.

        Returns:
            Indices of the games that are over, and the scores of their first sides. Their next games start.
        """
        ended = (terminals | truncations).reshape(self._shape)
        self._over |= ended
        np.copyto(self._rewards, rewards.reshape(self._shape), where=ended)
        self._cut_off |= (truncations & ~terminals).reshape(self._shape).any(1)
        games = np.flatnonzero(ended.any(1) & (self._over | ~self._seen).all(1))
        scores = first_side_scores(self._rewards[games], self._cut_off[games], self._sides)
        self.begin(games)
        return games, scores

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that describe the progress of the games. They are not copied."""
        return {"seen": self._seen, "over": self._over, "cut_off": self._cut_off, "last_rewards": self._rewards}
