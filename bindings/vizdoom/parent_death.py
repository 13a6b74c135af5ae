"""Start of a program that exits together with the process that started it."""

import os
import shlex
import sys
from pathlib import Path

__all__ = ["tied_to_parent"]

# On Linux, a process can request a signal for when its parent dies. The request is kept across exec.
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
    """Return the path of a script in ``folder`` that executes ``program`` and is tied to this process.

    Return ``program`` itself if files in ``folder`` cannot be executed.
    """
    script = folder / f"tied_to_parent-{program.name}"
    parts = {"python": shlex.quote(sys.executable), "parent": os.getpid(), "program": shlex.quote(str(program))}
    script.write_text(_SCRIPT.format(**parts))
    script.chmod(0o700)
    return str(script if os.access(script, os.X_OK) else program)
