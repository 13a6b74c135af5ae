"""The table in docs/bindings.md, as scripts/lock makes it of bindings/*/binding.toml."""

import re
from typing import Any

from resolver import ROOT, LockError

PAGE = ROOT / "docs" / "bindings.md"
MARKERS = ("<!-- Made by scripts/lock from bindings/*/binding.toml: -->", "<!-- end of what scripts/lock makes -->")


def with_table(page: str, facts: dict[str, Any]) -> str:
    """Return the text of the page with today's table."""
    start, end = (re.escape(marker) for marker in MARKERS)
    text, count = re.subn(
        rf"(?ms)(^{start}\n).*?(^{end}$)", lambda found: f"{found[1]}{rendered(facts)}{found[2]}", page
    )
    if count != 1:
        raise LockError(
            f"docs/bindings.md: expected once {MARKERS[0]!r} and then {MARKERS[1]!r}, got them {count} times"
        )
    return text


def rendered(facts: dict[str, Any]) -> str:
    """Return the table, what must be provided, and the Debian packages."""
    here = [entry for entry in facts.values() if not entry.unavailable]
    lines = ["| Binding | For example | What it is | Licence | Install |", "| --- | --- | --- | --- | --- |"]
    for entry in here:
        cells = (
            f"[{entry.title}]({entry.homepage})",
            f"`{entry.name}/{entry.example}`",
            entry.about.rstrip("."),
            entry.licence,
            f"`{entry.command}`",
        )
        lines.append(f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |")
    lines += ["", "On no package index:", ""]
    lines += [f"- [{e.title}]({e.homepage}), `{e.name}/...`: {e.unavailable}." for e in facts.values() if e.unavailable]
    lines += ["", "Debian packages that some of them need (`sudo apt-get install ...`):", ""]
    for entry in here:
        needs = [f"`{name}` ({why})" for name, why in entry.apt.items()]
        needs += [f"to compile, `{name}` ({why})" for name, why in entry.apt_build.items()]
        lines += [f"- {entry.name}: {'; '.join(needs)}"] if needs else []
    return "\n".join([*lines, ""])
