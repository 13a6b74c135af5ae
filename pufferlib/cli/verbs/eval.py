"""``puffer eval``: evaluate a trained agent."""

from pathlib import Path

from pufferlib import registry
from pufferlib.cli.console import highlight, say, style
from pufferlib.cli.options import NO_VIDEO, Parser, check_video, parse_config
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.signals import signals_exit
from pufferlib.runs.find import find_run, shipped_agent
from pufferlib.runs.folder import RUNS
from pufferlib.settings.config import load_config
from pufferlib.text import plural

__all__ = ["run"]

PROG = "puffer eval"
ABOUT = """Evaluate a trained agent and compare it with random play.

  puffer eval RUN            a run, a checkpoint or a policy file
  puffer eval ENVIRONMENT    its latest run, or the agent that ships with it if there is no run

  --agent          use the agent that ships with the environment, even if there are runs
  --best           use the checkpoint with the best score instead of the latest one
  --video PATH     record the first episode as an mp4 video
  --runs FOLDER    folder with runs (default: runs)"""


def run(argv: list[str]) -> int:
    """Evaluate the agent in ``argv``."""
    target, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = Parser(PROG, add_help=False)
    parser.add_argument("--agent", action="store_true")
    parser.add_argument("--best", action="store_true")
    parser.add_argument("--video", type=Path)
    parser.add_argument("--runs", type=Path, default=RUNS)
    options, flags = parser.parse_known_args(argv)
    if not target and ("--help" in flags or "-h" in flags):
        parse_config(PROG, load_config("RUN"), flags, ABOUT)
    if not target:
        example = as_typed("puffer eval breakout")
        raise UsageError(f"{PROG}: name a run, a checkpoint or an environment, for example: {example}")
    check_video(PROG, options.video)
    if options.agent and options.best:
        raise UsageError(f"{PROG}: --best selects a checkpoint of a run; leave out --agent or --best")
    found = shipped_agent(PROG, target) if options.agent else find_run(PROG, target, options.runs, options.best)
    config = parse_config(PROG, found.settings(), flags, ABOUT, parser.flags)
    episodes = plural(config.eval.episodes, "episode")
    say(f"{style(registry.short_name(config.env_name), 'bold')}: playing {episodes} with {found.checkpoint}")
    from pufferlib.training.agent import load_policy  # imports torch, which is slow
    from pufferlib.training.result import compare

    with signals_exit():
        comparison = compare(config, load_policy(config, found), options.video)
    say(highlight(str(comparison), comparison.score))
    if comparison.video:
        about = comparison.video.about()
        say(f"video: {comparison.video.path} ({about})" if about else f"video: {NO_VIDEO}")
    if found.video.exists() or not found.summary.exists():  # a training records a video if there are images
        say(f"Watch it: {style(as_typed(f'puffer play --watch {found.argument}'), 'accent')}")
    return 0
