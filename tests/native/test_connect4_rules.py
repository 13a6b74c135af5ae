"""Every line of connect4 at every place, and its positions with known outcomes, in C."""

import subprocess
from pathlib import Path


def test_lines_and_known_positions(build):
    program = build("address,undefined", [Path(__file__).with_name("connect4_rules.c")])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
