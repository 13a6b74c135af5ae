"""Captures of Triple Triad in positions made by hand, in C."""

import subprocess
from pathlib import Path


def test_known_positions(build):
    program = build("address,undefined", [Path(__file__).with_name("tripletriad_rules.c")])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
