"""Fixtures of the tests of pools."""

import pytest

from pufferlib.envpool import pool_env

SENDER_TIMEOUT_S = pool_env.SENDER_TIMEOUT_S


@pytest.fixture(autouse=True)
def short_wait(monkeypatch):
    """Wait a second instead of a minute for threads that might send. Threads of earlier tests never do."""
    monkeypatch.setattr(pool_env, "SENDER_TIMEOUT_S", 1.0)


@pytest.fixture
def whole_wait(short_wait, monkeypatch):
    """Wait a minute, in tests with a thread that sends, which a busy machine may delay."""
    monkeypatch.setattr(pool_env, "SENDER_TIMEOUT_S", SENDER_TIMEOUT_S)
