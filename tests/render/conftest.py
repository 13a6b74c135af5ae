"""Clock for tests of rendering in real time."""

import pytest


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the renderer by one that advances only in sleep, without waiting."""

    class Clock:
        now = 100.0
        monotonic = classmethod(lambda cls: cls.now)

        @classmethod
        def sleep(cls, seconds):
            cls.now += seconds

    monkeypatch.setattr("pufferlib.render.pace.time", Clock)
    return Clock
