"""``puffer match``: trained agents against each other."""

from pathlib import Path

from pufferlib.cli.console import progress, say
from pufferlib.cli.options import Parser
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.render.video import check_video_path
from pufferlib.training.runs import RUNS

__all__ = ["run"]

PROG = "puffer match"
ABOUT = """Let trained agents play against each other, each pair on both sides, and rate them: puffer match RUN RUN.
An agent is a run, a checkpoint, the file of a policy, or an environment's name for its latest run; "random"
plays any legal action, "scripted" is the opponent that the environment brings."""


def run(argv: list[str]) -> int:
    """Play the match that ``argv`` describes."""
    parser = Parser(PROG, ABOUT)
    parser.add_argument("agents", nargs="*", metavar="RUN", help="two agents or more")
    parser.add_argument("--games", type=int, default=100, help="games of each pair (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="of the environments and the actions (default: 1)")
    parser.add_argument("--greedy", action="store_true", help="take the likeliest actions instead of sampling")
    parser.add_argument("--best", action="store_true", help="the checkpoints of the best scores, not the latest")
    parser.add_argument("--video", type=Path, help="film the first game as an mp4")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where to look for the latest run (default: runs)")
    options = parser.parse(argv)
    if len(options.agents) < 2:
        example = as_typed("puffer match connect4 random")
        raise UsageError(f"{PROG}: name two agents or more, got {len(options.agents)}; for example: {example}")
    if options.games < 1:
        raise UsageError(f"{PROG}: --games must be at least 1, got {options.games}")
    if options.video and (options.video.is_dir() or not options.video.parent.is_dir()):
        raise UsageError(f"{PROG}: --video must be a file in a folder that exists, got {options.video}")
    if options.video:
        check_video_path(f"{PROG}: --video", options.video)
    from pufferlib.selfplay.round_robin import match  # brings torch, for which nobody should wait to be told of a slip

    table = match(
        options.agents,
        options.games,
        seed=options.seed,
        greedy=options.greedy,
        best=options.best,
        video=options.video,
        runs=options.runs,
        report=lambda one, other, share: progress(share, f"{one} against {other}"),
        where=PROG,
    )
    progress(1, "")
    say(str(table))
    if options.video and options.video.is_file():
        say(f"video: {options.video}")
    return 0
