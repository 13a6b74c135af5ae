"""Generated parts of files, which scripts/lock makes from bindings/*/binding.toml. Two marker lines enclose each part.

In the Dockerfile, each binding has its own layer. Existing layers keep their order and a new layer is added at the end,
so that a new binding does not rebuild the others.
"""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from resolver import ROOT, LockError

_APT = ("type=cache,target=/var/cache/apt,sharing=locked", "type=cache,target=/var/lib/apt,sharing=locked")
_PYTHON = (
    "type=bind,from=uv,source=/opt/uv,target=/opt/uv",
    "type=cache,target=/var/cache/uv",
    "type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt",
)


def rendered(facts: dict[str, Any]) -> dict[Path, str]:
    """Return the expected text of each file that has a generated part."""
    texts: dict[Path, str] = {}
    for name, start, end, render in _PARTS:
        path = ROOT / name
        text = texts.get(path) or path.read_text()
        texts[path] = _with_part(name, text, start, end, lambda before, render=render: render(facts, before))
    return texts


def _with_part(name: str, text: str, start: str, end: str, make: Callable[[str], str]) -> str:
    pattern = rf"(?ms)(^{re.escape(start)}\n)(.*?)(^{re.escape(end)}$)"
    text, count = re.subn(pattern, lambda found: found[1] + make(found[2]) + found[3], text)
    if count != 1:
        raise LockError(f"{name}: expected {start!r} followed by {end!r} exactly once, found {count} times")
    return text


def untyped(facts: dict[str, Any], before: str) -> str:
    """Return the modules of the bindings for mypy, which must not depend on which of them are installed."""
    modules = {module for entry in facts.values() for module in entry.modules} - _TYPED
    return "".join(f'    "{module}.*",\n' for module in sorted(modules))


def extras(facts: dict[str, Any], before: str) -> str:
    """Return the extras of the bindings for pyproject.toml."""
    lines = [f"{entry.extra_name} = {json.dumps(list(entry.requires))}" for entry in facts.values() if entry.extra]
    common = ",".join(entry.extra_name for entry in facts.values() if entry.common)
    return "\n".join([*lines, f'common = ["pufferlib[{common}]"]', ""])


def page(facts: dict[str, Any], before: str) -> str:
    """Return the part of docs/bindings.md: the table, the unavailable bindings, and the Debian packages."""
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
        for label, packages in ((entry.name, entry.apt), (f"{entry.name}, to compile", entry.apt_build)):
            needs = [f"`{name}` ({why})" for name, why in packages.items()]
            lines += [f"- {label}: {', '.join(needs)}"] if needs else []
    return "\n".join([*lines, ""])


def layers(facts: dict[str, Any], before: str) -> str:
    """Return the stages of the Dockerfile. Bindings keep their order in ``before``, and new ones come last."""
    there = re.findall(r"(?m)\bbinding install (\w+)$", before)
    known = {name: entry for name, entry in facts.items() if not entry.unavailable}
    order = [name for name in dict.fromkeys([*there, *known]) if name in known]
    entries = [known[name] for name in order]
    stages = [_compiled(entry) for entry in entries if entry.build]
    for stage, parent, common in (("common", "envs", True), ("full", "common", False)):
        stages.append(f"FROM {parent} AS {stage}\n")
        stages += [_layer(entry) for entry in entries if entry.common is common]
    return "\n".join([*stages, ""])


def _compiled(entry: Any) -> str:
    return f"FROM compilers AS {_stage(entry)}\n{_copy(entry)}{_run('compile', entry, [])}"


def _layer(entry: Any) -> str:
    mounts = [f"type=bind,from={_stage(entry)},source=/wheels,target=/mnt/wheels"] if entry.build else []
    mounts += ["type=bind,from=strip,target=/mnt/strip"] if entry.strip else []
    return f"# {entry.title}\n{_copy(entry)}{_run('install', entry, mounts)}"


def _stage(entry: Any) -> str:
    return f"{entry.name.replace('_', '-')}-wheels"


def _copy(entry: Any) -> str:
    return f"COPY --from=recipes /recipes/bindings/{entry.name} /\n"


def _run(verb: str, entry: Any, more: list[str]) -> str:
    needs_apt = entry.apt_build if verb == "compile" else entry.apt
    mounts = [*(_APT if needs_apt else ()), *_PYTHON, *more]
    return "RUN " + "".join(f"--mount={mount} \\\n    " for mount in mounts) + f"binding {verb} {entry.name}\n"


# Modules whose types mypy reads, because scripts/lint installs them or pufferlib depends on them.
_TYPED = {"ale_py", "cv2", "pettingzoo", "pygame"}

_PARTS = (
    (
        "Dockerfile",
        "# The bindings, made by scripts/lock from bindings/*/binding.toml:",
        "# end of the bindings",
        layers,
    ),
    (
        "pyproject.toml",
        "# The extras of the bindings, made by scripts/lock from bindings/*/binding.toml:",
        "# end of the bindings",
        extras,
    ),
    (
        "pyproject.toml",
        "# The modules of the bindings, made by scripts/lock from bindings/*/binding.toml:",
        "# end of the modules",
        untyped,
    ),
    (
        "docs/bindings.md",
        "<!-- Made by scripts/lock from bindings/*/binding.toml: -->",
        "<!-- end of what scripts/lock makes -->",
        page,
    ),
)
