"""``puffer new``: a C environment of one's own, from the template."""

from pathlib import Path

from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.machine.commands import as_typed
from pufferlib.ocean.template import write_template

__all__ = ["run"]

PROG = "puffer new"
ABOUT = """Write a complete game in C, and its settings of training, into the current folder: puffer new corridor.
It can be played and trained at once; change it step by step."""


def run(argv: list[str]) -> int:
    """Write the files that ``argv`` names."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("name", help="of the environment: lower-case letters, digits and underscores")
    parser.add_argument("--folder", type=Path, default=Path(), help="where to write it (default: the current one)")
    options = parser.parse(argv)
    source, settings = write_template(options.name.removesuffix(".c"), options.folder)
    say(f"{style(str(source), 'accent')}  the game: its declarations, reset, step and draw")
    say(f"{style(str(settings), 'accent')}  what it is trained with")
    for verb, about in (("play", "be the agent"), ("train", "train one"), ("check", "look for defects")):
        say(f"{style(as_typed(f'puffer {verb}', source), 'accent')}  {about}")
    return 0
