"""Random and hostile calls of the native pool under the sanitizers for addresses and undefined behaviour."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import pufferlib
from tests.processes import own_modules

PACKAGE = Path(pufferlib.__file__).parent
ROOT = Path(__file__).parents[2]
TESTS = ("test_fuzz.py", "test_native.py", "test_native_arguments.py")
NO_LIBRARY = "the C compiler has no libraries for -fsanitize=address,undefined; install libasan and libubsan"


@pytest.fixture(scope="module")
def sanitized(tmp_path_factory):
    """Path of a build of the module, and of the library that must be loaded before it."""
    compiler = shutil.which("gcc")
    if compiler is None:
        pytest.skip("no gcc on PATH; install it")
    if importlib.util.find_spec("Cython") is None:
        pytest.skip("no Cython, which turns the module into C; pip install cython")
    folder = tmp_path_factory.mktemp("sanitized")
    flags = ["-3", "-X", "boundscheck=False", "-X", "wraparound=False", "-X", "cdivision=True"]
    cython = [sys.executable, "-m", "cython", *flags, "--module-name", "pufferlib.envpool._native"]
    source = PACKAGE / "envpool" / "_native.pyx"
    subprocess.run(
        [*cython, "-o", folder / "_native.c", source.relative_to(PACKAGE.parent)], check=True, cwd=PACKAGE.parent
    )
    command = [compiler, "-shared", "-fPIC", "-std=gnu11", "-O1", "-g", "-fsanitize=address,undefined"]
    includes = [f"-I{PACKAGE / 'native'}", f"-I{sysconfig.get_path('include')}"]
    built = folder / "_native.so"
    ran = subprocess.run([*command, *includes, folder / "_native.c", "-o", built], capture_output=True, text=True)
    if "cannot find" in ran.stderr:
        pytest.skip(NO_LIBRARY)
    assert ran.returncode == 0, ran.stderr
    library = subprocess.run(
        [compiler, "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout
    return built, library.strip()


@pytest.mark.all
@pytest.mark.timeout(3600)
def test_no_call_reads_or_writes_where_nothing_is(sanitized, nightly):
    built, library = sanitized
    environment = own_modules(
        SANITIZED_NATIVE=str(built),
        LD_PRELOAD=library,
        PYTHONMALLOC="malloc",  # or the sanitizer would not see where objects end
        ASAN_OPTIONS="detect_leaks=0",
        UBSAN_OPTIONS="halt_on_error=1",
    )
    tests = [Path(__file__).parent / name for name in TESTS]
    tier = ["--nightly"] if nightly else ["--all"]
    command = [sys.executable, "-m", "pytest", "-p", "tests.envpool.sanitized", "-q", "-x", "-n", "0", *tier]
    selection = ["-k", "Native or native", "--timeout", "1800"]
    ran = subprocess.run([*command, *selection, *tests], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-4000:]
