import pytest
import torch

from tests.envs import TargetEnv


@pytest.fixture
def target_env():
    return TargetEnv


@pytest.fixture(autouse=True)
def one_thread():
    """More threads than free cores would slow these small networks down a hundredfold."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
