"""Imports between the parts of the package: a lower floor never imports a higher one."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FLOORS = {
    **dict.fromkeys(("errors", "machine", "native", "render", "seeding", "spaces", "_native", ""), 0),
    **dict.fromkeys(("actions", "buffers", "env", "emulation", "ocean"), 1),
    **dict.fromkeys(("vector", "isolated", "registry", "testing", "wrappers", "bindings"), 2),
    **dict.fromkeys(("models", "pytorch"), 3),
    **dict.fromkeys(("installation", "train"), 4),
    "play": 5,
    "cli": 6,
}
HEAVY = {"torch", "torchvision", "rich", "tyro", "matplotlib"}
FILES = [
    *((path, path.relative_to(ROOT / "pufferlib")) for path in (ROOT / "pufferlib").rglob("*.py")),
    *((path, "bindings" / path.relative_to(ROOT / "bindings")) for path in (ROOT / "bindings").rglob("*.py")),
]


def is_policy(inside):
    return inside.parts[0] in ("bindings", "ocean") and inside.name == "policy.py"


def part(dotted):
    """The part of pufferlib that a dotted name belongs to; "" for the package itself."""
    return [*dotted.split("."), ""][1]


def imports(path):
    """Dotted names of everything that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:  # "from .neighbour import" stays inside
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@pytest.mark.parametrize(("path", "inside"), FILES, ids=lambda value: str(value))
def test_floors(path, inside):
    own = "" if inside.parts == ("__init__.py",) else inside.parts[0].removesuffix(".py")
    if is_policy(inside):
        own = "models"  # the policy of an environment is a part of that, which the trainer loads by name
    assert own in FLOORS, f"put {own} on a floor"
    names = set(imports(path))
    if own:  # pufferlib/__init__.py names everything, and loads it on first use
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
