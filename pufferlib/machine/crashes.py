"""Explanation of crashes by signals that Python cannot catch."""

import contextlib
import faulthandler
import os
import subprocess
from collections.abc import Iterator

__all__ = ["crash_explained"]

# Waits for the Python stack that a crash writes to the pipe. Prints nothing if the pipe closes without one.
_WATCH = 'stack=$(cat); [ -z "$stack" ] || printf "%s\\n\\n%s\\n" "$0" "$stack" >&2'


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
