"""The rules of Neural MMO 3 in C, where positions can be made by hand."""

import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).with_name("nmmo3_rules.c")
STEPS = 100_000


@pytest.mark.timeout(300)  # most of it for the compiler
def test_cases_come_out_as_the_rules_say_and_random_play_adds_up(build):
    program = build("address,undefined", [SOURCE], "-O1")
    ran = subprocess.run([program, str(STEPS)], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
