"""Redirection of standard output and error, for both Python and C."""

import contextlib
import ctypes
import functools
import io
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["flush_output", "hidden_output", "hide_output_for_good", "hide_output_of", "redirected"]

DESCRIPTORS = (1, 2)  # standard output and error


def flush_output() -> None:
    """Flush the output buffers of Python and C."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


@contextlib.contextmanager
def redirected(descriptor: int, target: int) -> Iterator[None]:
    """Redirect file descriptor ``descriptor`` to ``target``."""
    try:
        before = os.dup(descriptor)
    except OSError:  # closed, as in a daemon
        yield
        return
    os.dup2(target, descriptor)
    try:
        yield
    finally:
        os.dup2(before, descriptor)
        os.close(before)


@contextlib.contextmanager
def hidden_output() -> Iterator[None]:
    """Discard everything that this process writes to standard output and error, in all threads."""
    flush_output()
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        with contextlib.ExitStack() as stack:
            for descriptor in DESCRIPTORS:
                stack.enter_context(redirected(descriptor, null))
            # The streams of notebooks do not write to the descriptors.
            stack.enter_context(contextlib.redirect_stdout(_NullStream()))
            stack.enter_context(contextlib.redirect_stderr(_NullStream()))
            stack.callback(flush_output)
            yield
    finally:
        os.close(null)


class _NullStream(io.TextIOBase):
    def write(self, text: str, /) -> int:
        return len(text)


def hide_output_of(owner: Any, *names: str) -> None:
    """Replace methods of ``owner`` by versions with hidden output."""
    for name in names:
        setattr(owner, name, _hidden(getattr(owner, name)))


def _hidden(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with hidden_output():
            return method(*args, **kwargs)

    return call


def hide_output_for_good() -> None:
    """Discard all further output of this process to standard output and error."""
    flush_output()
    null = os.open(os.devnull, os.O_WRONLY)
    for descriptor in DESCRIPTORS:
        os.dup2(null, descriptor)
    os.close(null)
