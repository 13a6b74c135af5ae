"""Seeds of environments: each its own, whatever the seed of the batch."""

from pufferlib.seeding import env_seed


def test_no_two_ints_are_the_same_seed():
    seeds = [
        base + sign * small
        for base in (0, 2**31, 2**63, 2**64, 2**128, 10**5000)
        for sign in (1, -1)
        for small in range(9)
    ]
    drawn = {seed: tuple(env_seed(seed, index) for index in range(3)) for seed in seeds}
    assert len({value for values in drawn.values() for value in values}) == 3 * len(drawn)
