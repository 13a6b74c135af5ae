"""A program that ends with the process that started it, however that ends."""

import os
import shlex
import sys
from pathlib import Path

__all__ = ["tied_to_parent"]

# Linux ends a process with its parent if that process asks for it, and it stays asked for in what the process becomes.
_SCRIPT = """#!/bin/sh
exec {python} -ISc '
import ctypes, os, signal, sys
PR_SET_PDEATHSIG = 1
ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
if os.getppid() == {parent}:  # else it has ended already
    os.execv(sys.argv[1], sys.argv[1:])
' {program} "$@"
"""


def tied_to_parent(program: Path, folder: Path) -> str:
    """The path of a script in ``folder`` that becomes ``program``, for this process to start.

    It is ``program`` itself where files in ``folder`` may not be executed.
    """
    script = folder / f"tied_to_parent-{program.name}"
    parts = {"python": shlex.quote(sys.executable), "parent": os.getpid(), "program": shlex.quote(str(program))}
    script.write_text(_SCRIPT.format(**parts))
    script.chmod(0o700)
    return str(script if os.access(script, os.X_OK) else program)
