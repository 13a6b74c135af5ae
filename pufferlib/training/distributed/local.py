"""Ranks on this machine: processes that the first of them starts, watches and waits for."""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import IO

from torch.distributed import TCPStore  # type: ignore[attr-defined]  # not in torch's stubs

from pufferlib.errors import PufferError
from pufferlib.machine.children import python_module
from pufferlib.training.distributed.join import join
from pufferlib.training.distributed.place import Place
from pufferlib.training.distributed.ranks import JoinedRanks

__all__ = ["TIMEOUT", "start_ranks"]

TIMEOUT = "PUFFER_PROCESSES_TIMEOUT"  # the variable that tells a rank how long to wait for the first one
HERE = "127.0.0.1"
LOOK_S = 0.1
END_S = 10.0  # for a rank to close its environments
LONGEST_TEXT = 4000  # of what a rank wrote to standard error


@contextlib.contextmanager
def start_ranks(count: int, timeout_s: float) -> Iterator[JoinedRanks]:
    """Start all ranks but the first, which is this process; at the end of the context none is left.

    They share the cores: each has as many as ``usable_cpus`` says in it.

    Args:
        count: Ranks, with this one.
        timeout_s: Longest to wait for one.

    Yields:
        The ranks, joined.

    Raises:
        PufferError: A rank ended, or has not come in time.
    """
    # This process keeps the store, at a port that the system finds, so that no two trainings meet at the same.
    store = TCPStore(HERE, 0, count, is_master=True, timeout=timedelta(seconds=timeout_s), wait_for_workers=False)
    place = Place(0, count, 0, count, HERE, store.port)
    with (
        _shared_cores(count),
        contextlib.closing(_LocalRanks(place, timeout_s)) as processes,
        join(place, timeout_s, store, processes.check) as ranks,
    ):
        processes.watch(ranks)
        yield ranks


@contextlib.contextmanager
def _shared_cores(count: int) -> Iterator[None]:
    name = "LOCAL_WORLD_SIZE"
    before = os.environ.get(name)
    os.environ[name] = str(count)
    try:
        yield
    finally:
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


class _LocalRanks:
    """The processes of all ranks of this machine but the first.

    Args:
        first: Place of the first.
        timeout_s: Longest that they wait for it.
    """

    def __init__(self, first: Place, timeout_s: float) -> None:
        self._size = first.size
        self._closing = threading.Event()
        self._processes: list[subprocess.Popen[bytes]] = []
        self._texts: list[IO[bytes]] = []
        self._watch: threading.Thread | None = None
        for rank in range(1, first.size):
            place = first._replace(rank=rank, local_rank=rank)
            text = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
            self._texts.append(text)
            self._processes.append(
                subprocess.Popen(
                    python_module("pufferlib.training"),
                    env={**os.environ, **place.variables(), TIMEOUT: str(timeout_s)},
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=text,
                    process_group=0,  # Ctrl-C of a terminal reaches the first alone, which stops the others
                )
            )

    def check(self) -> None:
        """Raise PufferError if a process has ended."""
        if words := self._ended():
            raise PufferError(f"train: {words}")

    def watch(self, ranks: JoinedRanks) -> None:
        """Tell the ranks, from now on, if one of these processes ends."""
        self._watch = threading.Thread(target=self._look, args=(ranks,), name="local-ranks", daemon=True)
        self._watch.start()

    def _look(self, ranks: JoinedRanks) -> None:
        while not self._closing.wait(LOOK_S):
            if words := self._ended():
                ranks.tell_failure(words)
                return

    def _ended(self) -> str:
        for rank, (process, text) in enumerate(zip(self._processes, self._texts, strict=True), 1):
            if code := process.poll():
                how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
                text.seek(0)
                last = text.read().decode(errors="replace").strip()[-LONGEST_TEXT:]
                return f"rank {rank} of {self._size} (process {process.pid}) {how}{chr(10) * bool(last)}{last}"
        return ""

    def close(self) -> None:
        """Wait for all to end, and end by force who does not."""
        self._closing.set()
        if self._watch is not None:
            self._watch.join()
        deadline = time.monotonic() + END_S
        for end in (None, subprocess.Popen.terminate, subprocess.Popen.kill):
            for process in self._processes:
                if end is not None and process.poll() is None:
                    end(process)
            for process in self._processes:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(0.0, deadline - time.monotonic()))
            deadline = time.monotonic() + 1.0
        for text in self._texts:
            text.close()
