"""Crashes of this process, by a signal that Python cannot catch."""

import contextlib
import faulthandler
import os
import subprocess
from collections.abc import Iterator

__all__ = ["crash_explained"]

# Waits for the Python stack that a crash leaves, at no cost until then; an end without one leaves nothing to say.
_WATCH = 'stack=$(cat); [ -z "$stack" ] || printf "%s\\n\\n%s\\n" "$0" "$stack" >&2'


@contextlib.contextmanager
def crash_explained(sentence: str) -> Iterator[None]:
    """While this holds, a segmentation fault and its like end with ``sentence`` on standard error, and the stack.

    Where somebody else takes the stacks of crashes already, as pytest does, nothing changes.
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
