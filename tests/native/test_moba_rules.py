"""The rules of moba on positions that are set up in C: combat, abilities, towers, waves, camps, fairness."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("moba_rules.c")


def test_the_rules_of_moba_hold(build):
    program = build("address,undefined,float-cast-overflow,float-divide-by-zero", [SOURCE], "-O1")  # compiles sooner
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
