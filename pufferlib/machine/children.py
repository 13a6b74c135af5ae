"""Commands that start Python processes without the current folder in ``sys.path``.

``python -c`` and ``python -m`` put the current folder first in ``sys.path``. A user's ``random.py`` or ``signal.py``
there would replace the standard module in every process that this package starts.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import util
from typing import Any

__all__ = ["children_have_safe_paths", "python_code", "python_module"]

SAFE = "-P"  # not PYTHONSAFEPATH, which programs started by a child would inherit

_SET_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))"


def python_code(code: str, *arguments: object) -> list[str]:
    """Return a command that runs ``code`` in another process, with the ``sys.path`` of this one.

    Args:
        code: Python code to run.
        arguments: Arguments of the code, as ``sys.argv[1:]``.
    """
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return [sys.executable, SAFE, "-c", f"{_SET_PATH}; {code}", json.dumps(path), *map(str, arguments)]


def python_module(module: str, *arguments: object) -> list[str]:
    """Return a command that runs ``module`` like ``python -m``, with the ``sys.path`` of this process."""
    return python_code(f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)", *arguments)


@contextmanager
def children_have_safe_paths() -> Iterator[None]:
    """Start processes of ``multiprocessing`` without the current folder in their ``sys.path``."""
    interpreter: Any = util
    flags = interpreter._args_from_interpreter_flags
    interpreter._args_from_interpreter_flags = lambda: [*(flag for flag in flags() if flag != SAFE), SAFE]
    try:
        yield
    finally:
        interpreter._args_from_interpreter_flags = flags
