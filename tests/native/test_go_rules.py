"""Go from hand-made positions, in C, where a position can be set up."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("go_rules.c")


def test_captures_ko_suicide_area_and_the_choices_of_the_scripted_player(build):
    program = build("address,undefined", [SOURCE])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, ""), ran.stdout + ran.stderr[-4000:]
