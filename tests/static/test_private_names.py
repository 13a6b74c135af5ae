"""Tests see the package as its users do: they use no private attribute of it, but for those listed here."""

import ast
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "pufferlib"

#: Names that Python documents, and compiled modules, of which some have no other in front of them.
COMMON = {"_exit", "_replace", "_asdict", "_fields", *(path.stem for path in PACKAGE.rglob("_*.pyx"))}

#: By file, the private names that are left, each with its reason.
LEFT = {
    "bindings/microrts_cases.py": {
        "_allowed _java_actions _java_masks": "the arrays that Java shares show which actions it takes for legal",
        "_started_in": "a process can start Java once",
    },
    "bindings/test_bsuite.py": {
        "_rewards": "bsuite's own",
    },
    "bindings/test_crafter.py": {
        "_env _step _world _objects _player": "crafter's own state, which no action reaches in short",
        "_noise3": "numba's cache of what opensimplex compiles",
    },
    "bindings/test_nmmo.py": {
        "_Nmmo": "the world with its checks of actions put back",
        "_atn_space _validate_actions _load_map_file": "nmmo's own",
    },
    "bindings/test_pokemon_red.py": {
        "_console": "saves a state to start from",
    },
    "bindings/test_retro.py": {"_lease": "stable-retro's own environment"},
    "bindings/test_vizdoom.py": {"_doom _pressed": "the buttons that an action presses"},
    "installation/test_doctor.py": {
        "_run _python _import_error _torch_cuda _CUDA_PROBE": "commands and imports of machines that are not here",
    },
    "installation/test_install.py": {
        "_has_module _installed _play": "packages that are not installed here",
    },
    "registry/test_registry.py": {"_binding _bindings": "bindings that are not installed"},
    "seeds/test_vectorization.py": {"_cores": "machines of other sizes"},
    "vector/test_multiprocessing.py": {
        "_config _forkserver _forkserver_pid": "multiprocessing's own",
    },
    "vector/test_never_hangs.py": {
        "_workers": "workers, to be killed",
    },
    "vector/test_ray.py": {"_runner _temp_dir": "an actor without Ray"},
}
PATCHES = {"setattr", "delattr", "getattr"}


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name != "_"


def private_names(tree):
    """Yield the line and name of every use of something private that belongs to another than ``self``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if is_own else [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("pufferlib", "bindings"):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in PATCHES:
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            names = [text.rpartition(".")[2] for text in texts]
        else:
            continue
        yield from ((node.lineno, name) for name in names if is_private(name))


def test_only_listed_private_names_are_used():
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 100  # the search finds them
    found, needless = [], []
    for path in files:
        file = path.relative_to(TESTS).as_posix()
        used = [(line, name) for line, name in private_names(ast.parse(path.read_text())) if name not in COMMON]
        listed = {name for names in LEFT.get(file, {}) for name in names.split()}
        found += [f"{file}:{line}: {name}" for line, name in used if name not in listed]
        needless += [f"{file}: {name}" for name in sorted(listed - {name for _, name in used})]
    assert not found, "use what is public, or make it so:\n" + "\n".join(found)
    assert not needless, "take these off the list:\n" + "\n".join(needless)
