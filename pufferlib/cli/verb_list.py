"""``puffer list``: the environments, and what each one needs."""

import json
import textwrap
from typing import Any

from pufferlib import ocean, registry
from pufferlib.cli.arguments import Parser
from pufferlib.cli.console import say, style
from pufferlib.install import state

__all__ = ["run"]

WIDTH = 100


def run(argv: list[str]) -> int:
    """Print every name that ``pufferlib.make`` knows, or every binding."""
    parser = Parser("puffer list", description="List the environments.", allow_abbrev=False)
    parser.add_argument("--all", action="store_true", help="the bindings: what is installed, and how to get the others")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    options = parser.parse(argv)
    if options.all:
        found = [_binding(facts) for facts in registry.facts().values()]
        say(json.dumps(found, indent=2)) if options.json else _print_bindings(found)
        return 0
    entries = [_entry(name) for name in registry.list_envs()]
    say(json.dumps(entries, indent=2)) if options.json else _print(entries)
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
    for source, facts in registry.facts().items():
        names = [entry["name"] for entry in entries if entry["source"] == source]
        way = "with what you provide (puffer list --all)" if facts.unavailable else f"with {facts.command}"
        say()
        say(style(f"{source}, {way}: {len(names)}", "bold"))
        say(textwrap.fill(" ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))
    say()
    say(f"Train one: {style('puffer train breakout', 'accent')}")


def _binding(facts: Any) -> dict[str, Any]:
    return {
        "name": facts.name,
        "title": facts.title,
        "about": facts.about,
        "licence": facts.licence,
        "homepage": facts.homepage,
        "environments": len(registry.names(facts.name)),
        "state": state(facts),
        "install": "" if facts.unavailable else facts.command,
        "unavailable": facts.unavailable,
    }


def _print_bindings(found: list[dict[str, Any]]) -> None:
    width = max((len(entry["name"]) for entry in found), default=0) + 2
    for entry in (entry for entry in found if not entry["unavailable"]):
        mark = style("✓", "good") if entry["state"] else " "
        say(f"{mark} {style(entry['name'].ljust(width), 'accent')}{_sentence(entry, width)}")
        say(f"{'':{width + 2}}{style(entry['state'] or entry['install'], 'muted')}")
    say()
    say(style("On no package index; these work once you provide what they say:", "bold"))
    for entry in (entry for entry in found if entry["unavailable"]):
        text = f"{_sentence(entry, width)}\n{_wrapped(entry['unavailable'], width)}"
        say(f"  {style(entry['name'].ljust(width), 'accent')}{text}")


def _sentence(entry: dict[str, Any], width: int) -> str:
    return _wrapped(f"{entry['title']}, {entry['environments']} environments: {entry['about']}", width).lstrip()


def _wrapped(text: str, width: int) -> str:
    indent = " " * (width + 2)
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
