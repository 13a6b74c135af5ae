"""Handling of signals: those that end a training, and crashes that Python cannot catch."""

import contextlib
import faulthandler
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from types import FrameType

__all__ = ["crash_explained", "deferred", "ending_signals", "signals_exit"]

# Waits for the Python stack that a crash writes to the pipe. Prints nothing if the pipe closes without one.
_WATCH = 'stack=$(cat); [ -z "$stack" ] || printf "%s\\n\\n%s\\n" "$0" "$stack" >&2'


def ending_signals() -> tuple[signal.Signals, ...]:
    """Return SIGTERM and SIGHUP, which a closed terminal sends, but no SIGHUP if it is ignored, as by ``nohup``."""
    is_ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM,) if is_ignored else (signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def deferred(*numbers: signal.Signals, then: Callable[[], None] = lambda: None) -> Iterator[list[int]]:
    """Return a context that defers the first signal of each number. The second one has its usual effect.

    Args:
        numbers: Signals to defer.
        then: Function that is called for each deferred signal, between any two operations of the program.

    Yields:
        List to which each deferred signal is added.
    """
    received: list[int] = []
    if threading.current_thread() is not threading.main_thread():
        yield received  # only the main thread receives signals
        return
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)
        signal.signal(number, before[signal.Signals(number)])
        then()

    for number in numbers:
        signal.signal(number, note)
    try:
        yield received
    finally:
        for number in numbers:
            signal.signal(number, before[number])


@contextlib.contextmanager
def signals_exit() -> Iterator[None]:
    """Return a context in which ``ending_signals`` raise SystemExit, so that open files are saved or removed.

    The exit code is 128 plus the number of the signal: 143 for SIGTERM, 129 for SIGHUP.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    before = {number: signal.signal(number, end) for number in ending_signals()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def crash_explained(sentence: str) -> Iterator[None]:
    """Print ``sentence`` and the Python stack to standard error if the process crashes, as by a segmentation fault.

    This does nothing if ``faulthandler`` is already enabled, as in pytest.
    """
    if faulthandler.is_enabled():
        yield
        return
    reader, writer = os.pipe()
    command = ["/bin/sh", "-c", _WATCH, sentence]
    with subprocess.Popen(command, stdin=reader, stdout=subprocess.DEVNULL, start_new_session=True):
        os.close(reader)
        faulthandler.enable(writer)
        try:
            yield
        finally:
            faulthandler.disable()
            os.close(writer)
