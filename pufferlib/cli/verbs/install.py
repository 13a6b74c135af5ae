"""``puffer install``: third-party environments and what extras bring, each as it is known to work."""

import shlex
import sys

from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser
from pufferlib.installation import install as installing

__all__ = ["run"]

PROG = "puffer install"
ABOUT = """Install bindings into this environment: the locked versions of their packages, checked by hash.
What will be done is shown first; afterwards each binding is played for a few steps. The extras train,
render, ray and common are installed too, in the versions that they are tested with."""


def run(argv: list[str]) -> int:
    """Install the bindings and extras that ``argv`` names."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument(
        "names", nargs="+", metavar="NAME", help="a binding or an extra; puffer list --all shows the bindings"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask before anything is changed")
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    options = parser.parse(argv)
    plans = [installing.plan(name) for name in dict.fromkeys(options.names)]
    for planned in plans:
        _show(planned)
    if options.dry_run:
        return 0
    if not options.yes and sys.stdin.isatty() and not _confirmed():
        note("nothing was changed")
        return 1
    for planned in plans:
        installing.install(planned)
    for planned in plans:
        done = installing.smoke_test(planned)
        say(f"{style(planned.name, 'bold')} works: {done}")
    return 0


def _show(planned: installing.Plan) -> None:
    say(f"{style(planned.about, 'bold')}, into {planned.python.parents[1]}")
    width = max((len(name) for name, _, _ in planned.changes), default=0) + 2
    for name, before, after in planned.changes:
        say(f"  {name:<{width}}{f'{before} becomes {after}' if before else after}")
    if not planned.changes:
        say("  every package is there already")
    if planned.libraries:
        say(f"  {style('this machine lacks', 'warning')}: {', '.join(planned.libraries)}")
        say(f"  run: sudo apt-get install {' '.join(planned.libraries)}")
    for command in planned.commands:
        say(style(f"  $ {shlex.join(command)}", "muted"))


def _confirmed() -> bool:
    try:
        return input("Go on? [Y/n] ").strip().lower() in ("", "y", "yes")
    except EOFError:
        return False
