"""MicroRTS, in a process of its own: Java and NetHack in one process end in a segmentation fault."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import missing_binding

HERE = Path(__file__).parent
ROOT = HERE.parents[2]

absent = missing_binding("microrts")
pytestmark = [pytest.mark.timeout(600), pytest.mark.skipif(bool(absent), reason=absent)]


def run(*arguments):
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"TANK_OWN_PROCESS": "microrts"},
    )


@pytest.mark.parametrize(
    "arguments", [[str(HERE / "microrts_cases.py")], ["tests/conformance/test_bindings.py", "-k", "microrts"]]
)
def test_it_keeps_its_promises(arguments):
    done = run("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout


@pytest.mark.skipif(bool(missing_binding("nethack")), reason="nle is not installed")
@pytest.mark.parametrize(
    ("first", "second"),
    [("microrts/basesWorkers8x8", "nethack/NetHackScore-v0"), ("nethack/NetHackScore-v0", "microrts/basesWorkers8x8")],
)
def test_beside_nethack_it_is_refused_before_it_crashes(first, second):
    done = run("-c", f"import pufferlib; a = pufferlib.make({first!r}); b = pufferlib.make({second!r})")
    assert done.returncode == 1
    assert "APIUsageError" in done.stderr
    assert "in one process end in a crash" in done.stderr
