"""Standard output and error of this process, as Python and C write to them."""

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
    """Write out what Python and C still have in their buffers."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.CDLL(None).fflush(None)


@contextlib.contextmanager
def redirected(descriptor: int, target: int) -> Iterator[None]:
    """Let ``descriptor`` lead to where the open file ``target`` leads."""
    try:
        before = os.dup(descriptor)
    except OSError:  # closed, as of a daemon
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
    """Drop what this process, in any of its threads, writes to standard output and error."""
    flush_output()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        with contextlib.ExitStack() as stack:
            for descriptor in DESCRIPTORS:
                stack.enter_context(redirected(descriptor, nowhere))
            # Streams of notebooks lead elsewhere than to the descriptors.
            stack.enter_context(contextlib.redirect_stdout(_Nowhere()))
            stack.enter_context(contextlib.redirect_stderr(_Nowhere()))
            stack.callback(flush_output)
            yield
    finally:
        os.close(nowhere)


class _Nowhere(io.TextIOBase):
    def write(self, text: str, /) -> int:
        return len(text)


def hide_output_of(owner: Any, *names: str) -> None:
    """Replace methods of ``owner`` by ones whose output is hidden."""
    for name in names:
        setattr(owner, name, _hidden(getattr(owner, name)))


def _hidden(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        with hidden_output():
            return method(*args, **kwargs)

    return call


def hide_output_for_good() -> None:
    """Drop all that this process will write to standard output and error."""
    flush_output()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in DESCRIPTORS:
        os.dup2(nowhere, descriptor)
    os.close(nowhere)
