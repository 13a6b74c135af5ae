"""Seeds of environments, which differ for any two seeds of the batch."""

from pufferlib.seeding import env_seed


def test_env_seeds_of_different_ints_differ():
    seeds = [
        base + sign * small
        for base in (0, 2**31, 2**63, 2**64, 2**128, 10**5000)
        for sign in (1, -1)
        for small in range(9)
    ]
    drawn = {seed: tuple(env_seed(seed, index) for index in range(3)) for seed in seeds}
    assert len({value for values in drawn.values() for value in values}) == 3 * len(drawn)
