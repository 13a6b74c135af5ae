"""Imports between the parts of the package: a lower floor never imports a higher one."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = {
    **dict.fromkeys(("doors", "errors", "imports", "machine", "native", "render", "seeding", "spaces", ""), 0),
    **dict.fromkeys(("actions", "buffers", "env", "emulation", "legal_actions", "ocean"), 1),
    **dict.fromkeys(("vector", "vectorization", "autotune", "isolated", "registry", "replays", "testing"), 2),
    **dict.fromkeys(("wrappers", "bindings"), 2),
    **dict.fromkeys(("envpool", "frameworks", "models", "pytorch"), 3),
    **dict.fromkeys(("installation", "training"), 4),
    **dict.fromkeys(("analysis", "exports", "play", "selfplay", "sweeps"), 5),
    "cli": 6,
}
HEAVY = {"torch", "torchvision", "rich", "tyro", "matplotlib", "optuna"}
CYTHON = {".pyx", ".pxd"}
FACADES = {
    Path("__init__.py"),
    Path("imports.py"),
    Path("vector/__init__.py"),
}  # these name what others have, and load it on first use
FILES = [
    (path, path.relative_to(root))
    for root, folder in ((ROOT / "pufferlib", "pufferlib"), (ROOT, "bindings"))
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".pyi", *CYTHON}
]


def is_policy(inside):
    return inside.parts[0] in ("bindings", "ocean") and inside.name == "policy.py"


def part(dotted):
    """The part of pufferlib that a dotted name belongs to; "" for the package itself."""
    return [*dotted.split("."), ""][1]


def imports(path):
    """Dotted names of everything that a file imports, at its top or inside functions."""
    if path.suffix in CYTHON:
        yield from cython_imports(path.read_text())
        return
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:  # "from .neighbour import" stays inside
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def cython_imports(text):
    """Dotted names of what Cython imports and cimports; not in docstrings, whose lines do not begin so."""
    for module, several, one in re.findall(r"^ *from ([\w.]+) c?import (?:\(([^)]*)\)|(.+))", text, re.MULTILINE):
        yield from (f"{module}.{name.split()[0]}" for name in (several or one).split(",") if name.strip())
    for modules in re.findall(r"^ *c?import (.+)", text, re.MULTILINE):
        yield from (name.split()[0] for name in modules.split(","))


def test_the_imports_of_cython_are_read():
    text = "cimport a\nimport b as c, d\nfrom e.f cimport (\n    g, h as i,\n)\n    from j import k  # l\n# import m\n"
    assert set(cython_imports(text)) == {"a", "b", "d", "e.f.g", "e.f.h", "j.k"}
    assert "pufferlib.emulation._rows.Rows" in imports(ROOT / "pufferlib/vector/_env_loop.pyx")


def test_cython_is_pasted_nowhere():
    for path, _ in FILES:
        assert path.suffix not in CYTHON or not re.search(r"^ *include ", path.read_text(), re.MULTILINE), path


@pytest.mark.parametrize(("path", "inside"), FILES, ids=lambda value: str(value))
def test_floors(path, inside):
    own = "" if inside.parts == ("__init__.py",) else inside.parts[0].removesuffix(".py")
    if inside.name == "__main__.py":
        own = "cli"  # python -m is a command, wherever its module is
    if is_policy(inside):
        own = "models"  # the policy of an environment is a part of that, which the trainer loads by name
    assert own in FLOORS, f"put {own} on a floor"
    names = set(imports(path))
    if inside not in FACADES:
        inner = {part(name) for name in names if name.partition(".")[0] == "pufferlib"}
        higher = {name for name in inner if FLOORS.get(name, 0) > FLOORS[own]}
        assert not higher, f"{own} is on floor {FLOORS[own]} and imports {higher}"
    if FLOORS[own] < 3:
        assert not {name.partition(".")[0] for name in names} & HEAVY
    assert not any(name.startswith("pufferlib.bindings.") for name in names), "only the registry loads bindings"


@pytest.mark.parametrize("inside", [inside for _, inside in FILES if inside.parts[0] == "bindings"], ids=str)
def test_a_binding_uses_no_other_binding_and_leaves_its_policy_to_the_trainer(inside):
    for node in ast.walk(ast.parse((ROOT / inside).read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == len(inside.parts) - 1:  # from the folder of all bindings
            assert (node.module or node.names[0].name).startswith("_")
        elif isinstance(node, ast.ImportFrom) and node.level:
            assert "policy" not in (node.module, *(alias.name for alias in node.names))
