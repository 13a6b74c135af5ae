"""Environment pools under threads, forks and closes, with sanitizers."""

import pytest

SEED = 1


def rounds(nightly):
    return 600_000 if nightly else 60_000


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_each_environment_is_stepped_once_per_action(sanitizers, nightly, run_program):
    run_program("envpool_stress", sanitizers=sanitizers, arguments=(rounds(nightly), SEED))
