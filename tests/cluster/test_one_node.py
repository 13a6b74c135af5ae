"""Tests of the Ray backend without a cluster: Ray starts one node on this machine."""

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pufferlib.vector
from pufferlib.errors import APIUsageError
from tests.conformance.test_vector_backends import check
from tests.envs import SamplePufferEnv
from tests.tiers import as_nightly

ray = pytest.importorskip("ray", reason="Ray is not installed: puffer install ray")

pytestmark = [
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("default"),  # Ray warns about itself
]
TIMEOUT_S = 120


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    yield
    ray.shutdown()


@pytest.mark.all
@pytest.mark.parametrize("kind", ["gymnasium", as_nightly("pettingzoo")])
def test_same_bytes_as_serial(kind):
    check(kind, {"backend": "Ray", "num_workers": 2, "batch_size": 2, "zero_copy": False}, 100, "same_step")


@pytest.mark.all
@pytest.mark.parametrize("is_restarted", [False, True])
def test_environments_of_ended_session_raise_and_close(is_restarted):
    vecenv = pufferlib.vector.make(SamplePufferEnv, num_envs=2, num_workers=1, backend="Ray")
    vecenv.reset()
    ray.shutdown()
    if is_restarted:
        ray.init("local", num_cpus=1, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
    for use in (lambda: vecenv.send(vecenv.action_space.sample()), vecenv.reset, vecenv.notify):
        with pytest.raises(APIUsageError, match=r"ray\.shutdown was called after they were made; make new ones"):
            use()
    assert vecenv.worker_pids == []
    vecenv.close()
    assert ray.is_initialized() == is_restarted


class Loud(SamplePufferEnv):
    """Environment that returns where its process writes stdout and stderr."""

    def where_output_goes(self):
        return [os.readlink(f"/proc/self/fd/{descriptor}") for descriptor in (1, 2)]


@pytest.mark.all
@pytest.mark.parametrize("hide_output", [True, as_nightly(False)])
def test_hide_output_redirects_env_output(hide_output):
    options = {"num_envs": 2, "num_workers": 2, "overwork": True, "hide_output": hide_output}
    with pufferlib.vector.make(Loud, backend="Ray", **options) as vecenv:
        vecenv.reset()
        for where in vecenv.call("where_output_goes"):
            assert (where == ["/dev/null"] * 2) == hide_output


SCRIPT = """
import os, subprocess, sys
import gymnasium, pufferlib, pufferlib.vector

class Env(pufferlib.PufferEnv):
    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=0, high=1, shape=(1,))
        self.single_action_space = gymnasium.spaces.Discrete(2)
        self.num_agents = 1
        super().__init__(buf)

    def reset(self, seed=None):
        return self.observations, []

    def step(self, actions):
        print("the environment prints")
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        pass

for _ in range(2):  # the second one is never closed
    vecenv = pufferlib.vector.make(Env, num_envs=4, num_workers=2, overwork=True, backend="Ray")
    vecenv.reset()
    print(vecenv.step([0, 1, 0, 1])[0].shape)
    if _ == 0:
        vecenv.close()

import ray
address = ray.get_runtime_context().gcs_address
strange = f"from ray._raylet import GcsClient; GcsClient(address={address!r})"
done = subprocess.run([sys.executable, "-c", strange], env={"HOME": "/nowhere"}, capture_output=True, text=True)
print("refused" if "Authentication token is missing" in done.stderr else done)
"""


def test_local_node_requires_token_and_ends_with_script(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    command = [sys.executable, str(tmp_path / "script.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert (process.returncode, out, err) == (0, "(4, 1)\n" * 2 + "refused\n", "")
    deadline = time.monotonic() + TIMEOUT_S
    while list(raylets_of(process.pid)):
        assert time.monotonic() < deadline, "the node is still running"
        time.sleep(0.05)


def raylets_of(pid):
    """Yield the processes of the Ray session that process ``pid`` started. Its name ends in ``pid``."""
    for command in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if re.search(rb"/session_[0-9_-]+_%d/" % pid, command.read_bytes()):
                yield command
