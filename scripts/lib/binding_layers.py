"""The image layers of the bindings in the Dockerfile, as scripts/lock makes them of bindings/*/binding.toml.

Each binding has a layer of its own. Layers that are there keep their order and a new one comes last, so that a new
binding rebuilds none of the others.
"""

import re
from typing import Any

from resolver import ROOT, LockError

DOCKERFILE = ROOT / "Dockerfile"
MARKERS = ("# The bindings, made by scripts/lock from bindings/*/binding.toml:", "# end of the bindings")
_APT = ("type=cache,target=/var/cache/apt,sharing=locked", "type=cache,target=/var/lib/apt,sharing=locked")
_PYTHON = (
    "type=bind,from=uv,source=/opt/uv,target=/opt/uv",
    "type=cache,target=/var/cache/uv",
    "type=bind,from=uv,source=/opt/ca.crt,target=/etc/ssl/certs/ca-certificates.crt",
)


def with_layers(dockerfile: str, facts: dict[str, Any]) -> str:
    """Return the text of the Dockerfile with today's layers."""
    start, end = (re.escape(marker) for marker in MARKERS)
    pattern = rf"(?ms)(^{start}\n)(.*?)(^{end}$)"
    text, count = re.subn(pattern, lambda match: match[1] + rendered(match[2], facts) + match[3], dockerfile)
    if count != 1:
        raise LockError(f"Dockerfile: expected once {MARKERS[0]!r} and then {MARKERS[1]!r}, got them {count} times")
    return text


def rendered(before: str, facts: dict[str, Any]) -> str:
    """Return the stages, with the bindings in the order that they have in ``before``."""
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
    folder = f"bindings/{entry.name}"
    files = ["binding.toml", "lock.txt", *(["build.txt"] if entry.build else [])]
    return f"COPY {' '.join(f'{folder}/{name}' for name in files)} /opt/tank/{folder}/\n"


def _run(verb: str, entry: Any, more: list[str]) -> str:
    needs_apt = entry.apt_build if verb == "compile" else entry.apt
    mounts = [*(_APT if needs_apt else ()), *_PYTHON, *more]
    return "RUN " + "".join(f"--mount={mount} \\\n    " for mount in mounts) + f"binding {verb} {entry.name}\n"
