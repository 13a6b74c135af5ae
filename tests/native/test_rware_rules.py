"""The warehouse from hand-made positions, in C, where robots can be set down."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("rware_rules.c")


def test_moves_deliveries_and_what_stays_the_same_for_ever(build):
    program = build("address,undefined", [SOURCE])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr[-4000:]
