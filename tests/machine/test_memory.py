"""Memory that is freed stays with the process where it asked for that, and a learner asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

NEVER = "assert faults(10_000_000) < 10 < faults()"
INSIDE = "with freed_memory_kept():\n    assert faults() < 10"
AFTER = "with freed_memory_kept():\n    faults()\nassert faults(10_000_000) < 10 < faults()"
SEVERAL = """
first, second = freed_memory_kept(), freed_memory_kept()
first.__enter__(), second.__enter__(), first.__exit__(None, None, None)
assert faults() < 10
second.__exit__(None, None, None)
assert faults() > 10
"""
LEARNER = """
import pufferlib
few = {"env.num_envs": 8, "train.device": "cpu", "train.total_timesteps": 1024, "train.horizon": 16, "eval.episodes": 4}
seen = []
pufferlib.train("squared", few, runs=".", callbacks=[lambda trainer, metrics: seen.append(faults())])
assert seen[0] < 10 < faults()
"""
# Faults for bytes that were freed before. By itself glibc keeps 10 MB, and never 100: 24,414 pages, or 48 huge ones.
CODE = """
import ctypes, resource
from pufferlib.machine.memory import freed_memory_kept
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
def faults(size=100_000_000):
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        block = libc.malloc(size)
        ctypes.memset(block, 1, size)
        libc.free(block)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
"""


@pytest.mark.parametrize(
    "promise",
    [NEVER, INSIDE, AFTER, SEVERAL, pytest.param(LEARNER, marks=pytest.mark.all)],
    ids=["never", "inside", "after", "several", "learner"],
)
def test_pages_of_freed_arrays_are_not_asked_for_again(promise: str, tmp_path: Path) -> None:
    if promise == LEARNER:
        pytest.importorskip("torch", reason="the train extra is not installed")
    subprocess.run([sys.executable, "-c", CODE + promise], cwd=tmp_path, check=True)
