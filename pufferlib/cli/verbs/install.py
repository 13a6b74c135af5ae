"""``puffer install``: install third-party environments and extras in tested versions."""

import shlex
import sys

from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser
from pufferlib.installation import install as installing

__all__ = ["run"]

PROG = "puffer install"
ABOUT = """Install bindings and extras into this Python environment. Packages of bindings are installed in locked
versions, checked by hash. Extras, such as train, render, ray and common, are installed in tested versions. The plan is
shown first. After the installation, each binding is played for a few steps."""


def run(argv: list[str]) -> int:
    """Install the bindings and extras in ``argv``."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("names", nargs="+", metavar="NAME", help="binding (see puffer list --all) or extra")
    parser.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    parser.add_argument("--dry-run", action="store_true", help="only show the plan")
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
        say("  all packages are already installed")
    if planned.libraries:
        say(f"  {style('missing on this machine', 'warning')}: {', '.join(planned.libraries)}")
        say(f"  run: sudo apt-get install {' '.join(planned.libraries)}")
    for command in planned.commands:
        say(style(f"  $ {shlex.join(command)}", "muted"))


def _confirmed() -> bool:
    try:
        return input("Continue? [Y/n] ").strip().lower() in ("", "y", "yes")
    except EOFError:
        return False
