"""Tests of ``puffer play`` in a terminal."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time

import pytest

from tests.tiny_runs import untrained_run

# Make the pseudo-terminal the controlling one, so that its Ctrl-C interrupts the process.
PUFFER = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from pufferlib.cli import main
sys.exit(main())
"""


class Terminal:
    """Process of ``puffer play`` in a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *argv):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        # Ctrl-C makes the terminal drop pending output, which may cut a character in two.
        self.decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self.output = ""
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
        command = [sys.executable, "-c", PUFFER, "play", *argv, "--terminal"]
        ends = dict.fromkeys(("stdin", "stdout", "stderr"), self.slave)
        self.process = subprocess.Popen(command, env=environment, start_new_session=True, **ends)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    def expect(self, pattern):
        """Wait until the output since the last call matches ``pattern``. Return the match."""
        deadline = time.monotonic() + 60
        while not (found := re.search(pattern, self.output)):
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.output[-2000:]!r}"
            if select.select([self.master], [], [], 1)[0]:
                self.output += self.decode(os.read(self.master, 65536))
        self.output = self.output[found.end() :]
        return found

    def send(self, text):
        os.write(self.master, text.encode())

    def end(self):
        """Return the exit code, and whether the settings of the terminal were restored."""
        return self.process.wait(60), termios.tcgetattr(self.slave) == self.before


def test_keys_play_in_terminal():
    with Terminal("squared", "--env.size", "5") as terminal:
        picture = terminal.expect(r"(?s)\x1b\[H(.*?)squared   step 0")[1]
        assert picture.count("▀") == 38 * 19  # five of the 24 lines are text
        terminal.expect("(?s)left: move left.*q: quit")
        terminal.send("\x1b[C")
        terminal.expect("step 1")
        terminal.send(" ")
        terminal.expect("step 2")
        terminal.send("r")
        terminal.expect("step 0")
        terminal.send("q")
        terminal.expect("squared: no episode was finished; return 0 after 0 steps")
        assert terminal.end() == (0, True)


@pytest.mark.all
def test_ctrl_c_restores_terminal():
    with Terminal("pong") as terminal:
        terminal.expect("pong   step 3")  # steps in real time, without keys
        terminal.send("\x03")
        terminal.expect(r"\x1b\[\?1049l")
        terminal.expect("stopped")
        assert terminal.end() == (130, True)


@pytest.mark.all
def test_watch_plays_agent_in_terminal(tmp_path):
    with Terminal("--watch", str(untrained_run(tmp_path).folder)) as terminal:
        terminal.expect("squared, played by")
        terminal.expect("step 2")  # the policy plays, without keys
        terminal.send("q")
        terminal.expect("squared: ")
        assert terminal.end() == (0, True)
