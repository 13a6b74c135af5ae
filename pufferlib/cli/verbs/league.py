"""``puffer league``: keep a persistent table of agents."""

from pathlib import Path

from pufferlib.cli.console import progress, say
from pufferlib.cli.options import Parser
from pufferlib.errors import UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.folder import RUNS
from pufferlib.text import plural

__all__ = ["run"]

PROG = "puffer league"
ABOUT = """Keep a table of agents, their games and their ratings: puffer league add NAME RUN RUN, puffer league play
NAME, puffer league table NAME. A league is a file, leagues/NAME.db. Agents are given as in puffer match.

  add     add agents, except those whose weights are already in the league
  play    play until every pair has --games games, and show the table
  table   show the table"""
ACTIONS = ("add", "play", "table")


def run(argv: list[str]) -> int:
    """Run the league action in ``argv``."""
    parser = Parser(PROG, ABOUT)
    parser.add_argument("action", nargs="?", help="add, play or table")
    parser.add_argument("name", nargs="?", help="name of the league")
    parser.add_argument("agents", nargs="*", metavar="RUN", help="agents to add")
    parser.add_argument("--games", type=int, default=100, help="games of each pair, in rounds of 20 (default: 100)")
    parser.add_argument("--best", action="store_true", help="use the checkpoints with the best scores")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    parser.add_argument("--leagues", type=Path, default=Path("leagues"), help="folder with leagues (default: leagues)")
    options = parser.parse(argv)
    if options.action is not None and options.action not in ACTIONS:
        raise UnknownNameError.of(PROG, "action", options.action, ACTIONS)
    if not options.name:
        example = as_typed("puffer league add connect4 runs/20260101-120000-connect4 random")
        raise UsageError(f"{PROG}: name an action and a league, for example: {example}")
    if options.action != "add" and options.agents:
        raise UsageError(f"{PROG} {options.action}: takes no agents, got {options.agents[0]}; add agents with add")
    if options.games < 1:
        raise UsageError(f"{PROG}: --games must be at least 1, got {options.games}")
    from pufferlib.selfplay.league import SUFFIX, League, find_league  # imports torch

    where = f"{PROG} {options.action}"
    if options.action == "add":
        if not options.agents:
            raise UsageError(f"{where}: name the agents to add, as in puffer match")
        fresh, known = League(options.leagues / f"{options.name}{SUFFIX}", where).add(
            options.agents, options.best, options.runs
        )
        say(f"added {plural(len(fresh), 'agent')}{': ' if fresh else ''}{', '.join(fresh)}")
        if known:
            say(f"already in the league: {', '.join(known)}")
        return 0
    league = find_league(where, options.name, options.leagues)
    if options.action == "play":
        played = league.play(options.games, lambda one, other, share: progress(share, f"{one} against {other}"))
        progress(1, "")
        say(f"played {plural(played, 'game')}")
    say(str(league.table()))
    return 0
