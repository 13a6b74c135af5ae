"""Processes that tests start, to measure what must not depend on the tests before."""

import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor

__all__ = ["in_fresh_process", "own_modules"]


def own_modules(**variables):
    """Variables of a process that finds the modules which this one finds, in the same places; ``variables`` besides."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}


def in_fresh_process(function, *args):
    """Call ``function``, of a module, in a process that has done nothing before; returns what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *args).result()
