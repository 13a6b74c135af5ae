"""``puffer play``: a person plays an environment by keyboard, in a window or in the terminal."""

import importlib.util
from pathlib import Path

from pufferlib import registry
from pufferlib.cli.arguments import Parser, split_env
from pufferlib.cli.console import say
from pufferlib.cli.errors import UsageError
from pufferlib.cli.playing import Game, Viewer, play
from pufferlib.cli.runs import RUNS, find_run
from pufferlib.commands import way_to_install
from pufferlib.errors import UnknownNameError
from pufferlib.render.screen import Screen, is_terminal
from pufferlib.render.window import Window, has_display

__all__ = ["run"]

PROG = "puffer play"
ABOUT = """Play an environment by keyboard. Its keys are shown; R begins another episode, Q ends. Keywords of the
environment are flags: puffer play squared --env.size 7. Other agents of the game act at random, or by --checkpoint."""


def run(argv: list[str]) -> int:
    """Let a person play the environment that ``argv`` names."""
    keywords, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", help="a name of puffer list: breakout, atari/pong")
    parser.add_argument("--terminal", action="store_true", help="in the terminal, even where windows can be opened")
    parser.add_argument("--fps", type=float, help="steps per second; by default the environment's own")
    parser.add_argument("--seed", type=int, default=0, help="of the environment and of the others (default: 0)")
    parser.add_argument("--agent", type=int, default=0, help="which agent of the game is yours (default: 0)")
    parser.add_argument("--checkpoint", metavar="RUN", help="a run or checkpoint that plays the other agents")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where to look for it (default: runs)")
    options = parser.parse(argv)
    if options.fps is not None and not 0.1 <= options.fps <= 1000:
        raise UsageError(f"{PROG}: --fps must be from 0.1 to 1000, got {options.fps:g}")
    in_window = not options.terminal and has_display() and importlib.util.find_spec("pygame") is not None
    if not in_window and not is_terminal():
        raise UsageError(
            f"{PROG}: there is neither a display nor a terminal to play in; run it in a terminal, or where DISPLAY "
            f"or WAYLAND_DISPLAY is set and pygame is installed ({way_to_install('render')})"
        )
    try:
        registry.env_creator(options.env)
    except UnknownNameError:
        raise registry.unknown_env(PROG, options.env) from None
    files = find_run(PROG, options.checkpoint, options.runs) if options.checkpoint else None
    name = options.env.removeprefix("puffer_") if options.env not in registry.list_envs() else options.env
    game = Game(name, keywords, options.seed, options.agent, files)
    try:
        viewer: Viewer = Window(f"puffer play {name}", "play with --terminal") if in_window else Screen()
        try:
            play(game, viewer, options.fps or game.fps)
        finally:
            viewer.close()
    finally:
        game.close()
    say(game.sentence())
    return 0
