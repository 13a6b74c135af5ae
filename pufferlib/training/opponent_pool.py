"""Opponent pool: earlier versions of the policy, with Elo ratings.

Source of the ratings: Elo, "The Rating of Chessplayers, Past and Present" (1978).
"""

import copy
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.models import Policy, State
from pufferlib.models.engine import compile_policy
from pufferlib.seeding import env_seed
from pufferlib.settings.config import SelfplayConfig
from pufferlib.training.distributed.ranks import ALONE, Ranks

__all__ = ["FIRST_RATING", "SCALE", "Opponent", "OpponentPool", "expected_score"]

FIRST_RATING = 1000.0  # rating of an untrained policy
SCALE = 400.0  # difference of ratings at which the stronger player is expected to score ten times as much
LEARNER = -1  # number of the policy that learns
STREAM = 2**31 - 2  # stream of random numbers, an index that no environment has


def expected_score(rating: float | npt.NDArray[np.float64], other: float | npt.NDArray[np.float64]) -> Any:
    r"""Return the expected score (1 for a win, 0.5 for a draw) of a player with rating R against one with rating R'.

    .. math::
        E = 1 / (1 + 10^{(R' - R) / 400})
    """
    return 1 / (1 + 10 ** ((other - rating) / SCALE))


class Opponent:
    """Frozen policy.

    Args:
        number: Number of the opponent, in the order in which opponents joined the pool.
        updates: Number of updates of the run when the policy was frozen.
        rating: Elo rating.
        policy: Policy, which must not change any more. It is on the CPU if the C engine supports it.

    Attributes:
        rating: Current Elo rating.
    """

    def __init__(self, number: int, updates: int, rating: float, policy: Policy) -> None:
        self.number, self.updates, self.rating, self.policy = number, updates, rating, policy
        self._engine = compile_policy(policy)
        if self._engine is not None:
            self._engine.refresh()

    @property
    def device(self) -> torch.device:
        """Device on which the opponent acts."""
        return next(self.policy.parameters()).device

    @torch.inference_mode()
    def act(self, observations: npt.NDArray[Any], state: State, generator: torch.Generator) -> npt.NDArray[np.generic]:
        """Draw an action for each of ``observations (rows, *shape)``.

        ``state``, whose tensors have shape ``(rows, ...)``, is updated in place.
        """
        params = torch.empty(len(observations), self.policy.distribution.num_params)
        if self._engine is None:
            inputs = torch.from_numpy(observations).to(self.device)
            params = self.policy.forward_eval(inputs, state)[0].cpu()
        else:
            self._engine.forward(observations, state, params, torch.empty(len(observations)))
        actions = self.policy.distribution.sample(params, generator)
        return self.policy.distribution.to_env(actions.numpy())


