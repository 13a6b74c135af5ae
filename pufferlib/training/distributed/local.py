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

__all__ = ["TIMEOUT", "host_store", "join", "open_store", "start_ranks", "stop_waiting_ranks"]


AGENT_HAS_STORE = "TORCHELASTIC_USE_AGENT_STORE"  # set by torchrun if its agent hosts the store
ATTEMPT = "TORCHELASTIC_RESTART_COUNT"
JOINED_KEY, STOP_KEY = "came/{}", "dismissed"  # keys of the store
PROBE_S = 1.0
PAUSE_S = 0.1


def join(
    place: Place, timeout_s: float, store: Store | None = None, check: Callable[[], None] | None = None
) -> JoinedRanks:
    """Wait for the other ranks, and create their ``torch.distributed`` group, which uses gloo.

    Args:
        place: Rank and address of this process.
        timeout_s: Maximum seconds to wait for a rank, now and later.
        store: Store in which the ranks meet. None opens the store at the address of ``place``.
        check: Function that is called while waiting. It raises if a rank cannot join any more.

    Raises:
        PufferError: Not all ranks have connected in time. The message names the missing ranks.
        SystemExit: Rank 0 has nothing to train.
    """
    deadline = time.monotonic() + timeout_s
    store = open_store(place, timeout_s) if store is None else store
    store = _attempt_store(store)
    try:
        store.set(JOINED_KEY.format(place.rank), "")
        _wait_for_all(place, store, timeout_s, deadline, check)
    except RuntimeError as error:
        if isinstance(error, PufferError):
            raise
        raise RankLostError("train: rank 0 ended before all ranks had connected") from error
    with _network_interface(place):
        dist.init_process_group(
            "gloo",  # supports several ranks per GPU, and reports a lost rank at once, while NCCL hangs
            store=PrefixStore("group", store),
            rank=place.rank,
            world_size=place.size,
            timeout=timedelta(seconds=timeout_s),
        )
    return JoinedRanks(place, store, timeout_s)


def stop_waiting_ranks(place: Place, code: int) -> None:
    """Stop the other ranks with this exit code if rank 0, which calls this function, has not joined them."""
    if os.environ.get(AGENT_HAS_STORE) != "True":
        return  # the store ends with rank 0, which the other ranks notice
    store = _attempt_store(open_store(place, PROBE_S))
    if not store.check([JOINED_KEY.format(0)]):
        store.set(STOP_KEY, str(code))


def _attempt_store(store: Store) -> Store:
    """Return the part of the store for this attempt. ``torchrun`` may start the ranks several times."""
    return PrefixStore(f"pufferlib/{os.environ.get(ATTEMPT, '0')}", store)


def open_store(place: Place, timeout_s: float) -> Store:
    """Open the store at the address of ``place``. Rank 0 hosts it, unless torchrun does.

    Raises:
        PufferError: There is no answer in time, or the port is in use.
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
            f"MASTER_PORT), got {str(error).partition(chr(10))[0]}; use the address of this machine and a free port"
        ) from error


def _wait_for_answer(place: Place, timeout_s: float) -> None:
    """Wait until a process listens at the address. Torch's own wait could not be interrupted."""
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
    while missing := [rank for rank in missing if not store.check([JOINED_KEY.format(rank)])]:
        if check is not None:
            check()
        if store.check([STOP_KEY]):
            raise SystemExit(int(store.get(STOP_KEY)))
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
def _network_interface(place: Place) -> Iterator[None]:
    """Return a context in which gloo uses the loopback interface if all ranks are on this machine.

    The host name may have no address, as in some containers.
    """
    name = "GLOO_SOCKET_IFNAME"
    if name in os.environ or place.local_size < place.size:
        yield
        return
    os.environ[name] = "lo"
    try:
        yield
    finally:
        del os.environ[name]


TIMEOUT = "PUFFER_PROCESSES_TIMEOUT"  # variable with the seconds that a rank waits for rank 0
HERE = "127.0.0.1"
LOOK_S = 0.1
END_S = 10.0  # seconds in which a rank must close its environments
LONGEST_TEXT = 4000  # maximum number of characters of a rank's standard error in messages


def host_store(address: str, count: int, timeout_s: float) -> TCPStore:
    """Return a store of this process for ``count`` ranks that only answers at ``address``.

    The system chooses the port, so that two trainings never share one. torch alone would listen at all addresses.
    """
    listener = socket.create_server((address, 0))
    return TCPStore(
        address,
        listener.getsockname()[1],
        count,
        is_master=True,
        timeout=timedelta(seconds=timeout_s),
        wait_for_workers=False,
        master_listen_fd=listener.detach(),
    )


@contextlib.contextmanager
def start_ranks(count: int, timeout_s: float) -> Iterator[JoinedRanks]:
    """Return a context with all ranks on this machine. This process is the first. All others stop at the end.

    The ranks share the cores: in each, ``usable_cpus`` returns its share.

    Args:
        count: Number of ranks, including this one.
        timeout_s: Maximum seconds to wait for a rank.

    Yields:
        Ranks, joined.

    Raises:
        PufferError: A rank ended, or has not connected in time.
    """
    store = host_store(HERE, count, timeout_s)
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
    """Processes of all ranks on this machine except the first.

    Args:
        first: Rank and address of the first rank.
        timeout_s: Maximum seconds that the processes wait for it.
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
                    process_group=0,  # Ctrl-C in a terminal reaches only the first rank, which stops the others
                )
            )

    def check(self) -> None:
        """Raise PufferError if a process has ended."""
        if words := self._ended():
            raise PufferError(f"train: {words}")

    def watch(self, ranks: JoinedRanks) -> None:
        """Start to report to the ranks when one of these processes ends."""
        self._watch = threading.Thread(target=self._watch_processes, args=(ranks,), name="local-ranks", daemon=True)
        self._watch.start()

    def _watch_processes(self, ranks: JoinedRanks) -> None:
        while not self._closing.wait(LOOK_S):
            if words := self._ended():
                ranks.report_failure(words)
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
        """Wait for all processes to end, and kill those that do not."""
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
