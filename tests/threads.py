"""Threads of torch in tests; the conftest.py of a folder imports what its tests are to have."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """More threads than free cores would slow these small networks down a hundredfold."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
