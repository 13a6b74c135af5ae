"""The CUDA image on a GPU: compose.gpu.yaml, the driver, a kernel, and a short training run."""

import shutil

import pytest

from tests.image.engine import LIMIT_S, images, run

HAS_IMAGE = any((image.target, image.device) == ("tank", "cuda") for image in images())
HAS_GPU = bool(shutil.which("nvidia-smi")) and run("nvidia-smi", "-L").returncode == 0
pytestmark = [
    pytest.mark.image,
    pytest.mark.timeout(LIMIT_S),
    pytest.mark.skipif(
        not HAS_IMAGE, reason="the image tank for CUDA is not built: TANK_DEVICE=cuda docker compose build tank"
    ),
    pytest.mark.skipif(not HAS_GPU, reason="no GPU here: nvidia-smi finds none"),
]


def compose(*command: str) -> str:
    files = ("-f", "compose.yaml", "-f", "compose.gpu.yaml")
    done = run("env", "TANK_DEVICE=cuda", "docker", "compose", *files, "run", "--rm", "-T", "tank", *command)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_kernel_runs_on_every_gpu_of_the_container() -> None:
    assert "torch uses it with CUDA" in compose("puffer", "doctor", "--gpu")


@pytest.mark.parametrize("memory", ["none", "MinGRU"])
def test_breakout_trains_on_the_gpu(memory: str) -> None:
    settings = ("--train.device", "cuda", "--train.total-timesteps", "600000", "--policy.memory", memory)
    assert "breakout on the GPU" in compose("puffer", "train", "breakout", *settings, "--runs", "/tmp/runs")
