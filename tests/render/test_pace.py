"""Tests of the frame rate."""

from pufferlib.render.pace import Pace


def test_pace_does_not_catch_up_after_late_frame(clock):
    pace = Pace(10)
    times = []
    for late in (0, 0, 0.35, 0, 0):
        clock.now += late
        pace.wait()
        times.append(round(clock.now - 100, 3))
    assert times == [0, 0.1, 0.45, 0.55, 0.65]
