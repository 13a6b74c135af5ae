"""Single steps from given positions of snake; tests/ocean/test_snake.py plays whole episodes."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("snake_rules.c")


def test_positions_become_what_the_rules_say(build):
    program = build("address,undefined", [SOURCE])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
    assert ran.stdout == "18 positions\n"
