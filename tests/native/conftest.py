"""Fixture that builds and runs the C programs of these tests with sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

import pufferlib

HERE, PACKAGE = Path(__file__).parent, Path(pufferlib.__file__).parent
FLAGS = [
    *("-std=c11", "-D_GNU_SOURCE", "-g", "-Og", "-Wall", "-Wextra", "-Werror", "-pthread"),
    *(f"-I{PACKAGE / folder}" for folder in ("native", "ocean")),
]
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture
def run_program(tmp_path):
    """Function that builds and runs a program of this folder. The test fails at the first error of a sanitizer."""

    def run(name, *sources, sanitizers="address,undefined", arguments=(), flags=()):
        program = _build(tmp_path / name, [*flags, HERE / f"{name}.c", *sources], sanitizers)
        ran = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
        if "unexpected memory mapping" in ran.stderr:  # the kernel uses addresses that an older gcc library reserves
            pytest.skip("the thread sanitizer does not run on this kernel; lower vm.mmap_rnd_bits to 28")
        assert ran.returncode == 0, ran.stdout + ran.stderr[-4000:]
        return ran.stdout

    return run


def _build(program, sources, sanitizers):
    if COMPILER is None:
        pytest.skip("no C compiler on PATH; install gcc")
    sanitize = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
    command = [COMPILER, *FLAGS, *sanitize, *sources, "-o", program, "-lm"]
    ran = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in ran.stderr and "san" in ran.stderr:
        pytest.skip(f"the C compiler has no libraries for -fsanitize={sanitizers}; install libasan, libubsan, libtsan")
    assert ran.returncode == 0, ran.stderr
    return program
