"""``puffer new``: create a C environment from the template."""

from pathlib import Path

from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.machine.commands import as_typed
from pufferlib.ocean.files import TEMPLATES, write_template

__all__ = ["run"]

PROG = "puffer new"
ABOUT = """Create a C environment and its training settings in the current folder: puffer new corridor. It is a complete
game that you can play and train at once, and then change step by step. With --template minigrid, it is a level of your
own in the world of MiniGrid."""

CONTENTS = {
    "corridor": "the game: declarations, reset, step and draw",
    "minigrid": "the level: how it is made, and what ends an episode",
}


def run(argv: list[str]) -> int:
    """Write the files of the environment in ``argv``."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("name", help="name of the environment: lower-case letters, digits and underscores")
    parser.add_argument("--folder", type=Path, default=Path(), help="folder for the files (default: current folder)")
    parser.add_argument(
        "--template",
        choices=tuple(TEMPLATES),
        default=next(iter(TEMPLATES)),
        help="game that the file begins with: a corridor, or a level of MiniGrid (default: %(default)s)",
    )
    options = parser.parse(argv)
    source, settings = write_template(options.name.removesuffix(".c"), options.folder, options.template)
    rows = {str(source): CONTENTS[options.template], str(settings): "the training settings"}
    for verb, about in (("play", "play it yourself"), ("train", "train an agent"), ("check", "look for defects")):
        rows[as_typed(f"puffer {verb}", source)] = about
    width = max(map(len, rows))
    for name, about in rows.items():
        say(f"{style(name.ljust(width), 'accent')}  {about}")
    return 0
