"""Options of the verbs in which a user plays or watches an environment."""

from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path

from pufferlib import registry
from pufferlib.cli.options import Parser, typed
from pufferlib.errors import UsageError
from pufferlib.machine.paths import user_path
from pufferlib.play.loop import VIDEOS
from pufferlib.play.session import Session
from pufferlib.runs.find import find_run, shipped_agent
from pufferlib.runs.folder import RUNS

__all__ = ["add_session_options", "open_session"]


def add_session_options(parser: Parser) -> None:
    """Add the options that choose environment, agents and speed."""
    parser.add_argument(
        "env",
        nargs="?",
        help="name from puffer list, my_env.py:Class, module:Class, or Gymnasium id; or a run, to watch its agent",
    )
    parser.add_argument(
        "--watch",
        nargs="?",
        const="",
        metavar="RUN",
        help="watch the agent of a run play (default: the latest run of the environment, or the agent of --agent)",
    )
    parser.add_argument("--agent", action="store_true", help="watch the agent that ships with the environment")
    parser.add_argument("--fps", type=float, help="steps per second (default: the rate of the environment)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the environment and of the other agents (default: 0)"
    )
    parser.add_argument("--player", type=int, default=0, help="index of your agent (default: 0)")
    parser.add_argument("--checkpoint", metavar="RUN", help="run, checkpoint or environment to play the other agents")
    parser.add_argument("--best", action="store_true", help="use the checkpoint with the best score")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    parser.add_argument(
        "--videos", type=Path, default=VIDEOS, help="folder for the videos that you record (default: videos)"
    )


def open_session(prog: str, options: Namespace, texts: Mapping[str, str]) -> Session:
    """Make the environment and its players.

    Args:
        prog: Name of the command, for error messages.
        options: Values of the options.
        texts: Keyword arguments of the environment, from ``split_env``.

    Raises:
        UsageError: Options exclude each other, or none names an environment.
    """
    if options.fps is not None and not 0.1 <= options.fps <= 1000:
        raise UsageError(f"{prog}: --fps must be from 0.1 to 1000, got {options.fps:g}")
    env, watch = options.env, options.watch
    if env and not watch and _is_run(env):
        env, watch = None, env
    watched = watch is not None or options.agent
    if watched and options.checkpoint:
        raise UsageError(f"{prog}: --watch and --agent let one agent play for all; remove --checkpoint")
    if options.agent and (watch or options.best):
        raise UsageError(f"{prog}: --agent is the agent that ships with the environment; remove --watch and --best")
    target = (watch or env) if watched else options.checkpoint
    if not env and not target:
        raise UsageError(f"{prog}: name an environment first, for example: {prog} breakout; puffer list shows all")
    if options.best and not target:
        raise UsageError(f"{prog}: --best selects a checkpoint of a run; name a run with --watch or --checkpoint")
    run = None
    if target:
        run = shipped_agent(prog, target) if options.agent else find_run(prog, target, options.runs, options.best)
    name = _name_of(prog, env) if env or not run else run.settings().env_name
    return Session(name, typed(name, texts), options.seed, options.player, run, watched, prog)


def _is_run(path: str) -> bool:
    """Return True if ``path`` is a folder or a file, and not an environment."""
    place = user_path(path)
    is_run = place.is_dir() or (place.exists() and place.suffix not in (".py", ".c"))  # RUN-corridor.c is a folder
    return is_run and not registry.is_inside(path)


def _name_of(prog: str, env: str) -> str:
    """Return the full name of the environment ``env``."""
    registry.env_creator(env, prog)
    return registry.full_name(env if env in registry.list_envs() else env.removeprefix("puffer_"))
