"""Games with two sides: checks that environments are such games, and the results of games."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib import registry
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError

__all__ = ["GameResults", "check_two_sides", "first_side_scores", "games_of"]

Games = npt.NDArray[np.int64]


def check_two_sides(where: str, env_name: str, vecenv: Any) -> None:
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


def games_of(vecenv: Any) -> int:
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
