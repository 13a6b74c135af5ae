"""MicroRTS, in a separate process, because a process with Java must not be forked as some tests do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.needs import missing_binding

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

# Java's drawing library and NetHack both have a function start_timer, which NetHack calls when the hero dies. Procgen
# needs more stack than Java leaves by default.
TOGETHER = """
import pufferlib.vector
envs = [pufferlib.vector.make(pufferlib.env_creator(name), backend="Serial") for name in ({first!r}, {second!r})]
for env in envs:
    env.action_space.seed(1)
    env.reset(seed=3)
for _ in range(400):
    for env in envs:
        env.step(env.action_space.sample())
print("done")
"""

THREADS = """
from concurrent.futures import ThreadPoolExecutor
import pufferlib
with ThreadPoolExecutor(4) as threads:
    envs = list(threads.map(lambda _: pufferlib.make("microrts/basesWorkers8x8", num_games=1), range(4)))
print(len(envs))
"""

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
    "arguments",
    [
        [str(HERE / "microrts_cases.py")],
        ["tests/conformance/test_bindings.py", "-k", "microrts"],
        ["tests/learning/test_bindings.py", "-k", "microrts"],
    ],
    ids=["cases", "conformance", "learning"],
)
def test_test_files_pass_in_a_separate_process(arguments):
    done = run("-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *arguments)
    assert done.returncode == 0, done.stdout[-8000:]
    assert " passed" in done.stdout


@pytest.mark.parametrize("java_first", [True, False])
@pytest.mark.parametrize("other", ["nethack/NetHackScore-v0", "procgen/bigfish"])
def test_environments_of_other_bindings_run_in_the_same_process(other, java_first):
    if reason := missing_binding(other.partition("/")[0]):
        pytest.skip(reason)
    names = ["microrts/basesWorkers8x8", other]
    first, second = names if java_first else names[::-1]
    done = run("-c", TOGETHER.format(first=first, second=second))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_threads_can_make_the_first_environments_concurrently():
    done = run("-c", THREADS)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "4\n"
