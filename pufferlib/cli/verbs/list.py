"""``puffer list``: list environments and bindings."""

import json
import sys
import textwrap
from collections.abc import Sequence
from typing import Any

from pufferlib import ocean, registry
from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import UnknownNameError
from pufferlib.installation.install import state
from pufferlib.machine.commands import as_typed, in_image

__all__ = ["run"]

PROG = "puffer list"
OCEAN = "ocean"
OTHERS = "registered"  # source of registered names without a slash
WIDTH = 100


def run(argv: list[str]) -> int:
    """Print the names of environments, or all bindings."""
    parser = Parser(PROG, description="List the environments.")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help=f"{OCEAN}, binding or package (default: all)")
    parser.add_argument("--all", action="store_true", help="list the bindings, and how to install them")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    options = parser.parse(argv)
    entries = [_entry(name) for name in registry.list_envs()]
    known = tuple(dict.fromkeys([OCEAN, *registry.binding_facts(), *(entry["source"] for entry in entries)]))
    sources = options.sources or known
    for source in sources:
        if source not in known:
            raise UnknownNameError.of(PROG, "binding", source, known)
    if options.all:
        found = [_binding(facts) for facts in registry.binding_facts().values() if facts.name in sources]
        say(json.dumps(found, indent=2)) if options.json else _print_bindings(found)
        return 0
    entries = [entry for entry in entries if entry["source"] in sources]
    if options.json:
        say(json.dumps(entries, indent=2))
    elif options.sources or not sys.stdout.isatty():
        _print(sources, entries)
    else:
        _print_families(sources, entries)
    return 0


def _entry(name: str) -> dict[str, Any]:
    source = name.partition("/")[0] if "/" in name else None
    if registration := registry.registrations().get(name):
        return {"name": name, "source": source or OTHERS, "about": registration.about}
    return {"name": name, "source": source or OCEAN, "about": "" if source else ocean.about(name)}


def _print_families(sources: Sequence[str], entries: Sequence[dict[str, Any]]) -> None:
    """Print one line for each source, without the names of its environments."""
    width = max(map(len, sources)) + 2
    for source in sources:
        count = sum(entry["source"] == source for entry in entries)
        facts = registry.binding_facts().get(source)
        about = facts.title if facts else "in this package" if source == OCEAN else "from outside this repository"
        way = f", {_availability(facts)}" if facts else ""
        say(f"  {style(source.ljust(width), 'accent')}{count:>4}  {about}{style(way, 'muted')}")
    say()
    say(f"Show names: {style(as_typed(f'{PROG} {OCEAN}'), 'accent')}, or for all sources: {PROG} | cat")
    say(f"Train one: {style(as_typed('puffer train breakout'), 'accent')}")


def _print(sources: Sequence[str], entries: Sequence[dict[str, Any]]) -> None:
    """Print the names of each source."""
    for source in sources:
        found = [entry for entry in entries if entry["source"] == source]
        if source == OCEAN:
            _print_described(f"{OCEAN}, in C except {' and '.join(ocean.python_names())}", found)
        elif source not in registry.binding_facts():
            _print_described(f"{source}, from outside this repository", found)
        else:
            _print_names(registry.binding_facts()[source], [entry["name"] for entry in found])
        say()
    example = "breakout" if OCEAN in sources else entries[0]["name"]
    say(f"Train one: {style(as_typed(f'puffer train {example}'), 'accent')}")


def _print_described(title: str, entries: Sequence[dict[str, Any]]) -> None:
    width = max(len(entry["name"]) for entry in entries) + 2
    say(style(f"{title}: {len(entries)}", "bold"))
    for entry in entries:
        say(f"  {style(entry['name'].ljust(width), 'accent')}{entry['about']}")


def _print_names(facts: Any, names: Sequence[str]) -> None:
    say(style(f"{facts.name}, {_availability(facts)}: {len(names)}", "bold"))
    say(textwrap.fill(" ".join(names), WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False))


def _availability(facts: Any) -> str:
    """Return the state of a binding, or the command that installs it."""
    if facts.unavailable:
        return f"needs files from you ({as_typed('puffer list --all')})"
    return state(facts) or f"with {_install(facts)}"


def _install(facts: Any) -> str:
    """Return the command that installs a binding. In an image, this is a command for another image."""
    return f"docker compose run --rm {facts.image}" if in_image() else as_typed(facts.command)


def _binding(facts: Any) -> dict[str, Any]:
    return {
        "name": facts.name,
        "title": facts.title,
        "about": facts.about,
        "licence": facts.licence,
        "homepage": facts.homepage,
        "environments": len(registry.names(facts.name)),
        "state": state(facts),
        "install": "" if facts.unavailable else _install(facts),
        "unavailable": facts.unavailable,
    }


def _print_bindings(found: list[dict[str, Any]]) -> None:
    width = max((len(entry["name"]) for entry in found), default=0) + 2
    for entry in (entry for entry in found if not entry["unavailable"]):
        mark = style("✓", "good") if entry["state"] else " "
        say(f"{mark} {style(entry['name'].ljust(width), 'accent')}{_sentence(entry, width)}")
        say(f"{'':{width + 2}}{style(entry['state'] or entry['install'], 'muted')}")
    if unavailable := [entry for entry in found if entry["unavailable"]]:
        say(style("\nNot on a package index. These work after you provide what they need:", "bold"))
    for entry in unavailable:
        text = f"{_sentence(entry, width)}\n{_wrapped(entry['unavailable'], width)}"
        say(f"  {style(entry['name'].ljust(width), 'accent')}{text}")


def _sentence(entry: dict[str, Any], width: int) -> str:
    return _wrapped(f"{entry['title']}, {entry['environments']} environments: {entry['about']}", width).lstrip()


def _wrapped(text: str, width: int) -> str:
    indent = " " * (width + 2)
    return textwrap.fill(text, WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False)
