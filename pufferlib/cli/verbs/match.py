"""``puffer match``: play trained agents against each other."""

from pathlib import Path

from pufferlib.cli.console import progress, say
from pufferlib.cli.options import NO_VIDEO, Parser, check_video
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.signals import signals_exit
from pufferlib.runs.folder import RUNS

__all__ = ["run"]

PROG = "puffer match"
ABOUT = """Play trained agents against each other and rate them: puffer match RUN RUN. Each pair plays both sides.
An agent is a run, a checkpoint, a policy file, or the name of an environment for its latest run. "random" plays random
legal actions, and "scripted" is the built-in opponent of the environment."""


def run(argv: list[str]) -> int:
    """Play the match in ``argv``."""
    parser = Parser(PROG, ABOUT)
    parser.add_argument("agents", nargs="*", metavar="RUN", help="two or more agents")
    parser.add_argument("--games", type=int, default=100, help="games of each pair (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the environments and the actions (default: 1)")
    parser.add_argument("--greedy", action="store_true", help="take the most likely actions instead of sampling")
    parser.add_argument("--best", action="store_true", help="use the checkpoints with the best scores")
    parser.add_argument("--video", type=Path, help="record the first game as an mp4 video")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    options = parser.parse(argv)
    if len(options.agents) < 2:
        example = as_typed("puffer match connect4 random")
        raise UsageError(f"{PROG}: name two or more agents, got {len(options.agents)}; for example: {example}")
    if options.games < 1:
        raise UsageError(f"{PROG}: --games must be at least 1, got {options.games}")
    check_video(PROG, options.video)
    older = _written(options.video)
    from pufferlib.selfplay.round_robin import match  # imports torch, which is slow

    with signals_exit():
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
    if options.video:
        say(f"video: {options.video if _written(options.video) != older else NO_VIDEO}")
    return 0


def _written(video: Path | None) -> int | None:
    """Return the time at which a file was written, in ns, or None if there is none."""
    return video.stat().st_mtime_ns if video and video.is_file() else None
