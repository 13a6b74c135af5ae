"""Public names, and the cost of importing them."""

import ast
import importlib
import re
import subprocess
import sys
from inspect import isfunction, ismodule, signature
from pathlib import Path

import pytest

import pufferlib

# Names that users can import from pufferlib itself. Names may be added but not removed.
PUBLIC = {
    "APIUsageError",
    "BindingMissing",
    "ClipAction",
    "EpisodeStats",
    "GymToGymnasium",
    "InvalidAgentError",
    "MeanOverAgents",
    "MultiagentEpisodeStats",
    "PettingZooTruncatedWrapper",
    "PufferEnv",
    "PufferError",
    "ResizeObservation",
    "UnknownNameError",
    "WorkerError",
    "__version__",
    "env_creator",
    "export",
    "list_envs",
    "load",
    "make",
    "register",
    "replay",
    "set_buffers",
    "sweep",
    "train",
}
DOORS = ["exports", "replays", "selfplay", "sweeps", "testing", "training", "vector"]


def modules_of(package):
    """Yield the dotted names of all modules of a package, found by their files."""
    root = Path(importlib.import_module(package).__file__).parent
    for path in root.rglob("*.py"):
        inside = path.relative_to(root).with_suffix("").parts
        if inside[-1] != "__main__":
            yield ".".join((package, *(name for name in inside if name != "__init__")))


MODULES = sorted({*modules_of("pufferlib"), *modules_of("pufferlib.bindings")})
# These modules import other libraries, which may be missing and are slow to import.
ADAPTERS = [
    name
    for name in MODULES
    if (name.startswith("pufferlib.bindings.") and name.count(".") > 2)
    or name in ("pufferlib.envpool.dm_env", "pufferlib.frameworks.rllib", "pufferlib.frameworks.torchrl")
    or name in ("pufferlib.robots.batch", "pufferlib.robots.originals", "pufferlib.robots.twin")
]


def loaded_by(statement):
    """Return the names of the modules that a fresh interpreter has loaded after ``statement``."""
    code = f"{statement}\nimport sys\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_public_names():
    assert set(pufferlib.__all__) == PUBLIC
    modules = set(dir(pufferlib)) - PUBLIC
    assert set(DOORS) < modules
    for name in modules:
        assert ismodule(getattr(pufferlib, name)), name


@pytest.mark.parametrize("door", DOORS)
def test_packages_export_the_names_of_their_modules(door):
    package = importlib.import_module(f"pufferlib.{door}")
    assert {name for name in dir(package) if not ismodule(getattr(package, name))} == set(package.__all__)
    for name in package.__all__:
        value = getattr(package, name)
        home = getattr(value, "__module__", "")
        if home.startswith("pufferlib."):  # constants and unions of types have no module
            assert name in importlib.import_module(home).__all__
    with pytest.raises(AttributeError, match=rf"module .pufferlib\.{door}. has no attribute .Puffer."):
        package.Puffer  # noqa: B018


@pytest.mark.parametrize("name", ["export", "replay", "sweep", "train"])
def test_verbs_are_functions_with_signatures(name):
    function = getattr(pufferlib, name)
    assert isfunction(function)
    assert signature(function).parameters


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("train", r"import from pufferlib\.training; pufferlib\.train is a function"),
        ("train.trainer", r"import from pufferlib\.training;"),
        ("sweep.launch", r"import from pufferlib\.sweeps;"),
        ("export", r"import from pufferlib\.exports;"),
        ("replay", r"import from pufferlib\.replays;"),
        ("pufferl", r"import from pufferlib\.training$"),
        ("clean_pufferl", r"import from pufferlib\.training$"),
        ("cleanrl", r"import from pufferlib\.frameworks\.cleanrl$"),
        ("environment", r"import from pufferlib$"),
        ("exceptions", r"import from pufferlib$"),
        ("policy_pool", r"import from pufferlib\.training$"),
        ("policy_ranker", r"import from pufferlib\.selfplay$"),
        ("postprocess", r"import from pufferlib\.wrappers$"),
        ("utils", r"import from pufferlib\.testing$"),
        ("environments.atari", r"import from pufferlib\.bindings, or call pufferlib\.make"),
    ],
)
def test_old_module_names_raise_and_give_the_new_ones(old, new):
    name = old.partition(".")[0]
    with pytest.raises(ModuleNotFoundError, match=rf"No module named .pufferlib\.{name}.: {new}") as raised:
        importlib.import_module(f"pufferlib.{old}")
    assert importlib.import_module(re.search(r"import from ([\w.]+)", str(raised.value))[1])
    if not hasattr(pufferlib, name):
        with pytest.raises(ModuleNotFoundError, match=new):
            exec(f"from pufferlib import {name}")
        with pytest.raises(AttributeError, match=rf"has no attribute .{name}.: {new}"):
            getattr(pufferlib, name)


