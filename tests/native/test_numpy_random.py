"""Random numbers in C, which equal those of numpy."""

import numpy as np


def test_c_generator_matches_numpy(run_program):
    seeds = [0, 1, 42, 2**31 - 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *range(1000, 1200)]
    lines = run_program("numpy_random", arguments=seeds).splitlines()
    assert len(lines) == len(seeds)
    for seed, line in zip(seeds, lines, strict=True):
        rng = np.random.default_rng(seed)
        drawn, shuffled = rng.uniform(-0.6, 0.4, size=5).tolist(), [*range(20)]
        rng.shuffle(shuffled)
        assert [float(number) for number in line.split()] == drawn + shuffled, seed
