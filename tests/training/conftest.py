import gc

import pytest

from tests.envs import TargetEnv
from tests.training.fake_cuda import install
from tests.training.fake_gpu import FakeGpu


@pytest.fixture
def target_env():
    return TargetEnv


@pytest.fixture
def gpus(monkeypatch):
    """Return two fake GPUs, on which the tensors of the test can be."""
    gpus = FakeGpu(count=2)
    install(gpus, monkeypatch)
    with gpus.modes():
        yield gpus
        gc.collect()  # finalizers need the fake GPUs
