"""Signals that end a training: before it begins at once, later after the update in progress."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["deferred", "sigterm_exits"]


@contextlib.contextmanager
def deferred(number: signal.Signals) -> Iterator[threading.Event]:
    """While this holds, the first signal of that number only sets the event; the second does what it always does."""
    came = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield came  # only the main thread gets signals
        return
    before = signal.getsignal(number)

    def note(_signal: int, _frame: FrameType | None) -> None:
        came.set()
        signal.signal(number, before)

    signal.signal(number, note)
    try:
        yield came
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def sigterm_exits() -> Iterator[None]:
    """While this holds, SIGTERM raises SystemExit(143), so that what was begun is saved, or taken away again."""

    def end(_signal: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + signal.SIGTERM)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
