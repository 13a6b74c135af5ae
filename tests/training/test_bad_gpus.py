"""GPUs that cannot be used, or are too small: one error before training, and no run left behind."""

import re

import pytest
import torch

import pufferlib
from pufferlib.cli import main, run_display
from pufferlib.errors import APIUsageError
from pufferlib.models import Default
from tests.tiers import as_all, once
from tests.training.test_fake_gpu import NATIVE, SMALL

pytestmark = [
    pytest.mark.skipif(torch.cuda.is_available(), reason="test_on_gpu.py uses the GPU of this machine"),
    pytest.mark.usefixtures("blank_curves"),
]

FULL = (
    "CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has 1.00 MiB free. If reserved but unallocated memory is "
    "large try setting PYTORCH_ALLOC_CONF=expandable_segments:True"
)

FEW = ("--eval.episodes=1", "--eval.video-seconds=1")


def run_command(*flags):
    """Run ``puffer train breakout`` in a folder of its own. Return the exit code."""
    sizes = {**SMALL, **NATIVE}
    return main(
        ["train", "breakout", *(f"--{name.replace('_', '-')}={value}" for name, value in sizes.items()), *flags]
    )


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (
            RuntimeError("CUDA error: CUDA-capable device(s) is/are busy or unavailable\nFor debugging consider"),
            "train.device cuda:{index} cannot be used: CUDA error: CUDA-capable device(s) is/are busy or unavailable; "
            "run puffer doctor --gpu, choose another GPU, or set train.device to cpu",
        ),
        (
            RuntimeError("CUDA error: no kernel image is available for execution on the device"),
            "train.device cuda:{index} cannot be used: CUDA error: no kernel image is available",
        ),
        (torch.OutOfMemoryError(FULL), "train.device cuda:{index} cannot be used: CUDA out of memory. Tried to"),
    ],
    ids=["busy", "old", "full"],
)
@pytest.mark.parametrize("device", once(["auto", "cuda", "cuda:1"], ["cuda:1"]))
def test_gpu_that_cannot_be_used_is_one_error_before_training(
    gpus, tmp_path, monkeypatch, capsys, device, error, message
):
    """Nothing is left behind."""
    gpus.failure = error
    message = message.format(index=int(device == "cuda:1"))
    with pytest.raises(APIUsageError, match=re.escape(message)):
        pufferlib.train("breakout", {**SMALL, **NATIVE, "train.device": device}, runs=tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    assert run_command("--train.device", device) == 1
    printed = capsys.readouterr()
    assert message in printed.err
    assert "Traceback" not in printed.err
    assert len(printed.err.splitlines()) == 1
    assert not list(tmp_path.glob("runs/*/*"))


@pytest.mark.parametrize("place", ["start", "first update", "graph"])
def test_full_memory_of_gpu_is_explained(gpus, tmp_path, monkeypatch, capsys, place):
    """The run folder is removed if no update succeeded."""
    real, calls = Default.forward, []

    def forward(policy, *inputs):
        if len(calls) == (0 if place == "first update" else 2):  # the third call is recorded
            raise torch.OutOfMemoryError(FULL)
        calls.append(None)
        return real(policy, *inputs)

    if place == "start":
        monkeypatch.setattr(Default, "to", lambda *args: (_ for _ in ()).throw(torch.OutOfMemoryError(FULL)))
    else:
        monkeypatch.setattr(Default, "forward", forward)
    monkeypatch.chdir(tmp_path)
    assert run_command("--train.device", "cuda", "--train.minibatch-size=8") == 1
    printed = capsys.readouterr()
    assert "train: the memory of cuda:0 is full: CUDA out of memory. Tried to allocate 20.00 MiB." in printed.err
    assert "lower train.minibatch_size" in printed.err
    assert "Traceback" not in printed.err
    assert not list(tmp_path.glob("runs/*/*"))


@pytest.mark.parametrize(
    ("has_driver", "device", "is_told"), [(True, "auto", True), as_all((True, "cpu", False)), (False, "auto", False)]
)
def test_gpu_that_torch_cannot_use_is_reported(tmp_path, monkeypatch, capsys, has_driver, device, is_told):
    """Training continues on the CPU."""
    if has_driver:
        (tmp_path / "nvidiactl").touch()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(run_display, "NVIDIA", tmp_path / "nvidiactl")
    monkeypatch.chdir(tmp_path)
    assert run_command("--train.device", device, "--train.total-timesteps=64", *FEW) == 0
    printed = capsys.readouterr()
    assert "breakout on the CPU" in printed.out
    note = "torch cannot use the NVIDIA GPU of this machine; to see why: puffer doctor --gpu"
    assert (note in printed.err.replace("`", "")) == is_told


@pytest.mark.parametrize(("count", "device", "seen"), [(0, "cuda", "no GPU"), (2, "cuda:7", "2 GPUs")])
def test_missing_gpu_is_one_error_before_training(gpus, tmp_path, monkeypatch, capsys, count, device, seen):
    gpus.count = count
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.chdir(tmp_path)
    assert run_command("--train.device", device) == 1
    (error,) = capsys.readouterr().err.splitlines()
    assert f"sees {seen}, got '{device}'" in error
    assert "run puffer doctor to see why" in error
    assert not list(tmp_path.glob("runs/*/*"))
