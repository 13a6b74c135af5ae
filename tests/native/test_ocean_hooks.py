"""Optional hooks of environments in C: memory that parameters size, shared tables, agents that end one by one."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("ocean_hooks.c")

EXPECTED = """\
terminals after 2 steps 1 1 0 1 1 0
terminals after 10 steps 1 1 0 1 1 0
truncations after 10 steps 0 0 1 0 0 1
episodes 38 steps 60 score 26
prepared 1, fits 1
cells 40 0
"""


def test_agents_end_one_by_one_and_a_game_has_the_memory_it_asked_for(build):
    program = build("address,undefined", [SOURCE])
    ran = subprocess.run([program], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, EXPECTED), ran.stderr[-4000:]
