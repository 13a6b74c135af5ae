"""Round-robin matches, with a cross table and Elo ratings.

Ratings are fitted to all results at once. Sources: Bradley and Terry, "Rank Analysis of Incomplete Block Designs"
(1952), for the model. Hunter, "MM Algorithms for Generalized Bradley-Terry Models" (2004), for its likelihood, whose
maximum is unique.
"""

import itertools
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path
from pufferlib.runs.folder import RUNS
from pufferlib.seeding import env_seed
from pufferlib.selfplay.entrants import Entrant, enter, game_of
from pufferlib.selfplay.games import Arena
from pufferlib.training.evaluation import Record
from pufferlib.training.opponent_pool import FIRST_RATING, SCALE
from pufferlib.training.result import EpisodeVideo

__all__ = ["CrossTable", "fit_ratings", "match", "play_pair"]

Array = npt.NDArray[np.float64]

WHERE = "pufferlib.selfplay.match"
VIDEO_S = 600.0
NATURAL = SCALE / math.log(10)  # Elo points of a logit
PRIOR = 0.5  # additional points for each side of a pair, so that a player without losses has a finite rating
NEWTON_STEPS = 100
TOLERANCE = 1e-9


@dataclass(frozen=True)
class CrossTable:
    """Results of games between several players.

    Attributes:
        names: Names of the players.
        wins: Number of games that player i won against player j, int64 ``(players, players)``.
        draws: Number of draws between i and j, int64 ``(players, players)``.
    """

    names: tuple[str, ...]
    wins: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]

    @property
    def scores(self) -> Array:
        """Points of player i against player j. A win is 1 point, a draw 0.5."""
        return self.wins + self.draws / 2

    @property
    def games(self) -> npt.NDArray[np.int64]:
        """Number of games of each player."""
        return np.asarray((self.wins + self.wins.T + self.draws).sum(1))

    def ratings(self) -> tuple[Array, Array]:
        """Return Elo ratings with a mean of 1000, and the half-widths of their 95 % intervals (``fit_ratings``)."""
        return fit_ratings(self.scores)

    def __str__(self) -> str:
        ratings, widths = self.ratings()
        order = np.argsort(-ratings, kind="stable")
        places = [str(place) for place in range(1, len(order) + 1)]
        rows = [["", "", "Elo", "score", *places]]
        for place, i in zip(places, order, strict=True):
            points, games = self.scores[i].sum(), self.games[i]
            share = f"{points / games:.1%}" if games else "-"
            rows.append([place, self.names[i], f"{ratings[i]:.0f} ± {widths[i]:.0f}", share])
            rows[-1] += ["-" if i == j else self._cell(int(i), int(j)) for j in order]
        return _aligned(rows)

    def _cell(self, i: int, j: int) -> str:
        if not (self.wins[i, j] or self.wins[j, i] or self.draws[i, j]):
            return "."
        return f"{self.wins[i, j]}-{self.draws[i, j]}-{self.wins[j, i]}"


def fit_ratings(scores: Array) -> tuple[Array, Array]:
    r"""Compute maximum likelihood ratings and the half-width of their 95 % intervals.

    .. math::
        P(i\text{ beats }j) = 1 / (1 + 10^{(R_j - R_i) / 400})

    A draw counts as half a win for both. As a prior, both sides of each pair that has played get half a point more.

    Args:
        scores: Points of player i in games against player j, shape ``(players, players)``. The diagonal is ignored.

    Returns:
        Ratings with a mean of 1000, and half-widths of 1.96 standard errors.
    """
    points = np.where((scores + scores.T) > 0, scores + PRIOR, 0.0)
    np.fill_diagonal(points, 0)
    games = points + points.T
    logits = np.zeros(len(points))
    for _ in range(NEWTON_STEPS):
        expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
        gradient = (points - games * expected).sum(1)
        step = np.linalg.pinv(_information(games, expected)) @ gradient
        logits += step * min(1.0, 1 / max(float(np.abs(step).max()), 1e-300))  # limit a step to 1 logit
        if np.abs(step).max() < TOLERANCE:
            break
    expected = 1 / (1 + np.exp(logits[None, :] - logits[:, None]))
    variances = np.diag(np.linalg.pinv(_information(games, expected)))
    return FIRST_RATING + NATURAL * (logits - logits.mean()), 1.96 * NATURAL * np.sqrt(np.maximum(variances, 0))


def _information(games: Array, expected: Array) -> Array:
    """Return the Fisher information matrix of the logits."""
    weights = games * expected * (1 - expected)
    return np.asarray(np.diag(weights.sum(1)) - weights)


def match(
    agents: Sequence[str | Path],
    games: int = 100,
    *,
    seed: int = 1,
    greedy: bool = False,
    best: bool = False,
    video: Path | str | None = None,
    runs: Path | str = RUNS,
    report: Callable[[str, str, float], None] | None = None,
    where: str = WHERE,
) -> CrossTable:
    """Play a round-robin match between trained agents.

    Args:
        agents: Runs, checkpoints, policy files, or environment names for their latest runs, or else their shipped
            agents. "random" plays random legal actions, and "scripted" is the built-in opponent of the environment.
        games: Number of games of each pair. The sides are swapped after each game.
        seed: Seed of the environments and the actions.
        greedy: True to take the most likely actions instead of sampling.
        best: True to use the checkpoints with the best scores instead of the latest ones.
        video: Path of an mp4 video of the first game of the first pair.
        runs: Folder with runs, to find the latest run of an environment.
        report: Function that is called after each pair with both names and the completed share.
        where: Prefix of error messages.

    Raises:
        APIUsageError: There are fewer than two agents, or they do not play the same game.
        UsageError: There is no such run.
    """
    if len(agents) < 2 or games < 1:
        raise APIUsageError(
            f"{where}: at least two agents and one game must be given, got {len(agents)} and {games}; "
            "'random' and 'scripted' are agents too"
        )
    entrants = enter(where, [str(agent) for agent in agents], runs, best)
    arena = Arena(where, game_of(where, entrants), greedy)
    for entrant in entrants:
        arena.load(entrant)
    wins, draws = np.zeros((2, len(entrants), len(entrants)), np.int64)
    pairs = list(itertools.combinations(range(len(entrants)), 2))
    recording = EpisodeVideo(user_path(video), VIDEO_S) if video else None
    for index, (i, j) in enumerate(pairs):
        if recording is not None and index == 0:
            with recording:
                result = play_pair(arena, entrants[i], entrants[j], games, seed, recording)
        else:
            result = play_pair(arena, entrants[i], entrants[j], games, seed)
        wins[i, j], draws[i, j], wins[j, i] = result
        draws[j, i] = draws[i, j]
        if report is not None:
            report(entrants[i].name, entrants[j].name, (index + 1) / len(pairs))
    return CrossTable(tuple(entrant.name for entrant in entrants), wins, draws)


def play_pair(
    arena: Arena, one: Entrant, other: Entrant, games: int, seed: int, record: Record | None = None
) -> tuple[int, int, int]:
    """Play the games of a pair and return the wins, draws and losses of ``one``.

    The result does not depend on the other agents in the match.
    """
    pair = zlib.crc32(" ".join(sorted((one.identity, other.identity))).encode())
    scores = arena.play(one, other, games, env_seed(seed, pair), record)
    return int(np.sum(scores == 1)), int(np.sum(scores == 0.5)), int(np.sum(scores == 0))


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Format a table with aligned columns. Names are left-aligned, all other cells right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index == 1 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
