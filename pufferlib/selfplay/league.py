"""Persistent leagues of agents, in an SQLite file that several processes can use at once."""

import itertools
import os
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from pufferlib.errors import APIUsageError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.runs.folder import RUNS
from pufferlib.selfplay.entrants import Entrant, enter, game_of
from pufferlib.selfplay.games import Arena
from pufferlib.selfplay.round_robin import CrossTable, play_pair

__all__ = ["LEAGUES", "SUFFIX", "League", "find_league"]

#: Default folder of all leagues.
LEAGUES: Path = Path("leagues")
WHERE = "pufferlib.selfplay.League"
ROUND = 20  # games of a pair that are played and stored together
WAIT_S = 60.0  # maximum wait for another process to finish writing
SUFFIX = ".db"
SCHEMA = (
    """
CREATE TABLE IF NOT EXISTS agents (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    identity TEXT NOT NULL UNIQUE,
    path TEXT NOT NULL
)""",
    """
CREATE TABLE IF NOT EXISTS results (
    one INTEGER NOT NULL REFERENCES agents (id),
    other INTEGER NOT NULL REFERENCES agents (id),
    round INTEGER NOT NULL,
    wins INTEGER NOT NULL,
    draws INTEGER NOT NULL,
    losses INTEGER NOT NULL,
    PRIMARY KEY (one, other, round),
    CHECK (one < other)
)""",
)


