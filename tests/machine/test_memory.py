"""A process that asked for it keeps the memory that it frees, and a learner asks for it."""

import subprocess
import sys
from pathlib import Path

import pytest

NOTHING = "pass"
ASKED = "from pufferlib.machine.memory import keep_freed_memory; assert keep_freed_memory()"
LEARNER = "from pathlib import Path; from tests.runs import untrained_run; untrained_run(Path())"
# Prints the page faults for 100 MB that were freed before: more than what glibc ever keeps by itself.
CODE = """
import ctypes, resource
{}
libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
for _ in range(5):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    block = libc.malloc(100_000_000)
    ctypes.memset(block, 1, 100_000_000)
    libc.free(block)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.parametrize(
    ("first", "keeps"),
    [(NOTHING, False), (ASKED, True), pytest.param(LEARNER, True, marks=pytest.mark.all)],
    ids=["nothing", "asked", "learner"],
)
def test_pages_of_freed_arrays_are_not_asked_for_again(first: str, keeps: bool, tmp_path: Path) -> None:
    if first == LEARNER:
        pytest.importorskip("torch", reason="the train extra is not installed")
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path.append({str(root)!r})\n{CODE.format(first)}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (int(done.stdout) < 10) is keeps  # of 24,414 pages, or of 48 huge ones
