"""Validation of the arguments that every C environment takes."""

import numpy as np

from pufferlib.errors import APIUsageError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.ocean._ocean import MAX_THREADS

__all__ = ["check_count", "checked_seed", "checked_threads"]


def checked_seed(where: str, seed: object) -> int:
    """Return ``seed`` as an int. Raise APIUsageError if it is not an int."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
        raise APIUsageError(f"{where}: seed must be an int, got {seed!r}")
    return int(seed)


def check_count(where: str, name: str, value: object) -> None:
    """Raise APIUsageError unless ``value`` is an int from 1 to 2**31 - 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value < 2**31:
        raise APIUsageError(f"{where}: {name} must be an int from 1 to {2**31 - 1}, got {value!r}")


def checked_threads(where: str, num_threads: object) -> int:
    """Return the number of threads to use, at most the number of usable cores.

    Raises:
        APIUsageError: ``num_threads`` is neither a positive int nor "auto".
    """
    cores = min(usable_cpus(), MAX_THREADS)
    if num_threads == "auto":
        return cores
    if isinstance(num_threads, bool) or not isinstance(num_threads, int | np.integer) or num_threads < 1:
        raise APIUsageError(f'{where}: num_threads must be an int >= 1 or "auto", got {num_threads!r}')
    return min(int(num_threads), cores)
