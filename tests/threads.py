"""Fixture that limits the threads of torch. The conftest.py of a folder imports it."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Use one thread of torch. More threads than free cores slow small networks down a hundredfold."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
