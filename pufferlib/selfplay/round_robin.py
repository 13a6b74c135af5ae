"""Matches: every entrant against every other one, a cross table, and ratings."""

import itertools
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path
from pufferlib.seeding import env_seed
from pufferlib.selfplay.entrants import Entrant, enter, game_of
from pufferlib.selfplay.games import Arena, Record
from pufferlib.selfplay.ratings import fit_ratings
from pufferlib.training.film import Film
from pufferlib.training.runs import RUNS

__all__ = ["CrossTable", "match", "play_pair"]

WHERE = "pufferlib.selfplay.match"
VIDEO_S = 600.0


@dataclass(frozen=True)
class CrossTable:
    """Results of games between several players.

    Attributes:
        names: Of the players.
        wins: Games that player i won against player j, int64 ``(players, players)``.
        draws: Games of i and j without a winner, alike.
    """

    names: tuple[str, ...]
    wins: npt.NDArray[np.int64]
    draws: npt.NDArray[np.int64]

    @property
    def scores(self) -> npt.NDArray[np.float64]:
        """Points of player i against player j, 1 for a win and 0.5 for a draw."""
        return self.wins + self.draws / 2

    @property
    def games(self) -> npt.NDArray[np.int64]:
        """Games of each player."""
        return np.asarray((self.wins + self.wins.T + self.draws).sum(1))

    def ratings(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        """Elo ratings, of mean 1000, and half of their 95 % intervals, see ``fit_ratings``."""
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
    """Let trained agents play against each other, every one against every other.

    Args:
        agents: Runs, checkpoints, files of policies, names of environments for their latest runs; "random" for any
            legal action, "scripted" for the opponent that the environment brings.
        games: Of each pair; the sides change after each game.
        seed: Of the environments and the actions.
        greedy: Let agents take their likeliest actions instead of sampling.
        best: Take the checkpoints of the best scores, not the latest.
        video: Films the first game of the first pair as an mp4.
        runs: Folder in which the latest run of an environment is looked for.
        report: Called after each pair with both names, and the share of the match that is played.
        where: Begins the message of an error.

    Raises:
        APIUsageError: Fewer than two agents, or they do not play the same game.
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
    film = Film(user_path(video), VIDEO_S) if video else None
    for index, (i, j) in enumerate(pairs):
        if film is not None and index == 0:
            with film:
                result = play_pair(arena, entrants[i], entrants[j], games, seed, film)
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
    """Play the games of a pair, whoever else takes part; returns wins, draws and losses of ``one``."""
    pair = zlib.crc32(" ".join(sorted((one.identity, other.identity))).encode())
    scores = arena.play(one, other, games, env_seed(seed, pair), record)
    return int(np.sum(scores == 1)), int(np.sum(scores == 0.5)), int(np.sum(scores == 0))


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their longest cell, names to the left and all else to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if index == 1 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines)
