"""Processes that tests start, so that earlier tests do not influence the result."""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

__all__ = ["in_fresh_process", "own_modules"]


def own_modules(**variables):
    """Return environment variables for a process with the same module search path, plus ``variables``."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def in_fresh_process(function, *args):
    """Call a module-level ``function`` in a new process. Return its result."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *args).result()