@pytest.mark.parametrize("package", ["emulation", "runs"])
def test_import_from_the_wrong_package_names_the_right_one(package):
    message = rf"pufferlib\.{package} has no PufferEnv: import it from pufferlib$"
    with pytest.raises(ModuleNotFoundError, match=message):
        exec(f"from pufferlib.{package} import PufferEnv")
    assert not hasattr(importlib.import_module(f"pufferlib.{package}"), "PufferEnv")


def test_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match="module 'pufferlib' has no attribute 'Puffer'"):
        pufferlib.Puffer  # noqa: B018


def test_every_exported_name_exists():
    for name in sorted({*MODULES} - {*ADAPTERS}):
        module = importlib.import_module(name)
        exported = getattr(module, "__all__", None)
        if exported is None:
            public = [name for name, value in vars(module).items() if name[0] != "_" and not ismodule(value)]
            assert not public, f"{name} has no __all__ for {public}"
            continue
        assert sorted(set(exported)) == sorted(exported), name
        for export in exported:
            assert getattr(module, export, None) is not None, f"{name}.__all__ has {export}"


def test_every_exported_name_of_an_adapter_is_defined():
    for name in ADAPTERS:
        check_adapter(name)


def check_adapter(name):
    parts = name.split(".")
    depth = 3 if parts[1] == "bindings" else 2
    package, inside = ".".join(parts[:depth]), parts[depth:]
    folder = Path(importlib.import_module(package).__file__).parent
    file = folder.joinpath(*inside)
    body = ast.parse((file / "__init__.py" if file.is_dir() else file.with_suffix(".py")).read_text()).body
    assigned = {node.targets[0].id: node.value for node in body if isinstance(node, ast.Assign)}
    defined = {*assigned, *(node.name for node in body if hasattr(node, "name"))}
    exported = ast.literal_eval(assigned["__all__"]) if defined else []
    assert exported == sorted(set(exported)), name
    assert set(exported) <= defined, name


def test_import_loads_no_other_module():
    # The image starts Python with a finder of the installed package (docker/python).
    loaded = loaded_by("import pufferlib") - {"pufferlib_installed_first"}
    own = {"pufferlib", "pufferlib.imports"}
    assert {name for name in loaded if name.startswith("pufferlib")} == own
    assert not loaded & {"numpy", "torch", "gymnasium", "pettingzoo"}


def test_import_of_the_modules_of_the_worker_server_changes_no_signal_handler():
    code = """
import signal
from pufferlib.vector.multiprocessing import preload
print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, signal.getsignal(signal.SIGINT) is signal.default_int_handler)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "True"]


def test_environments_and_workers_do_not_import_torch():
    modules = ("vector.factory", "emulation", "wrappers", "ocean", "registry", "testing.check")
    assert "torch" not in loaded_by("".join(f"import pufferlib.{module}\n" for module in modules))


def test_vector_wrappers_are_imported_lazily():
    wrappers, use = "pufferlib.wrappers.vector", "pufferlib.wrappers.vector.FrameStack"
    assert wrappers not in loaded_by("import pufferlib.vector.factory, pufferlib.wrappers")
    assert wrappers in loaded_by(f"import pufferlib.wrappers\n{use}")


def test_vector_wrappers_are_available_under_both_names():
    assert pufferlib.vector.wrappers.FrameStack is pufferlib.wrappers.vector.FrameStack
    assert pufferlib.vector.wrappers.__all__ == pufferlib.wrappers.vector.__all__


def test_import_has_no_side_effects(tmp_path):
    code = (
        "import signal, warnings\n"
        "before = signal.getsignal(signal.SIGINT), list(warnings.filters)\n"
        "import pufferlib, pufferlib.emulation, pufferlib.vector\n"
        "assert before[0] is signal.getsignal(signal.SIGINT)\n"
        "assert not [f for f in warnings.filters if f not in before[1] and 'pufferlib' in str(f)]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
