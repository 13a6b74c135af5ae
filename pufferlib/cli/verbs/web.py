"""``puffer web``: write a page with a game that an agent or the user plays in the browser."""

import os
from pathlib import Path

from pufferlib import registry
from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser, split_env, typed
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS, Run

__all__ = ["run"]

PROG = "puffer web"
ABOUT = """Write one HTML file with an environment in C and its trained agent, compiled to WebAssembly: puffer web
breakout, or puffer web ./game.c RUN --out game.html. It opens in a browser with a double click. The agent plays, and
you play while you hold Shift. Set arguments of the environment with flags: puffer web squared --env.size 7."""


def run(argv: list[str]) -> int:
    """Write the page of the environment in ``argv``."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", nargs="?", metavar="ENV", help="environment in C: a name from puffer list, or my_env.c")
    parser.add_argument(
        "run",
        nargs="?",
        metavar="RUN",
        help="run or checkpoint whose agent plays (default: the latest run of the environment, or its shipped agent)",
    )
    parser.add_argument("-o", "--out", type=Path, metavar="PATH", help="file to write (default: ENV.html)")
    parser.add_argument("--best", action="store_true", help="use the checkpoint with the best score")
    parser.add_argument("--no-agent", action="store_true", help="let random actions play instead of an agent")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    options = parser.parse(argv)
    if not options.env:
        raise UsageError(f"{PROG}: name an environment in C, for example: {as_typed('puffer web breakout')}")
    if options.no_agent and (options.run or options.best):
        raise UsageError(f"{PROG}: --no-agent makes a page without an agent; remove RUN and --best")
    folder = options.out.absolute().parent if options.out else Path.cwd()
    if not os.access(folder, os.W_OK) or (options.out and options.out.is_dir()):
        given = options.out or folder
        raise UsageError(f"{PROG}: --out must be a file in a folder that can be written to, got {given}")
    from pufferlib.web import games  # imports torch, which is slow

    agent = None if options.no_agent else _find_agent(options.env, options.run, options.runs, options.best)
    game = games.build_game(PROG, options.env, typed(options.env, texts), agent)
    path = options.out or Path(f"{game.facts['name']}.html")
    path.write_text(game.page(), "utf-8")
    say(f"{style(str(path), 'bold')} ({path.stat().st_size / 1000:,.0f} kB): {game.facts['name']}, {_about(agent)}")
    return 0


def _about(agent: Run | None) -> str:
    """Describe who plays."""
    if agent is None:
        return "played by random actions"
    is_shipped = agent.chosen == registry.agent_file(agent.settings().env_name)
    return f"played by {'its shipped agent' if is_shipped else agent.argument}"


def _find_agent(env: str, target: str | None, runs: Path, best: bool) -> Run | None:
    """Return the run that the user named, else the latest run or the shipped agent, else None."""
    if target or best:
        return find_run(PROG, target or env, runs, best)
    try:
        return find_run(PROG, env, runs)
    except APIUsageError as error:
        say(f"no agent: {str(error).removeprefix(f'{PROG}: ')}")
        return None
