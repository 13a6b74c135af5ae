"""A thread for each tracker, so that training waits for none and ends with none."""

import threading
import time
import warnings
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from pufferlib.training.loggers.logger import Result, Tracker

__all__ = ["BackgroundTracker"]

# Seconds between two looks: W&B takes a third of the time for each update where they come in bursts.
INTERVAL_S = 2.0


class BackgroundTracker:
    """Hands a tracker metrics and result from a thread, in order, every two seconds.

    An update that comes sooner than ``interval_s`` after the last one is held back until the next takes its place, or
    the run ends: fast environments make many updates a second, which nobody sees apart in a plot. Once the tracker has
    failed it gets nothing more. The next call warns of that, once; the training goes on.

    Args:
        name: Of the tracker, for the warning.
        tracker: Gets its calls from one thread alone.
        interval_s: Seconds between two updates that it gets; 0: it gets each.
    """

    def __init__(self, name: str, tracker: Tracker, interval_s: float) -> None:
        self._name, self._tracker = name, tracker
        self._interval_s, self._next = interval_s, 0.0  # by time.monotonic()
        self._held: dict[str, float] | None = None
        self._calls: SimpleQueue[Callable[[], Any]] = SimpleQueue()
        self._closes = threading.Event()
        self._failure: Exception | None = None
        self._is_told = False
        self._thread = threading.Thread(target=self._work, name=f"logger {name}", daemon=True)
        self._thread.start()

    def log(self, metrics: dict[str, float]) -> None:
        """Let the tracker take the metrics of an update, or hold them back."""
        now = time.monotonic()
        self._held = dict(metrics)  # the caller may change them
        if now >= self._next:
            self._next = now + self._interval_s
            self._pass_on()
        self._tell()

    def finish(self, result: Result) -> None:
        """Let it take the result, after the last update."""
        self._pass_on()
        self._calls.put(lambda: self._tracker.finish(result))
        self._tell()

    def close(self) -> None:
        """Wait until it has taken everything, and close it; may be called twice."""
        if self._thread.is_alive():
            self._pass_on()
            self._calls.put(self._tracker.close)
            self._closes.set()
            self._thread.join()
        self._tell()

    def _pass_on(self) -> None:
        """Hand on the metrics that are held back, if there are any."""
        metrics, self._held = self._held, None
        if metrics is not None:
            self._calls.put(lambda: self._tracker.log(metrics))

    def _work(self) -> None:
        is_last = False
        while not is_last:
            is_last = self._closes.wait(INTERVAL_S)
            try:
                while self._failure is None:
                    self._calls.get_nowait()()
            except Empty:
                pass
            except Exception as error:  # whatever it is: it must not end the training
                self._failure = error

    def _tell(self) -> None:
        """Warn of a failure in the thread of the caller, who may have made an error of warnings."""
        if self._failure is not None and not self._is_told:
            self._is_told = True
            reason = str(self._failure).partition("\n")[0] or type(self._failure).__name__
            warnings.warn(
                f"{self._name} failed ({reason}), and gets nothing more of this run; training goes on, and "
                "metrics.jsonl has all figures",
                stacklevel=3,
            )
