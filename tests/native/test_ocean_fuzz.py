"""Every C environment, played with hostile actions and extreme parameters under sanitizers."""

import subprocess
from pathlib import Path

import pytest

from pufferlib import ocean

SOURCE = Path(__file__).with_name("ocean_fuzz.c")
OCEAN = Path(ocean.__file__).parent


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ocean.names())
def test_no_action_and_no_parameter_breaks_it(name, build, nightly):
    steps = 1_000_000 if nightly else 50_000
    sources = [SOURCE, OCEAN / name / f"{name}.c"]
    program = build("address,undefined,float-cast-overflow,float-divide-by-zero", sources, f"-DENV_TYPE={name}_env")
    ran = subprocess.run(
        [program, str(steps), "1"], capture_output=True, text=True, env={"ASAN_OPTIONS": "abort_on_error=0"}
    )
    assert ran.returncode == 0, ran.stderr[-4000:]
