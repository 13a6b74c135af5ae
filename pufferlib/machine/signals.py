"""Handling of signals: those that end a training, and crashes that Python cannot catch."""

import _signal  # type: ignore[import-not-found]  # the signal module converts to enums, which takes microseconds
import contextlib
import faulthandler
import functools
import os
import signal
import subprocess
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator
from types import FrameType
from typing import Any

__all__ = [
    "ENDING_SIGNALS",
    "RequestedExit",
    "crash_explained",
    "deferred",
    "handle",
    "is_requested",
    "signals_exit",
    "uninterrupted",
]

#: Signals of batch systems and of a closed terminal, which end a program.
ENDING_SIGNALS = (signal.SIGTERM, signal.SIGHUP)

# Waits for the Python stack that a crash writes to the pipe. Prints nothing if the pipe closes without one.
_WATCH = 'stack=$(cat); [ -z "$stack" ] || printf "%s\\n\\n%s\\n" "$0" "$stack" >&2'


# Handlers that the program had before the contexts of this module. Processes that it forks get them back.
_outside: dict[int, Any] = {}
_fork = threading.local()  # mask of the signals of this thread before a fork


def _before_fork() -> None:
    """Block the signals of our contexts until the new process has its own handlers. It would lose them otherwise."""
    # A terminal sends Ctrl-C to every process, and ours finishes its update first, so SIGINT stays as it is.
    numbers = _outside.keys() - {signal.SIGINT}
    _fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, numbers) if numbers else None


def _after_fork(is_child: bool) -> None:
    """Let a forked process, such as a worker of a pool, end when it is terminated. It does not run our contexts."""
    if _fork.mask is None:
        return
    if is_child:
        for number in _outside.keys() - {signal.SIGINT}:
            signal.signal(number, _outside[number])
        _outside.clear()  # what this process forks has its handlers, as usual
    signal.pthread_sigmask(signal.SIG_SETMASK, _fork.mask)


os.register_at_fork(
    before=_before_fork,
    after_in_parent=functools.partial(_after_fork, False),
    after_in_child=functools.partial(_after_fork, True),
)


def handle(numbers: Iterable[signal.Signals], handler: Callable[[int, FrameType | None], None]) -> dict[int, Any]:
    """Let ``handler`` handle signals of this process. Processes that it forks have it only for SIGINT.

    Ignored signals stay ignored: ``nohup`` ignores SIGHUP, and a script that starts a job with ``&`` ignores SIGINT.

    Returns:
        Earlier handler of each signal that ``handler`` handles now.
    """
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    before = {number: earlier for number, earlier in before.items() if earlier is not signal.SIG_IGN}
    for number in before:
        _outside.setdefault(number, before[number])
        signal.signal(number, handler)
    return before


@contextlib.contextmanager
def _handled(numbers: tuple[signal.Signals, ...], handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    earlier = _outside.keys() & numbers
    before = handle(numbers, handler)
    try:
        yield
    finally:
        for number in before:
            signal.signal(number, before[number])
        for number in before.keys() - earlier:
            _outside.pop(number, None)  # a forked process has none


@contextlib.contextmanager
def deferred(*numbers: signal.Signals, then: Callable[[], None] = lambda: None) -> Iterator[list[int]]:
    """Return a context that defers the first signal of each number. The second one has its usual effect.

    Signals that the process ignores are not deferred.

    Processes that are forked in the context end on SIGTERM and SIGHUP as they do outside of it.

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
    own = os.getpid()
    before = {number: signal.getsignal(number) for number in numbers}

    def note(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, before[signal.Signals(number)])
        if os.getpid() == own:
            received.append(number)
            then()

    with _handled(numbers, note):
        yield received


@contextlib.contextmanager
def signals_exit() -> Iterator[None]:
    """Return a context in which ``ENDING_SIGNALS`` raise SystemExit, so that open files are saved or removed.

    The exit code is 128 plus the number of the signal: 143 for SIGTERM, 129 for SIGHUP.
    """

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread receives signals
        return
    with _handled(ENDING_SIGNALS, end):
        yield


class RequestedExit(SystemExit):
    """Exit that the user asked for, such as with the close button of a window."""


def is_requested(error: SystemExit) -> bool:
    """Return whether the user asked for an exit. If not, the code of an environment called ``sys.exit()``.

    An exit that a signal handler raised is requested, also if the handler is part of the user's program.
    """
    handlers = {getattr(signal.getsignal(number), "__code__", None) for number in signal.valid_signals()}
    frames = traceback.walk_tb(error.__traceback__)
    return isinstance(error, RequestedExit) or any(frame.f_code in handlers for frame, _ in frames)


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of a block that must not be interrupted, such as reading a message."""
    received: list[tuple[int, Any]] = []
    before = _signal.getsignal(signal.SIGINT)
    is_delayed = callable(before)
    if is_delayed:
        try:
            _signal.signal(signal.SIGINT, lambda number, frame: received.append((number, frame)))
        except ValueError:  # not the main thread, which alone gets signals
            is_delayed = False
    try:
        yield
    finally:
        if is_delayed:
            _signal.signal(signal.SIGINT, before)
        if received:
            before(*received[0])


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
