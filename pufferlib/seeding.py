"""One seed, one trajectory: how the seed of a batch becomes the seeds of its environments."""

import hashlib

__all__ = ["env_seed"]

_MASK = (1 << 64) - 1


def env_seed(seed: int, index: int) -> int:
    """The seed of environment ``index`` in a batch seeded with ``seed``, any int: 31 bits, never negative.

    Depends on these two numbers alone, so an environment's stream is the same on every backend and
    however many workers share the batch. Environment 0 has the seed itself: so N games in one
    native environment play as N environments of one game do. Neighbouring seeds share no
    environment, as ``seed + index`` would make them do. Source: the finaliser of SplitMix64
    (Steele, Lea, Flood 2014).
    """
    if index == 0 and 0 <= seed <= _MASK >> 33:
        return seed
    if not 0 <= seed <= _MASK:  # modulo 2**64 it would be another seed
        seed = int.from_bytes(hashlib.blake2b(b"%x" % seed, digest_size=8).digest())
    z = (seed * 0x9E3779B97F4A7C15 + index * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return (z ^ (z >> 31)) >> 33
