import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.train import ppo
from pufferlib.train.config import TrainConfig
from pufferlib.train.learning import build_loss

CPU = torch.device("cpu")


def test_without_options_it_is_the_plain_loss():
    assert build_loss(TrainConfig(), CPU) is ppo.ppo_loss


@pytest.mark.parametrize(("named", "said"), [(None, r"c\+\+, g\+\+, clang\+\+"), ("mycc", "CXX=mycc")])
def test_a_missing_compiler_is_told_before_training(monkeypatch, named, said):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", named) if named else monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(APIUsageError, match=rf"train.compile needs a C\+\+ compiler, found none \({said}\); install"):
        build_loss(TrainConfig(compile=True), CPU)


def test_a_gpu_is_asked_for():
    with pytest.raises(APIUsageError, match=r"train\.cuda_graphs records the work of a GPU"):
        build_loss(TrainConfig(cuda_graphs=True), CPU)
