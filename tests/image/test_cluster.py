"""Ray cluster of the Compose services `head` and `worker`."""

import contextlib
import json
import os
import re
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.image.engine import ROOT, build, docker, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not any(image.target == "tank" for image in images()),
        reason="image tests: the image tank is not built, or no Docker engine answers",
    ),
]

COMPOSE = ("docker", "compose", "--progress", "quiet", "--profile", "cluster")
# Half of the CPUs of the cluster, so that the other container has room for the lost environments.
STEPS = """
import socket
import gymnasium
import pufferlib.vector

class Host(gymnasium.Env):
    observation_space, action_space = gymnasium.spaces.Box(0, 1, (1,)), gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, 0.0, False, False, {}

    def host(self):
        return socket.gethostname()

envs = pufferlib.make(Host, num_envs=2, num_workers=2, backend=pufferlib.vector.Ray, on_crash="restart")
envs.reset(seed=1)
print("container", envs.call("host")[0], flush=True)
while not envs.worker_restarts:
    envs.step(envs.action_space.sample())
for _ in range(100):
    envs.step(envs.action_space.sample())
print("restarts", envs.worker_restarts, flush=True)
envs.close()
"""
NODES = (
    "import ray; ray.init(log_to_driver=False); print(sorted(node['Resources'].get('CPU', 0) for node in ray.nodes()))"
)


@pytest.fixture(autouse=True)
def _own_project(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep the containers separate from those of a developer."""
    monkeypatch.setenv("COMPOSE_PROJECT_NAME", "tank-test-cluster")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("TANK_DASHBOARD_PORT", str(port))
    yield
    run(*COMPOSE, "down", "--volumes", "--timeout", "1")


IN_HEAD = (*COMPOSE, "exec", "-T", "--env", "RAY_ADDRESS=head:6379", "head", "tank-entrypoint")
RAY = ("--vec.backend", "Ray", "--runs", "/tmp/runs", "--eval.episodes", "4")


def start_cluster() -> None:
    done = run(*COMPOSE, "up", "--detach", "--wait", "--scale", "worker=2", "worker")
    assert done.returncode == 0, done.stderr


def in_head(*command: str) -> str:
    done = run(*IN_HEAD, *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_environments_step_on_workers_of_a_scaled_cluster() -> None:
    start_cluster()
    assert in_head("python", "-c", NODES).splitlines()[-1] == "[0, 2.0, 2.0]"
    workers = ("--vec.num-envs", "4", "--vec.num-workers", "4")
    assert "score" in in_head("puffer", "train", "squared", *RAY, *workers, "--train.total-timesteps", "20000")


def test_environments_of_a_killed_worker_container_continue_on_another() -> None:
    start_cluster()
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
    with subprocess.Popen([*IN_HEAD, "python", "-c", STEPS], **pipes) as stepping:
        assert stepping.stdout
        lines = []
        for line in stepping.stdout:
            lines.append(line)
            if line.startswith("container "):
                docker("kill", line.split()[1])
    assert stepping.returncode == 0, "".join(lines)
    assert lines[-1] in ("restarts 1\n", "restarts 2\n"), "one for each worker in the container"


def test_port_in_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("TANK_DASHBOARD_PORT", str(server.getsockname()[1]))
        done = run(*COMPOSE, "up", "--detach", "head")
    assert done.returncode != 0
    assert "address already in use" in done.stderr


def version_at(url: str) -> str:
    """Return the version of Ray at a dashboard's address, which may start later than the head."""
    for _ in range(60):
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
            version: str = json.load(answer)["ray_version"]
            return version
        time.sleep(0.5)
    raise AssertionError(f"{url} does not answer")


def test_dashboard_answers_on_this_machine_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (dockerfile,) = re.findall(r"(?ms)^```dockerfile\n(.*?)^```$", (ROOT / "docs/clusters.md").read_text())
    name, _, tag = image_of("tank").rpartition(":")
    mine = f"puffertank-test-dashboard/tank:{tag}"
    try:
        build(dockerfile.replace("puffertank/tank:cpu", f"{name}:{tag}"), mine, tmp_path)
        monkeypatch.setenv("TANK_REGISTRY", "puffertank-test-dashboard")
        monkeypatch.setenv("TANK_PULL", "missing")
        done = run(*COMPOSE, "up", "--detach", "--wait", "head")
        assert done.returncode == 0, done.stderr
        address = run(*COMPOSE, "port", "head", "8265").stdout.strip()
        assert address == f"127.0.0.1:{os.environ['TANK_DASHBOARD_PORT']}"
        assert version_at(f"http://{address}/api/version") == "2.60.0"
    finally:
        run(*COMPOSE, "down", "--timeout", "1")
        run("docker", "image", "rm", "--force", mine)
