"""Derivation of the seeds of environments from the seed of a batch."""

import hashlib

__all__ = ["env_seed"]

_MASK = (1 << 64) - 1


def env_seed(seed: int, index: int) -> int:
    """Return the seed of environment ``index`` in a batch seeded with ``seed``, any int: 31 bits, never negative.

    The result depends only on these two numbers, so an environment gets the same seed with every backend and number
    of workers. Environment 0 gets the seed itself, so N games in one native environment play like N environments with
    one game each. Batches with adjacent seeds share no environment seeds, unlike with ``seed + index``. Source: the
    finalizer of SplitMix64 (Steele, Lea, Flood 2014).
    """
    if index == 0 and 0 <= seed <= _MASK >> 33:
        return seed
    if not 0 <= seed <= _MASK:  # hash it, because modulo 2**64 it would equal another seed
        seed = int.from_bytes(hashlib.blake2b(b"%x" % seed, digest_size=8).digest())
    z = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 33
