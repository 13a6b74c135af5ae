"""``puffer plot``: learning curves of runs in one picture."""

from pathlib import Path

from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.training.episodes import SCORE
from pufferlib.training.runs import RUNS
from pufferlib.training.text import plural

__all__ = ["run"]

PROG = "puffer plot"
ABOUT = (
    "Draw the learning curves of runs in one picture. Runs that differ in their seed alone become one line, their "
    "interquartile mean, in a band, its 95 %% bootstrap interval."
)


def run(argv: list[str]) -> int:
    """Draw the runs that ``argv`` names."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument(
        "runs", nargs="*", metavar="RUN", help="folders of runs, patterns such as 'runs/*pong*', names of runs or ENVs"
    )
    parser.add_argument("--out", type=Path, default=Path("curves.png"), help="PNG, SVG or PDF (default: curves.png)")
    parser.add_argument(
        "--x", choices=["steps", "time"], default="steps", help="over steps (default) or time of training"
    )
    parser.add_argument(
        "--metric", default=SCORE, help="any metric of the runs, as losses/entropy (default: the score)"
    )
    parser.add_argument("--by", default="", metavar="SETTING", help="a line for each value of a setting, over all runs")
    parser.add_argument("--runs", dest="folder", type=Path, default=RUNS, help="folder of all runs (default: runs)")
    options = parser.parse(argv)
    if not options.runs:
        raise UsageError(f"{PROG}: name runs or environments, for example: {as_typed('puffer plot breakout')}")
    from pufferlib.analysis import plot

    try:
        drawn = plot(options.runs, options.out, x=options.x, by=options.by, metric=options.metric, runs=options.folder)
    except UnknownNameError as error:
        raise UnknownNameError(f"{PROG}: {error}") from None
    for env, lines in drawn.items():
        for label, members in lines.items():
            say(f"{style(env, 'bold')}  {label}: {plural(len(members), 'run')}")
    say(f"picture: {options.out}")
    return 0
