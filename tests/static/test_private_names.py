"""Tests use no private names of the package, except for those listed here."""

import ast
import re
from pathlib import Path

TESTS = Path(__file__).parents[1]
PACKAGE = TESTS.parent / "pufferlib"

#: Documented names of the standard library, and compiled modules, some of which have no public module in front.
COMMON = {"_repr_html_", "_exit", "_replace", "_asdict", "_fields", *(path.stem for path in PACKAGE.rglob("_*.pyx"))}

#: Allowed private names by file, each with its reason.
LEFT = {
    "bindings/microrts_cases.py": {
        "_allowed _java_actions _java_masks": "arrays shared with Java show which actions are legal",
        "_started_in": "a process can start Java only once",
    },
    "bindings/test_bsuite.py": {
        "_rewards": "attribute of bsuite",
    },
    "bindings/test_crafter.py": {
        "_env _step _world _objects _player": "state of crafter that actions do not reach quickly",
        "_noise3": "numba's cache of what opensimplex compiles",
    },
    "bindings/test_nmmo.py": {
        "_Nmmo": "the world, to restore its checks of actions",
        "_atn_space _validate_actions _load_map_file": "attributes of nmmo",
    },
    "bindings/test_pokemon_red.py": {
        "_console": "saves a state to start from",
    },
    "bindings/test_retro.py": {"_lease": "environment of stable-retro"},
    "bindings/test_vizdoom.py": {"_doom _pressed": "the buttons that an action presses"},
    "installation/test_doctor.py": {
        "_run _python _import_error _torch_cuda _CUDA_PROBE": "fake commands and imports of other machines",
    },
    "installation/test_install.py": {
        "_has_module _installed _play": "fake packages",
    },
    "seeds/test_vectorization.py": {"_cores": "machines with other numbers of cores"},
    "training/fake_cuda.py": {
        "_C _group_tensors_by_device_and_dtype": "functions of torch without a public name",
    },
    "training/fake_gpu.py": {
        "_cdata": "address of a storage of torch",
        "_index_put_impl_ _local_scalar_dense": "operations of torch",
        "_getframe": "the line of a wait",
    },
    "vector/test_make.py": {"_cores": "a machine with two cores"},
    "vector/test_multiprocessing.py": {
        "_config _forkserver _forkserver_pid": "attributes of multiprocessing",
    },
    "vector/test_never_hangs.py": {
        "_workers": "workers to kill",
    },
    "vector/test_ray.py": {"_runner _temp_dir": "actor without Ray"},
}
PATCHES = {"setattr", "delattr", "getattr"}
#: Names with an underscore, except attributes of ``self`` and ``cls``. Files without one need not be parsed.
MAYBE_PRIVATE = re.compile(r"(?<!(?<![.\w])self\.)(?<!(?<![.\w])cls\.)(?<!\w)_\w+")


def is_private(name):
    return name.startswith("_") and not name.endswith("__") and name != "_"


def called(call):
    """Return the name of the function that a call calls, without the object that it belongs to."""
    return getattr(call.func, "attr", None) or getattr(call.func, "id", None)


def private_names(tree):
    """Yield the line and name of every use of a private name, except attributes of ``self`` and ``cls``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            is_own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if is_own else [node.attr]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in ("pufferlib", "bindings"):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in PATCHES:
            texts = [each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
            names = [text.rpartition(".")[2] for text in texts]
        else:
            continue
        yield from ((node.lineno, name) for name in names if is_private(name))


def uses_of(text):
    """Return the line and name of every use of a private name in a file, except for common names."""
    if not any(is_private(name) and name not in COMMON for name in MAYBE_PRIVATE.findall(text)):
        return []
    return [(line, name) for line, name in private_names(ast.parse(text)) if name not in COMMON]


def test_only_listed_private_names_are_used():
    files = sorted(TESTS.rglob("*.py"))
    assert len(files) > 100  # the search finds them
    found, needless = [], []
    for path in files:
        file = path.relative_to(TESTS).as_posix()
        used = uses_of(path.read_text())
        listed = {name for names in LEFT.get(file, {}) for name in names.split()}
        found += [f"{file}:{line}: {name}" for line, name in used if name not in listed]
        needless += [f"{file}: {name}" for name in sorted(listed - {name for _, name in used})]
    assert not found, "use public names, or make these public:\n" + "\n".join(found)
    assert not needless, "remove these unused names from LEFT:\n" + "\n".join(needless)
