"""``puffer play``: a person plays an environment, or watches an agent play it, in a window or in the terminal."""

from pathlib import Path

from pufferlib import registry
from pufferlib.cli.console import say
from pufferlib.cli.options import Parser, split_env, typed
from pufferlib.errors import UsageError
from pufferlib.play.session import Session, play
from pufferlib.play.viewer import choose_viewer
from pufferlib.training.runs import RUNS, find_run

__all__ = ["run"]

PROG = "puffer play"
ABOUT = """Play an environment by keyboard. Its keys are shown; R begins another episode, Q ends. Keywords of the
environment are flags: puffer play squared --env.size 7. Other agents of the game act at random, or by --checkpoint.
To watch a trained agent play instead: puffer play breakout --agent, or puffer play --watch RUN."""


def run(argv: list[str]) -> int:
    """Let a person play the environment that ``argv`` names, or watch the run that it names."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", nargs="?", help="a name of puffer list, my_env.py:Class, module:Class, Gymnasium's id")
    parser.add_argument(
        *("--watch", "--agent"),
        nargs="?",
        const="",
        metavar="RUN",
        help="watch an agent play: of this run, or the environment's own, of its latest run or as it ships",
    )
    parser.add_argument("--terminal", action="store_true", help="in the terminal, even where windows can be opened")
    parser.add_argument("--fps", type=float, help="steps per second; by default the environment's own")
    parser.add_argument("--seed", type=int, default=0, help="of the environment and of the others (default: 0)")
    parser.add_argument("--player", type=int, default=0, help="which agent of the game is yours (default: 0)")
    parser.add_argument("--checkpoint", metavar="RUN", help="a run, checkpoint or name whose agent plays the others")
    parser.add_argument("--best", action="store_true", help="its best checkpoint, not the latest")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where to look for it (default: runs)")
    options = parser.parse(argv)
    if options.fps is not None and not 0.1 <= options.fps <= 1000:
        raise UsageError(f"{PROG}: --fps must be from 0.1 to 1000, got {options.fps:g}")
    watched = options.watch is not None
    if watched and options.checkpoint:
        raise UsageError(f"{PROG}: --watch lets one run play all agents; leave out --checkpoint")
    target = (options.watch or options.env) if watched else options.checkpoint
    if not options.env and not target:
        raise UsageError(f"{PROG}: name an environment first, for example: puffer play breakout; puffer list shows all")
    if options.best and not target:
        raise UsageError(f"{PROG}: --best chooses a checkpoint of a run; name one by --watch or --checkpoint")
    files = find_run(PROG, target, options.runs, options.best) if target else None
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
    """The environment that a person means by ``env``."""
    registry.env_creator(env, PROG)
    return registry.full_name(env if env in registry.list_envs() else env.removeprefix("puffer_"))
