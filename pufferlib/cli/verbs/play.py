"""``puffer play``: play an environment, or watch an agent play it, in a window or the terminal."""

from pathlib import Path

from pufferlib import registry
from pufferlib.cli.console import say
from pufferlib.cli.options import Parser, split_env, typed
from pufferlib.errors import UsageError
from pufferlib.play.session import Session, play
from pufferlib.render.viewer import choose_viewer
from pufferlib.runs.folder import RUNS, find_run, shipped_agent

__all__ = ["run"]

PROG = "puffer play"
ABOUT = """Play an environment with the keyboard. The keys are shown. R starts another episode, and Q quits. Set
arguments of the environment with flags: puffer play squared --env.size 7. Other agents act at random, or use
--checkpoint. To watch a trained agent instead: puffer play breakout --agent, or puffer play --watch RUN."""


def run(argv: list[str]) -> int:
    """Play the environment in ``argv``, or watch a run."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", nargs="?", help="name from puffer list, my_env.py:Class, module:Class, or Gymnasium id")
    parser.add_argument(
        "--watch",
        nargs="?",
        const="",
        metavar="RUN",
        help="watch the agent of a run play (default: the latest run of the environment, or the agent of --agent)",
    )
    parser.add_argument("--agent", action="store_true", help="watch the agent that ships with the environment")
    parser.add_argument("--terminal", action="store_true", help="use the terminal even if windows can be opened")
    parser.add_argument("--fps", type=float, help="steps per second (default: the rate of the environment)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the environment and of the other agents (default: 0)"
    )
    parser.add_argument("--player", type=int, default=0, help="index of your agent (default: 0)")
    parser.add_argument("--checkpoint", metavar="RUN", help="run, checkpoint or environment to play the other agents")
    parser.add_argument("--best", action="store_true", help="use the checkpoint with the best score")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    options = parser.parse(argv)
    if options.fps is not None and not 0.1 <= options.fps <= 1000:
        raise UsageError(f"{PROG}: --fps must be from 0.1 to 1000, got {options.fps:g}")
    watched = options.watch is not None or options.agent
    if watched and options.checkpoint:
        raise UsageError(f"{PROG}: --watch and --agent let one agent play for all; remove --checkpoint")
    if options.agent and (options.watch or options.best):
        raise UsageError(f"{PROG}: --agent is the agent that ships with the environment; remove --watch and --best")
    target = (options.watch or options.env) if watched else options.checkpoint
    if not options.env and not target:
        raise UsageError(f"{PROG}: name an environment first, for example: puffer play breakout; puffer list shows all")
    if options.best and not target:
        raise UsageError(f"{PROG}: --best selects a checkpoint of a run; name a run with --watch or --checkpoint")
    files = None
    if target:
        files = shipped_agent(PROG, target) if options.agent else find_run(PROG, target, options.runs, options.best)
    name = _name_of(options.env) if options.env or not files else files.settings().env_name
    open_viewer = choose_viewer(PROG, options.terminal, "run it in a terminal")
    session = Session(name, typed(name, texts), options.seed, options.player, files, watched)
    try:
        viewer = open_viewer(f"{PROG} {registry.short_name(name)}")
        try:
            play(session, viewer, options.fps or session.fps)
        finally:
            viewer.close()
    finally:
        session.close()
    say(session.result())
    return 0


def _name_of(env: str) -> str:
    """Return the full name of the environment ``env``."""
    registry.env_creator(env, PROG)
    return registry.full_name(env if env in registry.list_envs() else env.removeprefix("puffer_"))
