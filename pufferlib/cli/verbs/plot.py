"""``puffer plot``: plot the learning curves of runs."""

from pathlib import Path

from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.folder import RUNS
from pufferlib.runs.report import SCORE
from pufferlib.text import plural

__all__ = ["run"]

PROG = "puffer plot"
ABOUT = (
    "Plot the learning curves of runs. Runs that differ only in their seed are combined: the line is their "
    "interquartile mean, and the band is its 95 % bootstrap interval."
)


def run(argv: list[str]) -> int:
    """Plot the runs in ``argv``."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="RUN",
        help="run folders, patterns such as 'runs/*pong*', or names of runs or environments",
    )
    parser.add_argument(
        "--out", type=Path, default=Path("curves.png"), help="PNG, SVG or PDF file (default: curves.png)"
    )
    parser.add_argument("--x", choices=["steps", "time"], default="steps", help="x axis (default: steps)")
    parser.add_argument("--metric", default=SCORE, help="metric to plot, such as losses/entropy (default: the score)")
    parser.add_argument("--by", default="", metavar="SETTING", help="plot one line for each value of this setting")
    parser.add_argument("--runs", dest="folder", type=Path, default=RUNS, help="folder with runs (default: runs)")
    options = parser.parse(argv)
    if not options.runs:
        raise UsageError(f"{PROG}: name runs or environments, for example: {as_typed('puffer plot breakout')}")
    from pufferlib.runs.curves import plot

    try:
        drawn = plot(options.runs, options.out, x=options.x, by=options.by, metric=options.metric, runs=options.folder)
    except UnknownNameError as error:
        raise UnknownNameError(f"{PROG}: {error}") from None
    for env, lines in drawn.items():
        for label, members in lines.items():
            say(f"{style(env, 'bold')}  {label}: {plural(len(members), 'run')}")
    say(f"plot: {options.out}")
    return 0
