"""Building the C programs of these tests with sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

import pufferlib

PACKAGE = Path(pufferlib.__file__).parent
FLAGS = [
    *("-std=c11", "-D_GNU_SOURCE", "-g", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"),
    *(f"-I{PACKAGE / folder}" for folder in ("native", "ocean")),
]
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.fixture
def build(tmp_path):
    """Compile C sources into a program that stops at the first fault that a sanitizer finds."""

    def compiled(sanitizers, sources, *flags):
        if COMPILER is None:
            pytest.skip("no C compiler on PATH; install gcc")
        program = tmp_path / "program"
        sanitize = [f"-fsanitize={sanitizers}", "-fno-sanitize-recover=all"]
        command = [COMPILER, *FLAGS, *sanitize, *flags, *sources, "-o", program, "-lm"]
        ran = subprocess.run(command, capture_output=True, text=True)
        if "cannot find" in ran.stderr and "san" in ran.stderr:
            pytest.skip(
                f"the C compiler has no libraries for -fsanitize={sanitizers}; install libasan, libubsan, libtsan"
            )
        assert ran.returncode == 0, ran.stderr
        return program

    return compiled
