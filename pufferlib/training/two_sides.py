"""Games of two sides: whether the agents of a batch play such, and how each game ends."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib import registry
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError

__all__ = ["GameResults", "check_two_sides", "first_side_scores", "games_of"]

Games = npt.NDArray[np.int64]


def check_two_sides(where: str, env_name: str, vecenv: Any) -> None:
    """Raise APIUsageError unless the agents of a game are two sides, which end together, in whole batches."""
    agents = vecenv.num_agents // games_of(vecenv)
    if agents % 2:
        keywords = registry.both_sides(env_name)
        flags = " ".join(f"--env.{name.replace('_', '-')} {value}" for name, value in keywords.items())
        remedy = f"add {flags}" if keywords else "choose an environment of two agents, or two teams of equally many"
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
    """Number of games in a batch, several of which may be in one environment object."""
    driver = vecenv.driver_env
    agents = driver.num_agents // (1 if driver.emulated else getattr(driver, "num_envs", 1))
    return int(vecenv.num_agents // agents)


def first_side_scores(
    rewards: npt.NDArray[np.float32], cut_off: npt.NDArray[np.bool_], sides: int = 2
) -> npt.NDArray[np.float64]:
    """Scores of the first side in games that are over: 1 for a win, 0.5 for a draw, 0 for a loss.

    The side with the greater reward at the end has won, since that is where games pay their result; a game that was cut
    off is a draw, and so is one in which both got the same.

    Args:
        rewards: Of each agent in the step that ended its episode, ``(games, agents of a game)``. The sides are the
            first and the second half of them.
        cut_off: Games that were truncated, ``(games,)``.
        sides: 1 where all agents are one side, against an opponent of the environment itself.
    """
    size = rewards.shape[1] // sides
    lead = rewards[:, :size].sum(1) - rewards[:, size:].sum(1)
    return np.asarray(np.where(cut_off, 0.5, (np.sign(lead) + 1) / 2))


class GameResults:
    """Account of the games of a batch: which are over, and with what score.

    Args:
        games: How many there are.
        agents: Of each.
        sides: As ``first_side_scores`` takes it.
    """

    def __init__(self, games: int, agents: int, sides: int = 2) -> None:
        self._shape, self._sides = (games, agents), sides
        self._seen = np.zeros(self._shape, bool)  # agents that were there at some time in their game
        self._over = np.zeros(self._shape, bool)  # agents whose episode has ended, in games that go on
        self._cut_off = np.zeros(games, bool)
        self._rewards = np.zeros(self._shape, np.float32)  # of each agent's last step

    def begin(self, games: Games | slice) -> None:
        """Note that ``games`` begin."""
        self._seen[games] = self._over[games] = self._cut_off[games] = False

    def see(self, masks: npt.NDArray[np.bool_]) -> None:
        """Note who is there, ``(num_agents,)``."""
        self._seen |= masks.reshape(self._shape)

    def end(
        self,
        rewards: npt.NDArray[np.float32],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
    ) -> tuple[Games, npt.NDArray[np.float64]]:
        """Take a step in which agents ended, ``(num_agents,)`` each.

        Returns:
            The games that are over, whose next ones begin; and the scores of their first sides.
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
        """Arrays that say where the games are, as they are used."""
        return {"seen": self._seen, "over": self._over, "cut_off": self._cut_off, "last_rewards": self._rewards}
