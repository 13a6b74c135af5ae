"""An environment in another interpreter, as a PufferEnv."""

import contextlib
import os
import signal
import socket
import subprocess
import weakref
from collections.abc import Mapping
from multiprocessing import reduction
from multiprocessing.connection import Connection
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array, BufferSource
from pufferlib.env import Infos, PufferEnv, Stepped
from pufferlib.errors import APIUsageError, WorkerError
from pufferlib.isolated.host import Description, Failure, Order, map_buffers
from pufferlib.isolated.stacks import bootstrap

__all__ = ["IsolatedEnv"]

_END_S = 5.0  # time for the environment to close, before its process is ended by force


class IsolatedEnv(PufferEnv):
    """The environment that ``entry`` makes in another interpreter.

    Args:
        name: What to call it in messages.
        python: The interpreter: the Python of a virtual environment, of the same version as this one.
        entry: ``"module:function"``, imported there. The function takes ``options`` as keywords and
            returns a ``PufferEnv``.
        options: Picklable keywords for it.
        buf: Arrays to write into, as ``vector.make`` passes them.
        timeout_s: Longest that the construction, a reset or a step may take; None is for ever.
        variables: Of the environment of its process, where this one has none of the name.

    Raises:
        WorkerError: The environment raised, its process ended, or it took longer than ``timeout_s``.
            The process is ended then, and the environment is closed.
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
        self._timeout_s = timeout_s
        self._started = False
        self._host, self._process = _start(python, variables)
        self._end = weakref.finalize(self, _end, self._host, self._process)
        described = self._ask("build", Order(entry, dict(options)))
        assert isinstance(described, Description)
        self._shared = self._map(described)
        self.single_observation_space = described.observation_space
        self.single_action_space = described.action_space
        self.num_agents = described.num_agents
        self.autoreset = described.autoreset
        self.render_mode = described.render_mode
        self.metadata = described.metadata
        super().__init__(buf)
        self._checked = ActionCheck(f"{name}.step", self.single_action_space, self.num_agents)

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new episodes, of the seed if one is given."""
        infos = self._exchange("reset", seed)
        self._started = True
        return self.observations, infos

    def step(self, actions: Any) -> Stepped:
        """Act with every agent once."""
        if not self._started:
            raise APIUsageError(f"{self._name}.step: the environment was not reset yet; call reset first")
        self._shared["actions"][:] = self._checked(actions)
        infos = self._exchange("step")
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def render(self) -> Array | None:
        """A picture, uint8 ``(height, width, 3)``; None without a ``render_mode``."""
        return self._ask("render", ("render", None)) if self.render_mode else None

    def close(self) -> None:
        """End the other process. May be called twice."""
        self._end()
        self._shared = {}

    def _exchange(self, request: str, argument: Any = None) -> Infos:
        infos: Infos = self._ask(request, (request, argument))
        for name, array in self._shared.items():
            np.copyto(getattr(self, name), array)
        return infos

    def _ask(self, phase: str, message: Any) -> Any:
        """The reply to a message; whatever prevents it ends the process: a late reply would be taken for another."""
        if not self._end.alive:
            raise APIUsageError(f"{self._name}.{phase}: the environment is closed; make another")
        try:
            with contextlib.suppress(ConnectionError):  # it ended: what it said last is still to be read
                self._host.send(message)
            if not self._host.poll(self._timeout_s):
                raise WorkerError(
                    f"{self._name}: one {phase} may take timeout_s={self._timeout_s:g} seconds, got more; "
                    "raise timeout_s, or pass timeout_s=None to wait for ever"
                )
            reply = self._host.recv()
            if isinstance(reply, Failure):
                raise self._error(phase, reply)
            return reply
        except (EOFError, ConnectionError):
            self._end()
            raise WorkerError(
                f"{self._name}: its process {self._process.pid} ended with {_cause(self._process)}, in {phase}. "
                "If the machine ran out of memory (see dmesg), use fewer environments"
            ) from None
        except BaseException:
            self._end()
            raise

    def _error(self, phase: str, failure: Failure) -> Exception:
        if failure.error is not None:
            failure.error.add_note(f"In the process of {self._name}:\n{failure.traceback}")
            return failure.error
        return WorkerError(f"{self._name}: {failure.line}, in {phase}.\n\n{failure.traceback}")

    def _map(self, described: Description) -> dict[str, Array]:
        fd = reduction.recv_handle(self._host)
        try:
            return map_buffers(fd, described)
        finally:
            os.close(fd)


def _start(python: Path, variables: Mapping[str, str]) -> tuple[Connection, "subprocess.Popen[bytes]"]:
    ours, theirs = socket.socketpair()
    with theirs:
        try:
            # -I: neither the working folder nor PYTHONPATH may change what the stack imports.
            command = [str(python), "-I", "-c", bootstrap(), str(theirs.fileno())]
            # What it prints is not the output of this program.
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=[theirs.fileno()], env={**variables, **os.environ}
            )
        except BaseException:
            ours.close()
            raise
    return Connection(ours.detach()), process


def _end(host: Connection, process: "subprocess.Popen[bytes]") -> None:
    """Let the environment close, or end it by force."""
    host.close()
    try:
        process.wait(_END_S)
    except BaseException as error:
        process.kill()
        process.wait()
        if not isinstance(error, subprocess.TimeoutExpired):
            raise


def _cause(process: "subprocess.Popen[bytes]") -> str:
    code = process.returncode
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"
