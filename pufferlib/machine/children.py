"""Commands that start other Python processes without the current folder on their path.

Python puts the current folder first on the path of ``python -c`` and ``python -m``. A user's ``random.py`` or
``signal.py`` there would replace the standard module in every process that this package starts.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import util
from typing import Any

__all__ = ["children_have_safe_paths", "python_code", "python_module"]

SAFE = "-P"  # a flag, not PYTHONSAFEPATH: programs that a child starts must not inherit it

_TAKE_PATH = "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1))"


def python_code(code: str, *arguments: object) -> list[str]:
    """Return the command that runs ``code`` in another process, with the ``sys.path`` of this one.

    Args:
        code: Python code.
        arguments: ``sys.argv[1:]`` of the code.
    """
    path = [entry for entry in sys.path if isinstance(entry, str)]
    return [sys.executable, SAFE, "-c", f"{_TAKE_PATH}; {code}", json.dumps(path), *map(str, arguments)]


def python_module(module: str, *arguments: object) -> list[str]:
    """Return the command that runs ``module`` like ``python -m``, with the ``sys.path`` of this process."""
    return python_code(f"import runpy; runpy.run_module({module!r}, run_name='__main__', alter_sys=True)", *arguments)


@contextmanager
def children_have_safe_paths() -> Iterator[None]:
    """Let processes that multiprocessing starts meanwhile leave the current folder out of their path."""
    interpreter: Any = util
    flags = interpreter._args_from_interpreter_flags
    interpreter._args_from_interpreter_flags = lambda: [*(flag for flag in flags() if flag != SAFE), SAFE]
    try:
        yield
    finally:
        interpreter._args_from_interpreter_flags = flags
