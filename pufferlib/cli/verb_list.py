"""``puffer list``: the environments, and what each one needs."""

import json
import textwrap
from typing import Any

from pufferlib import ocean, registry
from pufferlib.cli.arguments import Parser
from pufferlib.cli.console import say, style

__all__ = ["run"]

WIDTH = 100


def run(argv: list[str]) -> int:
    """Print every name that ``pufferlib.make`` knows."""
    parser = Parser("puffer list", description="List the environments.", allow_abbrev=False)
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    options = parser.parse(argv)
    entries = [_entry(name) for name in registry.list_envs()]
    if options.json:
        say(json.dumps(entries, indent=2))
    else:
        _print(entries)
    return 0


def _entry(name: str) -> dict[str, Any]:
    binding = name.partition("/")[0] if "/" in name else None
    about = ocean.about(name) if binding is None else ""
    return {"name": name, "source": binding or "ocean", "about": about}


def _print(entries: list[dict[str, Any]]) -> None:
    own = [entry for entry in entries if entry["source"] == "ocean"]
    width = max((len(entry["name"]) for entry in own), default=0) + 2
    say(style(f"ocean, in C but for {' and '.join(ocean.python_names())}: {len(own)}", "bold"))
    for entry in own:
        say(f"  {style(entry['name'].ljust(width), 'accent')}{entry['about']}")
    for source in sorted({entry["source"] for entry in entries} - {"ocean"}):
        names = [entry["name"] for entry in entries if entry["source"] == source]
        say()
        say(style(f"{source}, with pip install 'pufferlib[{source}]': {len(names)}", "bold"))
        say(textwrap.fill(" ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    say()
    say(f"Train one: {style('puffer train breakout', 'accent')}")
