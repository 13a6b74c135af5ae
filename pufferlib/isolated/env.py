"""PufferEnv that runs in another interpreter, and the worker process there: its start and its main function."""

import contextlib
import functools
import importlib
import os
import pickle
import signal
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from multiprocessing import connection
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array, BufferSource
from pufferlib.env import Infos, PufferEnv, Stepped
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.isolated.stacks import bootstrap
from pufferlib.vector.multiprocessing.process import WorkerProcess
from pufferlib.vector.multiprocessing.worker import Parent, Surroundings, serve_parent
from pufferlib.vector.multiprocessing.workers import Multiprocessing, WorkerProcesses
from pufferlib.vector.specs import EnvDescription, VectorSpec

__all__ = ["IsolatedEnv", "build", "main", "start_worker_in"]

_ARRAYS = ("observations", "rewards", "terminals", "truncations", "masks", "final_observations")
READY = b"ready"  # first message of a worker, sent after all imports
START_S = 60.0  # time for the imports of a worker on a busy machine


class IsolatedEnv(PufferEnv):
    """Environment that is made by ``entry`` in another interpreter.

    Args:
        name: Name of the environment in error messages.
        python: Python of a virtual environment, with the same version as this one.
        entry: Function, as ``"module:function"``, that is imported in the other interpreter. It takes ``buf`` and the
            ``options`` as keyword arguments and returns a ``PufferEnv`` with that ``buf``.
        options: Keyword arguments for the function. They must be picklable.
        buf: Arrays to write into, as passed by ``vector.make``.
        timeout_s: Maximum duration of the construction, a reset or a step, or None for no limit.
        variables: Environment variables of the other process. Variables of this process take precedence.

    Raises:
        WorkerError: The environment raised an error, its process exited, or it took longer than ``timeout_s``. In each
            case the process is stopped and the environment is closed.
    """

    def __init__(
        self,
        name: str,
        python: Path,
        entry: str,
        options: Mapping[str, Any],
        buf: BufferSource = None,
        timeout_s: float | None = 600.0,
        variables: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._name = name
        self._started = False
        stack = _StackVectorEnv(name, python, entry, options, timeout_s, variables)
        self._stack: _StackVectorEnv | None = stack
        about = stack.driver_env
        assert isinstance(about, EnvDescription)
        self.single_observation_space = about.single_observation_space
        self.single_action_space = about.single_action_space
        self.num_agents = about.num_agents
        self.autoreset = about.autoreset
        self.render_mode = about.render_mode
        self.metadata = about.metadata
        super().__init__(buf)
        self._checked = ActionCheck(f"{name}.step", self.single_action_space, self.num_agents)

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new episodes, with the given seed if there is one."""
        stack = self._open_stack("reset")
        _, infos = stack.reset(seed)
        self._copy_rows(stack)
        self._started = True
        return self.observations, infos

    def step(self, actions: Any) -> Stepped:
        """Apply one action of every agent."""
        stack = self._open_stack("step")
        if not self._started:
            raise APIUsageError(f"{self._name}.step: the environment was not reset yet; call reset first")
        *_, infos = stack.step(self._checked(actions))
        self._copy_rows(stack)
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def render(self) -> Array | None:
        """Return an image, uint8 ``(height, width, 3)``, or None without a ``render_mode``."""
        stack = self._open_stack("render")
        if not self.render_mode:
            return None
        picture: Array
        (picture,) = stack.call("render")
        return picture

    def close(self) -> None:
        """Stop the other process. Closing twice is harmless."""
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def _open_stack(self, call: str) -> "_StackVectorEnv":
        if self._stack is None or not self._stack.worker_pids:
            raise APIUsageError(f"{self._name}.{call}: the environment is closed; make another")
        return self._stack

    def _copy_rows(self, stack: "_StackVectorEnv") -> None:
        for name in _ARRAYS:
            np.copyto(getattr(self, name), getattr(stack, name))


class _StackVectorEnv(Multiprocessing):
    """Vector environment with one environment in one worker, in the interpreter of a stack."""

    def __init__(
        self,
        name: str,
        python: Path,
        entry: str,
        options: Mapping[str, Any],
        timeout_s: float | None,
        variables: Mapping[str, str],
    ) -> None:
        self._worker_args = name, python, variables
        creator = functools.partial(build, entry)
        super().__init__(creator, env_kwargs=dict(options), num_workers=1, timeout_s=timeout_s, overwork=True)
        self._first_seed = None  # let the environment handle a reset without a seed

    def _make_workers(self, spec: VectorSpec) -> WorkerProcesses:
        return _StackWorkers(spec, *self._worker_args)


class _StackWorkers(WorkerProcesses):
    """Worker in the interpreter of a stack."""

    ADVICE = "use fewer environments"

    def __init__(self, spec: VectorSpec, name: str, python: Path, variables: Mapping[str, str]) -> None:
        self.WHERE = name
        super().__init__(spec)
        self._python, self._variables = python, variables
        self._fits = False  # the environments of a stack use all cores themselves

    def _start_worker(self, worker: int) -> WorkerProcess:
        return start_worker_in(self._python, self.WHERE, self.spec.timeout_s)

    def _surroundings(self) -> Surroundings:
        return Surroundings(sys_path=None, environ={**self._variables, **os.environ})

    def _pickle(self, value: object) -> bytes:
        return pickle.dumps(value)  # by name, because the stack imports its own modules


class _Subprocess:
    """Adapter from ``subprocess.Popen`` to the interface of ``multiprocessing.Process``.

    Args:
        popen: Process to adapt.
        sentinel: File descriptor that becomes readable when the process has exited.
        lifeline: File descriptor that the process watches to detect the end of this process.
    """

    def __init__(self, popen: "subprocess.Popen[bytes]", sentinel: int, lifeline: int) -> None:
        self._popen, self._lifeline = popen, lifeline
        self.pid, self.sentinel = popen.pid, sentinel
        self.terminate, self.kill = popen.terminate, popen.kill

    @property
    def exitcode(self) -> int | None:
        """Exit code (negative for a signal), or None while the process runs."""
        return self._popen.poll()

    def join(self, timeout: float | None = None) -> None:
        """Wait until the process has exited, at most ``timeout`` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._popen.wait(timeout)

    def close(self) -> None:
        """Close the file descriptors."""
        os.close(self.sentinel)
        os.close(self._lifeline)


def start_worker_in(python: Path, name: str, timeout_s: float | None) -> WorkerProcess:
    """Start a worker process in the interpreter ``python``. The worker then waits for its ``Setup``.

    Args:
        python: Python of a virtual environment, with the same version as this one.
        name: Name of the environment, for error messages.
        timeout_s: Timeout of a message, or None for no limit. The timeout of the start is at least ``START_S``.

    Raises:
        WorkerError: The process exited or was not ready in time.
    """
    with ExitStack() as ours, ExitStack() as theirs:
        conn, worker_conn = connection.Pipe()
        stacks, stack_writer = connection.Pipe(duplex=False)
        parent_fd, lifeline = os.pipe()
        sentinel, held = os.pipe()  # nothing is written to it; it closes when the process exits
        for side, kept in ((ours, (conn, stacks)), (theirs, (worker_conn, stack_writer))):
            for end in kept:
                side.callback(end.close)
        for side, fds in ((ours, (lifeline, sentinel)), (theirs, (parent_fd, held))):
            for fd in fds:
                side.callback(os.close, fd)
        arguments = worker_conn.fileno(), stack_writer.fileno(), os.getpid(), parent_fd
        process = _Subprocess(_spawn(python, arguments, (*arguments[:2], parent_fd, held)), sentinel, lifeline)
        theirs.close()
        worker = WorkerProcess(process, conn, stacks)
        ours.pop_all()
    try:
        worker.set_timeout(timeout_s)
        _await_start(worker, python, name, None if timeout_s is None else max(timeout_s, START_S))
    except BaseException:
        process.kill()
        worker.end(0.0)
        raise
    return worker


def _spawn(python: Path, arguments: tuple[int, ...], fds: tuple[int, ...]) -> "subprocess.Popen[bytes]":
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # until the worker ignores it
    try:
        # With -I, neither the working folder nor PYTHONPATH affects the imports of the stack.
        command = [str(python), "-I", "-c", bootstrap(), *map(str, arguments)]
        # Send its output to standard error, because it is not output of this program.
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=fds)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _await_start(worker: WorkerProcess, python: Path, name: str, limit_s: float | None) -> None:
    if not worker.wait(limit_s):
        raise WorkerError(
            f"{name}: the interpreter {python} was not ready within {limit_s:g} seconds (timeout_s, or {START_S:g} if "
            "that is longer); check whether it can import numpy, or pass timeout_s=None for no limit"
        )
    with contextlib.suppress(EOFError, ConnectionError):
        if worker.conn.recv_bytes() == READY:
            return
    worker.process.join(1.0)
    raise WorkerError(
        f"{name}: the interpreter {python} exited with code {worker.process.exitcode} before it was ready; "
        "see its output on stderr, and install its stack again"
    )


def main(conn_fd: int, stacks_fd: int, parent_pid: int, parent_fd: int) -> None:
    """Run a worker in the interpreter of a stack, with the file descriptors that the parent has opened."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C, and has blocked it until now
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    conn = Connection(conn_fd)
    conn.send_bytes(READY)
    serve_parent(conn, Connection(stacks_fd, readable=False), Parent(parent_pid, parent_fd))


def build(entry: str, buf: Any = None, **options: Any) -> PufferEnv:
    """Import ``entry``, a ``"module:function"``, and call it to make the environment."""
    module, _, function = entry.partition(":")
    env: PufferEnv = getattr(importlib.import_module(module), function)(buf=buf, **options)
    return env
