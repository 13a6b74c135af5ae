"""``puffer play``: play an environment, or watch an agent play it, in a window or the terminal."""

import contextlib

from pufferlib import registry
from pufferlib.cli.console import say
from pufferlib.cli.options import Parser, split_env
from pufferlib.cli.sessions import add_session_options, open_session
from pufferlib.machine.commands import as_typed
from pufferlib.machine.signals import signals_exit
from pufferlib.play.loop import play
from pufferlib.render.viewer import choose_viewer

__all__ = ["run"]

PROG = "puffer play"
ABOUT = """Play an environment with the keyboard. The keys are shown. R starts another episode, and Q quits. Set
arguments of the environment with flags: puffer play squared --env.size 7. Other agents act at random, or use
--checkpoint. To watch a trained agent instead: puffer play breakout --agent, or puffer play RUN."""


def run(argv: list[str]) -> int:
    """Play the environment in ``argv``, or watch a run."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    add_session_options(parser)
    parser.add_argument("--terminal", action="store_true", help="use the terminal even if windows can be opened")
    options = parser.parse(argv)
    session = open_session(PROG, options, texts)
    try:
        open_viewer = choose_viewer(PROG, options.terminal, f"use {as_typed('puffer view')}, run it in a terminal")
        viewer = open_viewer(f"{PROG} {registry.short_name(session.name)}")
        with contextlib.closing(viewer), signals_exit():
            play(session, viewer, options.fps or session.fps, options.videos)
    finally:
        session.close()
    say(session.result())
    return 0
