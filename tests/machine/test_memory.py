"""Tests of freed_memory_kept, which lets the process keep freed memory. Training uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.tiers import once

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
# Count page faults of memory that was freed before. By default glibc keeps 10 MB, but never 100 MB, which is 24,414
# pages, or 48 huge pages.
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
    "check",
    once([NEVER, INSIDE, AFTER, SEVERAL, LEARNER], [INSIDE, SEVERAL]),
    ids=["never", "inside", "after", "several", "learner"],
)
def test_freed_memory_is_reused_without_page_faults(check: str, tmp_path: Path) -> None:
    if check == LEARNER:
        pytest.importorskip("torch", reason="the train extra is not installed")
    subprocess.run([sys.executable, "-c", CODE + check], cwd=tmp_path, check=True)
