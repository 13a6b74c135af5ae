"""Tests of crash_explained, which prints a sentence if the process crashes."""

import subprocess
import sys

import pytest

CODE = """
import ctypes, sys
from pufferlib.machine.signals import crash_explained
with crash_explained("my.c crashed; look for it with check"):
    {}
print("done")
"""


@pytest.mark.parametrize(
    ("action", "code", "output", "start"),
    [
        ("ctypes.string_at(8)", -11, "", "my.c crashed; look for it with check\n\nFatal Python error: Segmentation"),
        ("pass", 0, "done\n", ""),
        ("sys.exit(3)", 3, "", ""),
    ],
)
def test_crash_is_explained(action: str, code: int, output: str, start: str) -> None:
    done = subprocess.run([sys.executable, "-c", CODE.format(action)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, output)
    assert done.stderr.startswith(start)
    assert bool(done.stderr) == bool(start)
