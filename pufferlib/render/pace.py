"""Limiter of the frame rate."""

import time

__all__ = ["Pace"]


class Pace:
    """Rate limiter. After a delay it does not run faster to catch up.

    Args:
        fps: Calls per second, above 0.
    """

    def __init__(self, fps: float) -> None:
        self._interval_s = 1 / fps
        self._due = 0.0

    def wait(self) -> None:
        """Sleep until the next call is due."""
        now = time.monotonic()
        if self._due > now:
            time.sleep(self._due - now)
        self._due = max(self._due, now) + self._interval_s
