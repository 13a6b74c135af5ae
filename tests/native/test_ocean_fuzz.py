"""Every C environment, played with hostile actions and extreme parameters under sanitizers."""

from pathlib import Path

import pytest

from pufferlib import ocean

OCEAN = Path(ocean.__file__).parent


@pytest.mark.all
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", ocean.names())
def test_no_action_and_no_parameter_breaks_it(name, run_program, nightly):
    steps = 1_000_000 if nightly else 50_000
    run_program(
        "ocean_fuzz",
        OCEAN / name / f"{name}.c",
        sanitizers="address,undefined,float-cast-overflow,float-divide-by-zero",
        flags=[f"-DENV_TYPE={name}_env"],
        arguments=[steps, 1],
    )
