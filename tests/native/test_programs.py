"""C programs with checks of rules of games, threads and waiting.

The comment at the head of each program describes what it checks.
"""

from typing import NamedTuple

import pytest

from tests.tiers import once


class Program(NamedTuple):
    """Sanitizers and arguments of a program, and its expected output."""

    sanitizers: str = "address,undefined"
    arguments: tuple[int, ...] = ()
    prints: str = ""


HOOKS = """\
terminals after 2 steps 1 1 0 1 1 0
terminals after 10 steps 1 1 0 1 1 0
truncations after 10 steps 0 0 1 0 0 1
episodes 38 steps 60 score 26
prepared 1, fits 1
cells 40 0
"""
ROUNDS, STEPS, SEED = 120_000, 100_000, 1

RULES = {
    "connect4_rules": Program(),
    "enduro_rules": Program(),
    "go_rules": Program(),
    "moba_rules": Program("address,undefined,float-cast-overflow,float-divide-by-zero"),
    "network_fuzz": Program(arguments=(100, SEED)),
    "nmmo3_rules": Program(arguments=(STEPS,)),
    "ocean_hooks": Program(prints=HOOKS),
    "rware_rules": Program(),
    "snake_rules": Program(prints="18 positions\n"),
    "tripletriad_rules": Program(),
    "wait_policy": Program(),
}
SHORT = {"connect4_rules", "ocean_hooks", "wait_policy"}  # a second each


@pytest.mark.timeout(600)  # most of it for the compiler
@pytest.mark.parametrize("name", once(RULES, SHORT))
def test_checks_of_the_program_pass(name, run_program):
    sanitizers, arguments, prints = RULES[name]
    assert run_program(name, sanitizers=sanitizers, arguments=arguments) == prints


@pytest.mark.all
@pytest.mark.parametrize("sanitizers", ["thread", "address,undefined"])
def test_pool_runs_every_item_once(sanitizers, run_program):
    run_program("pool_stress", sanitizers=sanitizers, arguments=(ROUNDS, SEED))


@pytest.mark.parametrize(("name", "arguments"), [("wait_policy", ()), ("pool_stress", (ROUNDS // 100, SEED))])
def test_waiting_works_without_functions_of_linux(name, arguments, run_program):
    """Other systems have no futex and no core affinity."""
    run_program(name, sanitizers="thread", arguments=arguments, flags=["-U__linux__"])
