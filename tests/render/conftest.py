"""A clock for tests of what people watch."""

import pytest


@pytest.fixture
def clock(monkeypatch):
    """A clock that only sleeping moves on; nobody waits."""

    class Clock:
        now = 100.0
        monotonic = classmethod(lambda cls: cls.now)

        @classmethod
        def sleep(cls, seconds):
            cls.now += seconds

    monkeypatch.setattr("pufferlib.render.pace.time", Clock)
    return Clock
