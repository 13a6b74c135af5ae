"""Fuzz tests of every C environment, with hostile actions and parameters under sanitizers."""

import shutil
from pathlib import Path

import pytest

from pufferlib import ocean
from pufferlib.ocean.fuzz import fuzz_file

OCEAN = Path(ocean.__file__).parent
STEPS = 2_000
SLOW = dict.fromkeys(("enduro", "moba", "nmmo3", "snake", "trash_pickup"), 400)
NIGHT = 1_000_000


@pytest.mark.all
@pytest.mark.timeout(1800)
@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")
@pytest.mark.parametrize("name", ocean.names())
def test_fuzzing_finds_no_defects(name, tmp_path, monkeypatch, nightly):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    steps = NIGHT if nightly else SLOW.get(name, STEPS)
    report = fuzz_file(str(OCEAN / name / f"{name}.c"), steps=steps)
    assert report.defects == (), "\n".join(map(str, report.defects))
    if "address" not in report.sanitizers:
        pytest.skip("the C compiler has no libraries for -fsanitize=address; install libasan and libubsan")
