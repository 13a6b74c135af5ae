"""Pools of games under threads, forks and closings, with the sanitizers of the compiler."""

import pytest

SEED = 1


def rounds(nightly):
    return 600_000 if nightly else 60_000


@pytest.mark.all
@pytest.mark.timeout(900)
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_each_game_is_played_once_for_each_action(sanitizers, nightly, run_program):
    run_program("envpool_stress", sanitizers=sanitizers, arguments=(rounds(nightly), SEED))
