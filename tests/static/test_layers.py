"""Imports between the parts of the package. A lower floor never imports a higher one."""

import ast
import functools
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
FLOORS = {
    **dict.fromkeys(("errors", "imports", "machine", "native", "render", "seeding", "spaces", "text", ""), 0),
    **dict.fromkeys(("actions", "buffers", "env", "emulation", "legal_actions", "ocean"), 1),
    **dict.fromkeys(("vector", "vectorization", "autotune", "isolated", "registry", "replays"), 2),
    **dict.fromkeys(("bindings", "box2d", "robots", "wrappers"), 2),
    **dict.fromkeys(("envpool", "frameworks", "models", "pytorch", "settings"), 3),
    **dict.fromkeys(("installation", "runs"), 4),
    "training": 5,
    **dict.fromkeys(("exports", "play", "selfplay", "sweeps", "testing"), 6),
    "web": 7,
    "cli": 8,
}
HEAVY = {"torch", "torchvision", "rich", "tyro", "matplotlib", "optuna"}
CYTHON = {".pyx", ".pxd"}
FACADES = {
    Path("__init__.pyi"),
    Path("imports.py"),
    Path("vector/__init__.pyi"),
}  # these re-export names of other modules, which are imported lazily
FILES = [
    (path, path.relative_to(root))
    for root, folder in ((ROOT / "pufferlib", "pufferlib"), (ROOT, "bindings"))
    for path in sorted((ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".pyi", *CYTHON}
]


def is_policy(inside):
    return inside.parts[0] in ("bindings", "ocean") and inside.name == "policy.py"


def part(dotted):
    """Return the part of pufferlib that a dotted name belongs to, or "" for the package itself."""
    return [*dotted.split("."), ""][1]


@functools.cache
def text_of(path):
    return path.read_text()


@functools.cache
def tree_of(path):
    return ast.parse(text_of(path))


@functools.cache
def nodes(path):
    """Return the statements of a Python file that import something, at its top or inside functions and classes."""
    found, blocks = [], [tree_of(path)]
    while blocks:  # ast.walk would also visit expressions, which are most of a tree
        for node in ast.iter_child_nodes(blocks.pop()):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found.append(node)
            elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
                blocks.append(node)
    return found


def imports(path):
    """Yield the dotted names of everything that a file imports, at its top or inside functions."""
    if path.suffix in CYTHON:
        yield from cython_imports(text_of(path))
        return
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:  # "from .neighbor import" stays inside
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def cython_imports(text):
    """Yield the dotted names that a Cython file imports and cimports."""
    for module, several, one in re.findall(r"^ *from ([\w.]+) c?import (?:\(([^)]*)\)|(.+))", text, re.MULTILINE):
        yield from (f"{module}.{name.split()[0]}" for name in (several or one).split(",") if name.strip())
    for modules in re.findall(r"^ *c?import (.+)", text, re.MULTILINE):
        yield from (name.split()[0] for name in modules.split(","))


def test_cython_imports_are_parsed():
    text = "cimport a\nimport b as c, d\nfrom e.f cimport (\n    g, h as i,\n)\n    from j import k  # l\n# import m\n"
    assert set(cython_imports(text)) == {"a", "b", "d", "e.f.g", "e.f.h", "j.k"}
    assert "pufferlib.emulation._rows.Rows" in imports(ROOT / "pufferlib/vector/_env_loop.pyx")


def test_cython_files_have_no_include():
    for path, _ in FILES:
        assert path.suffix not in CYTHON or not re.search(r"^ *include ", text_of(path), re.MULTILINE), path


def test_no_module_imports_a_higher_floor():
    wrong = [f"{inside}: {reason}" for path, inside in FILES for reason in misplaced_imports(path, inside)]
    assert not wrong, "\n".join(wrong)


def misplaced_imports(path, inside):
    """Yield what is wrong with the imports of a file."""
    own = "" if inside.stem == "__init__" and len(inside.parts) == 1 else Path(inside.parts[0]).stem
    if inside.name == "__main__.py":
        own = "cli"  # python -m is part of the command line
    if is_policy(inside):
        own = "models"  # policies of environments are loaded by the trainer
    if own not in FLOORS:
        yield f"put {own} on a floor"
        return
    names = set(imports(path))
    if inside not in FACADES:
        inner = {part(name) for name in names if name.partition(".")[0] == "pufferlib"}
        higher = {name for name in inner if FLOORS.get(name, 0) > FLOORS[own]}
        if higher:
            yield f"{own} is on floor {FLOORS[own]} and imports {higher}"
    heavy = {name.partition(".")[0] for name in names} & HEAVY
    if heavy and FLOORS[own] < 3:
        yield f"{own} is on floor {FLOORS[own]}, and {heavy} may be imported from floor 3 on"
    if any(name.startswith("pufferlib.bindings.") for name in names):
        yield "only the registry loads bindings"


def test_bindings_import_no_other_binding_and_not_their_policy():
    for inside in (inside for _, inside in FILES if inside.parts[0] == "bindings"):
        check_relative_imports(inside)


def check_relative_imports(inside):
    for node in nodes(ROOT / inside):
        if isinstance(node, ast.ImportFrom) and node.level == len(inside.parts) - 1:  # relative import from bindings/
            assert (node.module or node.names[0].name).startswith("_"), inside
        elif isinstance(node, ast.ImportFrom) and node.level:
            assert "policy" not in (node.module, *(alias.name for alias in node.names)), inside


def module_of(path):
    """Return the dotted name of a Python file of the package."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def import_graph():
    """Return the modules that each module of pufferlib imports, also for type checkers and inside functions.

    Doors of packages are left out: they name what their modules define, and import it on first use. Compiled modules
    are left out too.
    """
    files = {module_of(path): path for path in (ROOT / "pufferlib").rglob("*.py")}
    doors = {"pufferlib", *(name for name, path in files.items() if "open_door(__name__" in text_of(path))}
    modules = files.keys() - doors
    compiled = {module_of(path) for path, _ in FILES if path.suffix == ".pyx"}

    def targets(path):
        for name in (*imports(path), *names_for_import_module(path)):
            yield name if name in files else "" if name in compiled else name.rpartition(".")[0]

    return {name: {*targets(files[name])} & modules - {name} for name in sorted(modules)}


def names_for_import_module(path):
    """Yield the names that a file passes to importlib.import_module as literals."""
    if "importlib.import_module" not in text_of(path):
        return
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "importlib.import_module":
            yield from (argument.value for argument in node.args if isinstance(argument, ast.Constant))


def find_circle(graph):
    """Return the modules of a circle, or an empty list."""
    done, path = set(), []

    def visit(name):
        if name in path:
            return path[path.index(name) :]
        if name in done:
            return []
        path.append(name)
        found = next((circle for each in sorted(graph[name]) if (circle := visit(each))), [])
        path.pop()
        done.add(name)
        return found

    return next((circle for name in graph if (circle := visit(name))), [])


def test_a_circle_is_found():
    assert find_circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c"]


def test_no_modules_import_each_other():
    """No module needs itself through others, so each can be read and tested after those that it imports."""
    circle = find_circle(import_graph())
    assert not circle, f"these import each other: {' -> '.join(circle)}"
