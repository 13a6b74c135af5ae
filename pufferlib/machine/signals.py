"""Signals that end a training: before it begins at once, later after the update in progress."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["deferred", "ending_signals", "signals_exit"]


def ending_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, and SIGHUP, which a closed terminal sends. Without SIGHUP where it is ignored, as by ``nohup``."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM,) if is_ignored else (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def deferred(*numbers: signal.Signals) -> Iterator[list[int]]:
    """While this holds, the first signal of each number is only put on the list; the second does what it always does.

    Args:
        numbers: Signals to defer.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread gets signals
        return
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])

    for number in numbers:
        signal.signal(number, note)
    try:
        yield received
    finally:
        for number in numbers:
            signal.signal(number, before[number])


@contextlib.contextmanager
def signals_exit() -> Iterator[None]:
    """While this holds, each of ``ending_signals`` raises SystemExit, so that what was begun is saved or removed.

    The exit code is 128 and the number of the signal: 143 for SIGTERM, 129 for SIGHUP.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread gets signals
        return
    before = {number: signal.signal(number, end) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
