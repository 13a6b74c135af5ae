"""Every C environment, played with hostile actions and extreme parameters under sanitizers."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pufferlib import ocean

SOURCE = Path(__file__).with_name("ocean_fuzz.c")
OCEAN = Path(ocean.__file__).parent
STEPS = 50_000
FLAGS = [
    *("-std=c11", "-g", "-O2", "-Wall", "-Wextra", "-Werror"),
    "-fsanitize=address,undefined,float-cast-overflow,float-divide-by-zero",
    "-fno-sanitize-recover=all",
]
COMPILER = shutil.which("cc") or shutil.which("gcc")


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on PATH; install gcc")
@pytest.mark.parametrize("name", ocean.names())
def test_no_action_and_no_parameter_breaks_it(name, tmp_path):
    program = tmp_path / "fuzz"
    sources = [SOURCE, OCEAN / name / f"{name}.c"]
    command = [COMPILER, *FLAGS, f"-I{OCEAN}", f"-DENV_TYPE={name}_env", *sources, "-o", program, "-lm"]
    compiled = subprocess.run(command, capture_output=True, text=True)
    if "cannot find" in compiled.stderr and "san" in compiled.stderr:
        pytest.skip("the C compiler has no sanitizer libraries; install libasan and libubsan")
    assert compiled.returncode == 0, compiled.stderr
    ran = subprocess.run(
        [program, str(STEPS), "1"], capture_output=True, text=True, env={"ASAN_OPTIONS": "abort_on_error=0"}
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
