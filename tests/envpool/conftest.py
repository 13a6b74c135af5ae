"""Fixtures of the tests of pools."""

import pytest

from pufferlib.envpool import pool_env


@pytest.fixture(autouse=True)
def short_wait(monkeypatch):
    """Wait a second instead of a minute for threads that might send. Threads of earlier tests never do."""
    monkeypatch.setattr(pool_env, "SENDER_TIMEOUT_S", 1.0)
