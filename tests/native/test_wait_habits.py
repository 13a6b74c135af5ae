"""Choice of the wait primitive between yielding the core and sleeping."""

import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("wait_habits.c")


def test_a_waiter_sleeps_early_where_its_core_would_go_to_others_at_work(build):
    ran = subprocess.run([build("address,undefined", [SOURCE])], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
