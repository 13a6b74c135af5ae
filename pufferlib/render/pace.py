"""Time between pictures."""

import time

__all__ = ["Pace"]


class Pace:
    """Lets something happen ``fps`` times a second, and never faster to catch up.

    Args:
        fps: Times a second, above 0.
    """

    def __init__(self, fps: float) -> None:
        self._interval_s = 1 / fps
        self._due = 0.0

    def wait(self) -> None:
        """Sleep until it is time again."""
        now = time.monotonic()
        if self._due > now:
            time.sleep(self._due - now)
        self._due = max(self._due, now) + self._interval_s
