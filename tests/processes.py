"""Processes that tests start, to measure what must not depend on the tests before."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

__all__ = ["in_fresh_process"]


def in_fresh_process(function, *args):
    """Call ``function``, of a module, in a process that has done nothing before; returns what it returns."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        return executor.submit(function, *args).result()
