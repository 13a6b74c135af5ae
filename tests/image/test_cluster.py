"""Ray cluster of the Compose services `head` and `worker`."""

import socket
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.image.engine import ROOT, images, run

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


def test_training_survives_a_killed_worker_container() -> None:
    start_cluster()
    # Half of the CPUs of the cluster, so that the other container has room for the lost environments.
    workers = ("--vec.num-envs", "2", "--vec.num-workers", "2", "--vec.on-crash", "restart")
    train = ("puffer", "train", "squared", *RAY, *workers, "--train.total-timesteps", "100000")
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True, "cwd": ROOT}
    with subprocess.Popen([*IN_HEAD, *train], **pipes) as training:
        assert training.stdout
        lines = []
        for line in training.stdout:
            lines.append(line)
            if "steps/s" in line:
                break
        containers = run(*COMPOSE, "ps", "--quiet", "worker").stdout.split()
        killed = run("docker", "kill", containers[0])
        lines += training.stdout
    assert (len(containers), killed.returncode) == (2, 0)
    output = "".join(lines)
    assert training.returncode == 0, output
    assert "score" in output


def test_port_in_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("TANK_DASHBOARD_PORT", str(server.getsockname()[1]))
        done = run(*COMPOSE, "up", "--detach", "head")
    assert done.returncode != 0
    assert "address already in use" in done.stderr
