"""Capture of terminal output from Python and C."""

import contextlib
import io
import sys
import tempfile
import warnings
from collections.abc import Iterator
from typing import TextIO

from pufferlib.machine.output import flush_output, redirected

__all__ = ["Captured", "captured_output"]


class Captured:
    """Captured output. ``text`` is set when the capture ends."""

    text = ""


@contextlib.contextmanager
def captured_output() -> Iterator[Captured]:
    """Capture standard output and error. Python warnings are printed after the capture."""
    captured, texts, warned = Captured(), io.StringIO(), io.StringIO()
    flush_output()
    with tempfile.TemporaryFile() as file:
        try:
            with contextlib.ExitStack() as stack:
                for descriptor in (1, 2):
                    stack.enter_context(redirected(descriptor, file.fileno()))
                stack.enter_context(contextlib.redirect_stdout(texts))
                stack.enter_context(contextlib.redirect_stderr(texts))
                stack.enter_context(_warnings_to(warned))
                stack.callback(flush_output)
                yield captured
        finally:
            sys.stderr.write(warned.getvalue())
            file.seek(0)
            captured.text = texts.getvalue() + file.read().decode(errors="replace")


@contextlib.contextmanager
def _warnings_to(stream: io.StringIO) -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        stream.write(warnings.formatwarning(message, category, filename, lineno, line))

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before
