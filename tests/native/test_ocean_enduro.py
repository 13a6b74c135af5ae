"""The rules of enduro, from states that play seldom reaches."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("enduro_rules.c")


def test_hand_made_states_lead_where_the_rules_say(build):
    ran = subprocess.run([build("address,undefined", [SOURCE])], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr[-4000:]