class OpponentPool:
    """Opponents, and the ratings that follow from their games against the policy.

    Args:
        config: Settings of the pool.
        seed: Seed for drawing opponents.

    Attributes:
        config: Settings of the pool.
        rating: Elo rating of the policy that learns.
        random: Random number generator for all draws.
        scores: Opponent number and policy score of each game since the last ``pop_metrics``.
    """

    def __init__(self, config: SelfplayConfig, seed: int) -> None:
        self.rating = FIRST_RATING
        self.random = np.random.default_rng(env_seed(seed, STREAM))
        self.config = config
        self._opponents: dict[int, Opponent] = {}  # by number, including former members until their games are over
        self._members: list[int] = []
        self._playing: list[int] = []
        self._joined = 0
        self._common = {LEARNER: self.rating}  # ratings by number, when all ranks last had the same
        self.scores: list[tuple[int, float]] = []

    def __getitem__(self, number: int) -> Opponent:
        return self._opponents[number]

    @property
    def members(self) -> list[Opponent]:
        """Opponents that can be drawn, oldest first."""
        return [self._opponents[number] for number in self._members]

    def add(self, policy: Policy, updates: int) -> None:
        """Add a frozen copy of ``policy`` after ``updates`` updates, with its current rating.

        If the pool is full, the oldest member leaves.
        """
        self.join(Opponent(self._joined, updates, self.rating, _frozen(policy)))
        self._members = self._members[-self.config.pool_size :]

    def join(self, opponent: Opponent) -> None:
        """Add ``opponent`` to the members."""
        self._opponents[opponent.number] = opponent
        self._common[opponent.number] = opponent.rating
        self._members.append(opponent.number)
        self._joined += 1

    def draw(self) -> None:
        """Choose the opponents for games that start from now on."""
        count = min(self.config.opponents, len(self._members))
        if self.config.draw == "newest":
            self._playing = self._members[-count:]
        else:
            chances = None
            if self.config.draw == "elo":
                ratings = np.array([member.rating for member in self.members])
                chances = expected_score(ratings, self.rating)
                chances = chances / chances.sum()
            self._playing = sorted(self.random.choice(self._members, count, replace=False, p=chances).tolist())

    def assign(self, games: int) -> npt.NDArray[np.int64]:
        """Return the opponent number for each of ``games`` new games. -1 means that the policy plays both sides."""
        if not self._playing:
            return np.full(games, -1)
        faced = self.random.random(games) < self.config.share
        return np.where(faced, self.random.choice(self._playing, games), -1)

    def record(self, number: int, score: float) -> None:
        r"""Record the policy's score in a game against an opponent: 1 for a win, 0.5 for a draw, 0 for a loss.

        The rating of the policy changes as follows, and the opponent's by the same amount in the other direction:

        .. math::
            R \leftarrow R + K (S - E)
        """
        opponent = self._opponents[number]
        points = self.config.elo_k * (score - expected_score(self.rating, opponent.rating))
        self.rating += points
        opponent.rating -= points
        self.scores.append((number, score))

    def forget(self, needed: Collection[int]) -> None:
        """Delete opponents that are no longer members, except those whose numbers are in ``needed``."""
        kept = {*self._members, *self._playing, *needed}
        self._opponents = {number: each for number, each in self._opponents.items() if number in kept}
        self._common = {number: each for number, each in self._common.items() if number in {LEARNER, *kept}}

    def pop_metrics(self, ranks: Ranks = ALONE) -> dict[str, float]:
        """Return the ratings, and the results since the last call, as ``selfplay/<name>``.

        Args:
            ranks: Processes with the same members. The games of all ranks count from now on.
        """
        if ranks.size > 1:
            self._merge(ranks)
        else:
            self._common = self._ratings()  # otherwise resumed ranks would each count these games again
        metrics = {"selfplay/elo": self.rating, "selfplay/pool": float(len(self._members))}
        numbers, scores = np.array([number for number, _ in self.scores]), np.array([s for _, s in self.scores])
        self.scores = []
        if len(scores):
            metrics["selfplay/games"] = float(len(scores))
            metrics["selfplay/win_rate"] = float(np.mean(scores == 1))
            metrics["selfplay/draw_rate"] = float(np.mean(scores == 0.5))
            for name, number in (("oldest", self._members[0]), ("newest", self._members[-1])):
                if np.any(numbers == number):
                    metrics[f"selfplay/win_rate_{name}"] = float(np.mean(scores[numbers == number] == 1))
        return metrics

    def _merge(self, ranks: Ranks) -> None:
        """Merge the results of all ranks, and change the ratings by the sum of their changes."""
        now = self._ratings()
        moves = {number: rating - self._common[number] for number, rating in now.items()}
        found = ranks.gather((moves, self.scores))
        for number in now:
            self._common[number] += sum(theirs.get(number, 0.0) for theirs, _ in found)
        self.rating = self._common[LEARNER]
        for number, opponent in self._opponents.items():
            opponent.rating = self._common[number]
        self.scores = [score for _, scores in found for score in scores]

    def _ratings(self) -> dict[int, float]:
        """Return the ratings by number, including the policy that learns."""
        return {LEARNER: self.rating, **{number: each.rating for number, each in self._opponents.items()}}

    def state_dict(self) -> dict[str, Any]:
        """Return the weights, ratings, results and the state of the random number generator."""
        return {
            "opponents": [
                {
                    "number": each.number,
                    "updates": each.updates,
                    "rating": each.rating,
                    "weights": dict(each.policy.state_dict()),
                }
                for each in self._opponents.values()
            ],
            "members": self._members,
            "playing": self._playing,
            "joined": self._joined,
            "rating": self.rating,
            "common": self._common,
            "scores": self.scores,
            "random": self.random.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any], policy: Policy) -> None:
        """Restore ``state_dict``.

        Args:
            state: Saved state.
            policy: Network like the networks of the opponents.
        """
        self._opponents = {}
        for saved in state["opponents"]:
            twin = _frozen(policy)
            twin.load_state_dict(saved["weights"])
            self.join(Opponent(saved["number"], saved["updates"], saved["rating"], twin))
        self._members, self._playing = list(state["members"]), list(state["playing"])
        self._joined, self.rating = state["joined"], state["rating"]
        # Checkpoints of earlier versions lack this key.
        self._common = dict(state.get("common", {**self._common, LEARNER: self.rating}))
        self.scores = [(number, score) for number, score in state["scores"]]
        self.random.bit_generator.state = state["random"]


def _frozen(policy: Policy) -> Policy:
    """Return a copy of ``policy`` without gradients.

    It is on the CPU if the C engine supports it, otherwise on the device of ``policy``.
    """
    twin = copy.deepcopy(policy).requires_grad_(False).eval()
    on_cpu = copy.deepcopy(twin).cpu()
    return twin if compile_policy(on_cpu) is None else on_cpu
