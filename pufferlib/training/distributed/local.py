"""Start of the ranks on this machine, and the rendezvous of all ranks."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import IO

import torch.distributed as dist
from torch.distributed import PrefixStore, Store, TCPStore  # type: ignore[attr-defined]  # not in torch's stubs

from pufferlib.errors import PufferError
from pufferlib.machine.children import python_module
from pufferlib.text import plural
from pufferlib.training.distributed.place import Place
from pufferlib.training.distributed.ranks import JoinedRanks, RankLostError

__all__ = ["TIMEOUT", "dismiss", "join", "open_store", "start_ranks"]


AGENT_HAS_STORE = "TORCHELASTIC_USE_AGENT_STORE"  # torchrun sets it: its agent is where the ranks meet
ATTEMPT = "TORCHELASTIC_RESTART_COUNT"
CAME, DISMISSED = "came/{}", "dismissed"  # keys of the store
PROBE_S = 1.0
PAUSE_S = 0.1


def join(
    place: Place, timeout_s: float, store: Store | None = None, check: Callable[[], None] | None = None
) -> JoinedRanks:
    """Meet the other ranks, and found the group of ``torch.distributed`` with them, which is gloo's.

    Args:
        place: Of this process.
        timeout_s: Longest to wait for a rank, now and later.
        store: Where they meet; None opens the one at the place's address.
        check: Called while waiting; raises if one cannot come any more.

    Raises:
        PufferError: Not all ranks have come in time; the message says which.
        SystemExit: Rank 0 has nothing to train.
    """
    deadline = time.monotonic() + timeout_s
    store = open_store(place, timeout_s) if store is None else store
    store = _part_of(store)
    try:
        store.set(CAME.format(place.rank), "")
        _wait_for_all(place, store, timeout_s, deadline, check)
    except RuntimeError as error:
        if isinstance(error, PufferError):
            raise
        raise RankLostError("train: rank 0 ended before all ranks had come") from error
    with _interface_of(place):
        dist.init_process_group(
            "gloo",  # takes GPUs too, several ranks on one, and reports a lost rank at once, where NCCL would hang
            store=PrefixStore("group", store),
            rank=place.rank,
            world_size=place.size,
            timeout=timedelta(seconds=timeout_s),
        )
    return JoinedRanks(place, store, timeout_s)


def dismiss(place: Place, code: int) -> None:
    """Send the other ranks home with an exit code, if rank 0, which calls this, has not joined them."""
    if os.environ.get(AGENT_HAS_STORE) != "True":
        return  # they notice that the store ends with rank 0
    store = _part_of(open_store(place, PROBE_S))
    if not store.check([CAME.format(0)]):
        store.set(DISMISSED, str(code))


def _part_of(store: Store) -> Store:
    """The part of the store that belongs to this attempt of the ranks: torchrun may start them anew."""
    return PrefixStore(f"pufferlib/{os.environ.get(ATTEMPT, '0')}", store)


def open_store(place: Place, timeout_s: float) -> Store:
    """Open the store at the address of ``place``; rank 0 keeps it, unless torchrun does.

    Raises:
        PufferError: Nobody answers there in time, or the port is taken.
    """
    keeps = place.rank == 0 and os.environ.get(AGENT_HAS_STORE) != "True"
    where = f"{place.address}:{place.port}"
    if not keeps:
        _wait_for_answer(place, timeout_s)
    try:
        return TCPStore(
            place.address,
            place.port,
            place.size,
            is_master=keeps,
            timeout=timedelta(seconds=timeout_s),
            wait_for_workers=False,
            multi_tenant=True,
        )
    except RuntimeError as error:
        raise PufferError(
            f"train: rank {place.rank} must be able to {'listen' if keeps else 'connect'} at {where} (MASTER_ADDR, "
            f"MASTER_PORT), got {str(error).partition(chr(10))[0]}; take the address of this machine and a free port"
        ) from error


def _wait_for_answer(place: Place, timeout_s: float) -> None:
    """Wait until somebody listens; torch itself could not be interrupted meanwhile."""
    deadline = time.monotonic() + timeout_s
    while True:
        try:
            socket.create_connection((place.address, place.port), PROBE_S).close()
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise PufferError(
                    f"train: rank 0 must answer at {place.address}:{place.port} (MASTER_ADDR, MASTER_PORT), rank "
                    f"{place.rank} of {place.size} waited {timeout_s:g} s for it ({error}); start rank 0 there, or "
                    "wait longer by --train.processes-timeout"
                ) from error
        time.sleep(PAUSE_S)


def _wait_for_all(
    place: Place, store: Store, timeout_s: float, deadline: float, check: Callable[[], None] | None
) -> None:
    missing = list(range(place.size))
    while missing := [rank for rank in missing if not store.check([CAME.format(rank)])]:
        if check is not None:
            check()
        if store.check([DISMISSED]):
            raise SystemExit(int(store.get(DISMISSED)))
        if time.monotonic() > deadline:
            names = ", ".join(map(str, missing))
            raise PufferError(
                f"train: {plural(place.size, 'rank')} must meet at {place.address}:{place.port}, "
                f"{place.size - len(missing)} came within {timeout_s:g} s, and rank{'s'[: len(missing) > 1]} {names} "
                "did not; start them with the same MASTER_ADDR, MASTER_PORT and WORLD_SIZE, or wait longer by "
                "--train.processes-timeout"
            )
        time.sleep(PAUSE_S)


@contextlib.contextmanager
def _interface_of(place: Place) -> Iterator[None]:
    """Let gloo use the loopback where all ranks are on one machine: its name may have no address, as in a container."""
    name = "GLOO_SOCKET_IFNAME"
    if name in os.environ or place.local_size < place.size:
        yield
        return
    os.environ[name] = "lo"
    try:
        yield
    finally:
        del os.environ[name]


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
