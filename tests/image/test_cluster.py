"""Ray cluster of the Compose services `head` and `worker`."""

import socket
from collections.abc import Iterator

import pytest

from tests.image.engine import images, run

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


def in_head(*command: str) -> str:
    done = run(*COMPOSE, "exec", "-T", "--env", "RAY_ADDRESS=head:6379", "head", "tank-entrypoint", *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_environments_step_on_workers_of_a_scaled_cluster() -> None:
    done = run(*COMPOSE, "up", "--detach", "--wait", "--scale", "worker=2", "worker")
    assert done.returncode == 0, done.stderr
    assert in_head("python", "-c", NODES).splitlines()[-1] == "[0, 2.0, 2.0]"
    ray = ("--vec.backend", "Ray", "--vec.num-envs", "4", "--vec.num-workers", "4")
    short = ("--train.total-timesteps", "20000", "--eval.episodes", "4", "--runs", "/tmp/runs")
    assert "score" in in_head("puffer", "train", "squared", *ray, *short)


def test_port_in_use_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("TANK_DASHBOARD_PORT", str(server.getsockname()[1]))
        done = run(*COMPOSE, "up", "--detach", "head")
    assert done.returncode != 0
    assert "address already in use" in done.stderr
