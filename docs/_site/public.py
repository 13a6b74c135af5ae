"""Public names for the pages of the reference. Does not need Sphinx, so that tests can use it.

A page lists modules in a `{public-names}` block, which is replaced by autodoc directives. A name that several modules
export is documented with the first of them in `MODULES`, and only mentioned with the others.
"""

import importlib
import inspect
import re
import typing
from functools import cache
from pathlib import Path

# Modules whose `__all__` defines the public names.
MODULES = (
    "pufferlib",
    "pufferlib.env",
    "pufferlib.wrappers",
    "pufferlib.errors",
    "pufferlib.buffers",
    "pufferlib.vector",
    "pufferlib.replays",
    "pufferlib.wrappers.vector",
    "pufferlib.vectorization",
    "pufferlib.emulation",
    "pufferlib.ocean",
    "pufferlib.testing",
    "pufferlib.spaces",
    "pufferlib.seeding",
    "pufferlib.registry",
    "pufferlib.registry.facts",
    "pufferlib.isolated",
    "pufferlib.envpool",
    "pufferlib.envpool.spec",
    "pufferlib.envpool.pool",
    "pufferlib.models",
    "pufferlib.models.engine",
    "pufferlib.frameworks.cleanrl",
    "pufferlib.frameworks.gymnasium",
    "pufferlib.frameworks.pettingzoo",
    "pufferlib.frameworks.rllib",
    "pufferlib.frameworks.sb3",
    "pufferlib.frameworks.torchrl",
    "pufferlib.pytorch",
    "pufferlib.training",
    "pufferlib.runs",
    "pufferlib.selfplay",
    "pufferlib.sweeps",
    "pufferlib.exports",
    "pufferlib.render.view",
    "pufferlib.render.window",
    "pufferlib.render.video",
)
BLOCK = re.compile(r"^```\{(?P<kind>public-names|c-header)\}\n(?P<items>(?:\S+\n)+)```$", re.MULTILINE)
DIRECTIVES = {
    "Functions": "autofunction",
    "Classes": "autoclass",
    "Errors": "autoexception",
    "Values": "autodata",
    "Types": "py:type",
}
_SECTION = re.compile(r"^/\* -+ (.+?) -+ \*/\n", re.MULTILINE)


def expand(page: str, root: Path) -> str:
    """Return a page with its blocks replaced by their contents. Paths of C headers are relative to `root`."""

    def contents(block: re.Match[str]) -> str:
        items = block["items"].split()
        if block["kind"] == "c-header":
            return "\n\n".join(_header((root / item).read_text()) for item in items)
        if len(items) == 1:
            return _module(items[0], "## {}\n\n")
        return "\n\n".join(f"## {item}\n\n{_module(item, '')}" for item in items)

    return BLOCK.sub(contents, page)


def public_names(module: str) -> dict[str, object]:
    """Return the public names of a module with their values, including the environments of `pufferlib.ocean`."""
    loaded = importlib.import_module(module)
    environments = [name for name in dir(loaded) if name[0].isupper()] if module == "pufferlib.ocean" else []
    return {name: getattr(loaded, name) for name in sorted({*loaded.__all__, *environments})}


@cache
def homes() -> dict[int, str]:
    """Return the full name under which each public object is documented, by `id()` of the object."""
    found: dict[int, str] = {}
    for module in MODULES:
        for name, value in public_names(module).items():
            found.setdefault(id(value), f"{module}.{name}")
    return found


def group(value: object) -> str:
    """Return the heading for an object."""
    is_type = inspect.isclass(value) or typing.get_origin(value) is not None
    if is_type and not getattr(value, "__module__", "pufferlib").startswith("pufferlib"):
        return "Types"  # alias of another library's class
    if inspect.isclass(value):
        return "Errors" if issubclass(value, BaseException) else "Classes"
    return "Functions" if callable(value) else "Values"


def bases(value: type) -> list[type]:
    """Return the base classes to document. Private and compiled bases are left out."""
    inner = re.compile(r".*\._\w+|builtins|gymnasium\.utils\.record_constructor")
    public = (base for base in value.__bases__ if not base.__name__.startswith("_"))
    return [base for base in public if not inner.fullmatch(base.__module__)]


def _module(module: str, heading: str) -> str:
    """Return the directives for a module's public names, grouped by heading."""
    names = public_names(module)
    own = {name: value for name, value in names.items() if homes()[id(value)] == f"{module}.{name}"}
    opening = f".. automodule:: {module}\n   :no-members:\n\n.. currentmodule:: {module}\n\n"
    documented = [name for name, value in own.items() if group(value) not in ("Types", "Values")]
    if len(documented) > 1:
        opening += ".. autosummary::\n   :nosignatures:\n\n" + "".join(f"   {name}\n" for name in documented)
    if elsewhere := [f":py:obj:`{name} <{homes()[id(names[name])]}>`" for name in names if name not in own]:
        opening += f"\nAlso here: {', '.join(elsewhere)}.\n"
    parts = [_rst(opening)]
    for title in DIRECTIVES:
        members = [_directive(title, name, value) for name, value in own.items() if group(value) == title]
        if members:
            parts.append(heading.format(title) + _rst(f".. currentmodule:: {module}\n\n" + "\n".join(members)))
    return "\n\n".join(parts)


def _directive(title: str, name: str, value: object) -> str:
    if title == "Types":
        known = f"{value.__module__}.{value.__qualname__}" if inspect.isclass(value) else str(value)
        return f".. py:type:: {name}\n   :canonical: {known}\n"
    inherits = inspect.isclass(value) and bases(value)
    return f".. {DIRECTIVES[title]}:: {name}\n" + ("   :show-inheritance:\n" if inherits else "")


def _rst(text: str) -> str:
    return f"```{{eval-rst}}\n{text}```"


def _header(text: str) -> str:
    """Return a C header as Markdown, with its opening comment as text and each section below a heading."""
    opening, *sections = _SECTION.split(text)
    comment = "\n".join(line[3:] for line in opening.split(" */")[0].splitlines())
    parts = [f"```text\n{comment}\n```"]
    for title, code in zip(sections[::2], sections[1::2], strict=True):
        parts.append(f"## {title}\n\n```c\n{code.strip()}\n```")
    return "\n\n".join(parts)
