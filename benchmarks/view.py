"""CPU time of `puffer view` at 30 frames per second, with one page open.

    python benchmarks/view.py             # breakout and nmmo3
    python benchmarks/view.py --quick     # quick check

A client takes the place of the page. It asks for each frame as soon as it has received the one before, unpacks it, and
walks about with the arrow keys, so that the whole image changes. The figure is the CPU time of the server's process,
which includes the environment, its images, their compression and the random actions of other agents. The time of a
browser is not included. Also writes benchmarks/results/view.json.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import psutil
from report import OURS, Row
from turns import begin, finish, measure, parser
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

ENVS = ("breakout", "nmmo3")
FPS = 30
MOST = 50.0  # percent of a core
CLI = "import sys; from pufferlib.cli import main; sys.exit(main())"
KEY_S = 0.4  # time for which each key is held


class Page:
    """Client that receives frames like the page.

    Attributes:
        frames: Number of frames received.
        received: Number of bytes received.
    """

    def __init__(self, connection: ClientConnection) -> None:
        self.frames = self.received = 0
        self._connection = connection

    def receive(self) -> None:
        """Receive frames until the connection is closed."""
        with suppress(ConnectionClosed):
            self._send(ready=True)
            for message in self._connection:
                self.received += len(message)
                if isinstance(message, bytes):
                    zlib.decompress(message)
                    self.frames += 1
                elif "rows" in json.loads(message):
                    continue  # its pixels follow
                self._send(ready=True)

    def walk(self, seconds: float) -> None:
        """Hold the arrow keys down, one after the other."""
        end = time.monotonic() + seconds
        for key in itertools.cycle(("right", "down", "left", "up")):
            self._send(down=key)
            time.sleep(min(KEY_S, max(0.0, end - time.monotonic())))
            self._send(up=key)
            if time.monotonic() >= end:
                return

    def _send(self, **message: object) -> None:
        self._connection.send(json.dumps(message))


def share_of_core(name: str, seconds: float, row: Row) -> float:
    """Return the CPU time of ``puffer view`` in percent of the time, and note the frames per second in ``row``."""
    command = [sys.executable, "-c", CLI, "view", name, "--port", "0", "--fps", str(FPS)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        try:
            with connect(url.replace("http:", "ws:"), compression=None, proxy=None) as connection:
                page = Page(connection)
                threading.Thread(target=page.receive, daemon=True).start()
                page.walk(1.0)  # warm up
                process, start = psutil.Process(server.pid), time.monotonic()
                used, frames, received = cpu_s(process), page.frames, page.received
                page.walk(seconds)
                took = time.monotonic() - start
                row.notes.setdefault("frames per second", []).append(round((page.frames - frames) / took, 1))
                row.notes.setdefault("kB per second", []).append(round((page.received - received) / took / 1000))
                return 100 * (cpu_s(process) - used) / took
        finally:
            server.terminate()


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU time of a process in seconds."""
    return sum(process.cpu_times()[:2])


def main() -> None:
    """Measure, and print the table."""
    options = parser(__doc__, "view", minutes=2, rounds=5, seconds=10.0).parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 2.0
    before = begin(options)
    rows = [Row(f"puffer view {name}, {FPS} steps per second", "% of a core", MOST) for name in ENVS]
    calls = [
        (row, {OURS: partial(share_of_core, name, options.seconds, row)}) for row, name in zip(rows, ENVS, strict=True)
    ]
    done = measure(calls, options.only, options.rounds, options.minutes)
    for row in done:
        print(f"{row.what}: {row.notes}")
    finish(options, before, {"view": done})


if __name__ == "__main__":
    main()
