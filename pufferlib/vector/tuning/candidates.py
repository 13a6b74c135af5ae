"""Which configurations ``autotune`` tries: valid ones of every kind, few enough to measure them all."""

from collections.abc import Iterator
from typing import Any

__all__ = ["Kwargs", "candidates"]

Kwargs = dict[str, Any]
HALVINGS = 4  # numbers of workers or threads: all cores, half of them, a quarter, an eighth


def candidates(batch_size: int, max_envs: int, cpus: int, games: int = 0, has_threads: bool = False) -> list[Kwargs]:
    """Keywords for ``vector.make``, each valid on ``cpus`` cores, none twice.

    Args:
        batch_size: Environments in one batch.
        max_envs: Environments to run at the most; at least ``batch_size``.
        cpus: Usable cores.
        games: Games of one environment, if it is a native one that takes ``num_envs``; else 0.
        has_threads: Whether it takes ``num_threads`` too.
    """
    counts = sorted({max(1, cpus >> shift) for shift in range(HALVINGS)}, reverse=True)
    found = list(_native(batch_size * games, counts if has_threads else [1])) if games else []
    found.append({"backend": "Serial", "num_envs": batch_size})
    for workers in counts:
        found.append(_all_workers(batch_size, workers))
        found += _contiguous(batch_size, max_envs, workers)
        found += _first_finished(batch_size, max_envs, workers)
    return [candidate for index, candidate in enumerate(found) if candidate not in found[:index]]


def _native(games: int, counts: list[int]) -> Iterator[Kwargs]:
    for threads in sorted({1, *(count for count in counts if count <= games)}, reverse=True):
        own: Kwargs = {"num_envs": games} if threads == 1 else {"num_envs": games, "num_threads": threads}
        yield {"backend": "native", "num_envs": 1, "env_kwargs": own}


def _all_workers(batch_size: int, workers: int) -> Kwargs:
    """One batch of all environments, with the most workers up to ``workers`` that can share it."""
    return _workers(batch_size, max(w for w in range(1, workers + 1) if batch_size % w == 0), batch_size, True)


def _contiguous(batch_size: int, max_envs: int, workers: int) -> Iterator[Kwargs]:
    """The fewest and the most batches of whole workers, one after the other."""
    counts = [
        batches
        for batches in range(2, max_envs // batch_size + 1)
        if workers % batches == 0 and batch_size * batches % workers == 0
    ]
    for batches in sorted({*counts[:1], *counts[-1:]}):
        yield _workers(batch_size * batches, workers, batch_size, True)


def _first_finished(batch_size: int, max_envs: int, workers: int) -> Iterator[Kwargs]:
    """As many environments per worker as make up to two batches, and up to ``max_envs``."""
    for limit in sorted({min(2 * batch_size, max_envs), max_envs}):
        each = [n for n in range(1, batch_size + 1) if batch_size % n == 0 and batch_size < n * workers <= limit]
        if each:
            yield _workers(each[-1] * workers, workers, batch_size, False)


def _workers(num_envs: int, workers: int, batch_size: int, zero_copy: bool) -> Kwargs:
    return {
        "backend": "Multiprocessing",
        "num_envs": num_envs,
        "num_workers": workers,
        "batch_size": batch_size,
        "zero_copy": zero_copy,
    }
