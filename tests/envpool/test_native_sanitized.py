"""Random and invalid calls with the sanitizers for addresses, undefined behavior and threads."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NamedTuple

import pytest

import pufferlib
from tests.processes import own_modules

HERE, PACKAGE = Path(__file__).parent, Path(pufferlib.__file__).parent
#: Options of CMakeLists.txt.
CYTHON = ("-3", "-X", "boundscheck=False", "-X", "wraparound=False", "-X", "cdivision=True")
#: Environments that the registry needs.
GAMES = ("acrobot", "cartpole", "mountain_car", "mountain_car_continuous", "pendulum")
#: Error of gcc's older libraries if the kernel's random memory layout collides with theirs. The test then turns
#: randomization off, which a container may forbid.
LAYOUT_ERROR = "unexpected memory mapping"


class SanitizedModules(NamedTuple):
    """Modules to build with sanitizers, the tests to run, and their selection."""

    sanitizers: str
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    chosen: str = "Native or native"


NATIVE, OCEAN = "pufferlib.envpool._native", "pufferlib.ocean._ocean"
WORKERS = tuple(f"pufferlib.envpool.workers.{name}" for name in ("_episodes", "_gather", "_queues"))
LIBRARIES = {"address,undefined": "libasan.so", "thread": "libtsan.so"}
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "UBSAN_OPTIONS": "halt_on_error=1", "TSAN_OPTIONS": "halt_on_error=1"}
RUNS = {
    "addresses": SanitizedModules(
        "address,undefined", (NATIVE,), ("test_fuzz.py", "test_native.py", "test_native_arguments.py")
    ),
    # The second module contains the helper threads, which the sanitizer must see as well.
    "threads": SanitizedModules("thread", (NATIVE, OCEAN), ("test_fuzz.py",)),
    # In the parent process and its workers. Threads are not tested, because these modules hold Python's global lock.
    "workers": SanitizedModules("address,undefined", WORKERS, ("test_fuzz.py",), "Workers"),
}


@pytest.mark.all
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] * (name == "workers")) for name in RUNS]
)
def test_random_calls_pass_the_sanitizers(name, nightly, tmp_path):
    sanitizers, modules, names, chosen = RUNS[name]
    build(sanitizers, modules, tmp_path)
    shutil.copy(HERE / "sanitized.py", tmp_path / "sitecustomize.py")
    environment = own_modules(
        SANITIZED=str(tmp_path),
        PYTHONMALLOC="malloc",  # so that the sanitizer sees the bounds of objects
        CC=f"gcc -g -fsanitize={sanitizers}",  # for the C files of tests
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        **OPTIONS,
    )
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    # Loaded before everything else. Its output must not be captured, because a finding ends the process.
    python = ["env", f"LD_PRELOAD={path_of(LIBRARIES[sanitizers])}", sys.executable]
    command = [*python, "-m", "pytest", "-q", "-x", "-s", "-n", "0", "--nightly" if nightly else "--all"]
    selection = ["-k", chosen, "--timeout", "1800", *(HERE / name for name in names)]
    ran = run([*command, *selection], environment)
    if LAYOUT_ERROR in ran.stderr:
        ran = run(["setarch", "--addr-no-randomize", *command, *selection], environment)
    if LAYOUT_ERROR in ran.stderr or "failed to set personality" in ran.stderr:
        pytest.skip("the thread sanitizer does not run on this kernel; lower vm.mmap_rnd_bits to 28")
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-4000:]


def run(command, environment):
    """Run a command in the folder of the repository."""
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=HERE.parents[1])


def build(sanitizers, modules, folder):
    """Build modules with sanitizers, with the settings of CMake."""
    if shutil.which("gcc") is None:
        pytest.skip("no gcc on PATH; install it")
    if importlib.util.find_spec("Cython") is None:
        pytest.skip("no Cython, which turns modules into C; pip install cython")
    for module in modules:
        source = Path(*module.split(".")).with_suffix(".pyx")
        made, sources = folder / f"{module}.c", write_ocean(folder) if module == OCEAN else ()
        command = [sys.executable, "-m", "cython", *CYTHON, "--module-name", module, "-o", made, source]
        subprocess.run(command, check=True, cwd=PACKAGE.parent)
        includes = [f"-I{PACKAGE / 'native'}", f"-I{PACKAGE / 'ocean'}", f"-I{sysconfig.get_path('include')}"]
        command = ["gcc", "-shared", "-fPIC", "-std=gnu11", "-O0", "-g", f"-fsanitize={sanitizers}", *includes]
        ran = subprocess.run(
            [*command, made, *sources, "-o", folder / f"{module}.so", "-lm"], capture_output=True, text=True
        )
        if "cannot find" in ran.stderr:
            pytest.skip(f"gcc has no libraries for -fsanitize={sanitizers}; install libasan, libubsan, libtsan")
        assert ran.returncode == 0, ran.stderr


def write_ocean(folder):
    """Write the C files of the Ocean module other than its own: the table of environments and a few environments."""
    table = (PACKAGE / "native" / "ocean_table.c.in").read_text()
    table = table.replace("@declarations@", "".join(f"extern const PufferEnvType {name}_env;\n" for name in GAMES))
    table = table.replace("@entries@", "".join(f"    &{name}_env,\n" for name in GAMES))
    (folder / "ocean_table.c").write_text(table)
    source_hash = folder / "source_hash.c"
    subprocess.run([sys.executable, "-I", PACKAGE / "native" / "source_hash.py", source_hash], check=True)
    return [folder / "ocean_table.c", source_hash, *(PACKAGE / "ocean" / name / f"{name}.c" for name in GAMES)]


def path_of(library):
    """Return the path of a library of the compiler."""
    command = ["gcc", f"-print-file-name={library}"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