class League:
    """League of agents, with the results of their games.

    All operations are idempotent: known agents are not added again, and stored games are not repeated. A round is
    determined by the weights of both agents and the number of the round. If two processes play the same round, they get
    the same result, and it is stored once.

    Args:
        path: Path of the file. It is created when the first agent is added.
        where: Prefix of error messages.

    Raises:
        APIUsageError: The file is not a league.
    """

    def __init__(self, path: Path | str, where: str = WHERE) -> None:
        self.path, self._where = user_path(path), where
        if self.path.exists():
            self._prepare()

    def add(
        self, agents: Sequence[str | Path], best: bool = False, runs: Path | str = RUNS
    ) -> tuple[list[str], list[str]]:
        """Add agents, given in any form that ``match`` accepts.

        Returns:
            Names of the new agents, and names of the agents whose weights were already in the league.

        Raises:
            APIUsageError: The agents do not play the game of this league, or agents cannot play both of its sides.
            UsageError: There is no such run.
        """
        found = enter(self._where, [str(agent) for agent in agents], runs, best)
        members = self._entrants()
        known = {entrant.identity: entrant.name for entrant in members}
        fresh = [entrant for entrant in found if entrant.identity not in known]
        if fresh:
            Arena(self._where, game_of(self._where, [*members, *fresh])).check()
        self._prepare()
        added = []
        with self._connection() as connection:
            for entrant in fresh:
                path = str(entrant.path.absolute()) if entrant.path else entrant.name
                added.append(self._free_name(connection, entrant))
                row = (added[-1], entrant.identity, path)
                connection.execute("INSERT OR IGNORE INTO agents (name, identity, path) VALUES (?, ?, ?)", row)
        return added, [known[entrant.identity] for entrant in found if entrant.identity in known]

    def play(self, games: int = 100, report: Callable[[str, str, float], None] | None = None) -> int:
        """Play until every pair has at least ``games`` games. Results are stored after each round of 20 games.

        Args:
            games: Number of games of each pair, rounded up to whole rounds.
            report: Function that is called before each round with both names and the completed share.

        Returns:
            Number of games played.

        Raises:
            APIUsageError: There are fewer than two agents, or the weights of an agent have changed.
        """
        entrants = self._entrants()
        if len(entrants) < 2:
            raise APIUsageError(
                f"{self._where}: games need two agents, {self.path.stem} has {len(entrants)}; add some: "
                f"{as_typed(f'puffer league add {self.path.stem}')} RUN RUN"
            )
        arena = Arena(self._where, game_of(self._where, entrants))
        for entrant in entrants:
            arena.load(entrant)
        ids = self._ids()
        pairs = [sorted(pair, key=lambda each: ids[each.name]) for pair in itertools.combinations(entrants, 2)]
        rounds = [(one, other, number) for one, other in pairs for number in range(-(-games // ROUND))]
        missing = [each for each in rounds if not self._has(ids[each[0].name], ids[each[1].name], each[2])]
        np.random.default_rng(os.getpid()).shuffle(missing)  # so that parallel processes rarely play the same round
        played = 0
        for index, (one, other, number) in enumerate(missing):
            if self._has(ids[one.name], ids[other.name], number):  # another process has played it
                continue
            if report is not None:
                report(one.name, other.name, index / len(missing))
            result = play_pair(arena, one, other, ROUND, number)
            with self._connection() as connection:
                row = (ids[one.name], ids[other.name], number, *result)
                connection.execute("INSERT OR IGNORE INTO results VALUES (?, ?, ?, ?, ?, ?)", row)
            played += ROUND
        return played

    def table(self) -> CrossTable:
        """Return the cross table of all stored results."""
        with self._connection() as connection:
            agents = connection.execute("SELECT id, name FROM agents ORDER BY id").fetchall()
            results = connection.execute(
                "SELECT one, other, sum(wins), sum(draws), sum(losses) FROM results GROUP BY one, other"
            ).fetchall()
        places = {agent: place for place, (agent, _) in enumerate(agents)}
        wins, draws = np.zeros((2, len(agents), len(agents)), np.int64)
        for one, other, won, drawn, lost in results:
            i, j = places[one], places[other]
            wins[i, j], wins[j, i], draws[i, j], draws[j, i] = won, lost, drawn, drawn
        return CrossTable(tuple(name for _, name in agents), wins, draws)

    def _prepare(self) -> None:
        """Create the file and its tables if they do not exist."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._connection() as connection:
                for statement in SCHEMA:
                    connection.execute(statement)
        except (sqlite3.DatabaseError, OSError) as error:
            raise APIUsageError(
                f"{self._where}: a league must be an SQLite file in a writable folder, got {self.path} "
                f"({error}); choose another name"
            ) from error

    def _entrants(self) -> list[Entrant]:
        """Return the agents in the order in which they were added.

        Raises:
            APIUsageError: The weights of an agent are missing or have changed.
        """
        if not self.path.exists():
            return []
        with self._connection() as connection:
            rows = connection.execute("SELECT name, identity, path FROM agents ORDER BY id").fetchall()
        found = []
        for name, identity, path in rows:
            try:
                (entrant,) = enter(self._where, [path])
            except UsageError as error:
                raise self._lost(name, f"{path} does not exist") from error
            if entrant.identity != identity:
                raise self._lost(name, f"{path} has other weights now")
            found.append(Entrant(name, identity, entrant.config, entrant.path))
        return found

    def _lost(self, name: str, reason: str) -> APIUsageError:
        return APIUsageError(
            f"{self._where}: the weights of {name} must not change, but {reason}; restore the weights, or start "
            "another league"
        )

    def _ids(self) -> dict[str, int]:
        with self._connection() as connection:
            return dict(connection.execute("SELECT name, id FROM agents").fetchall())

    def _has(self, one: int, other: int, number: int) -> bool:
        with self._connection() as connection:
            query = "SELECT 1 FROM results WHERE one = ? AND other = ? AND round = ?"
            return connection.execute(query, (one, other, number)).fetchone() is not None

    def _free_name(self, connection: sqlite3.Connection, entrant: Entrant) -> str:
        """Return an unused name: the name of the entrant, with its checkpoint, or with a number."""
        taken = {row[0] for row in connection.execute("SELECT name FROM agents")}
        own = [entrant.name] if entrant.path is None else [entrant.name, f"{entrant.name}/{entrant.path.name}"]
        names = [*own, *(f"{own[-1]}-{number}" for number in range(2, len(taken) + 3))]
        return next(each for each in names if each not in taken)

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open a connection and start a transaction that locks out other writers."""
        connection = sqlite3.connect(self.path, timeout=WAIT_S, isolation_level="IMMEDIATE")
        try:
            with connection:
                yield connection
        finally:
            connection.close()


def find_league(where: str, name: str, folder: Path) -> League:
    """Return the league ``name`` in ``folder``.

    Raises:
        UsageError: There is no such league.
    """
    path = folder / f"{name}{SUFFIX}"
    if not path.is_file():
        known = sorted(each.stem for each in folder.glob(f"*{SUFFIX}"))
        close = nearest(name, known)
        hint = (
            f"did you mean {' or '.join(close)}?" if close else "start it: " + as_typed(f"puffer league add {name} RUN")
        )
        raise UsageError(f"{where}: there is no league {name!r} in {folder}; {hint}")
    return League(path, where)
