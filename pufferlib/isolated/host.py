"""The other side: holds one environment, in the interpreter of its stack, and serves its parent.

Requests and replies are small and go through a pipe. The arrays of the batch go through shared
memory, which the host makes when it knows the spaces: actions are there before a request to step,
everything else before its reply.
"""

import importlib
import mmap
import os
import signal
import traceback
from dataclasses import dataclass
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from pufferlib.buffers import Array, BufferLayout, Buffers, array_specs
from pufferlib.env import Autoreset, Infos, PufferEnv
from pufferlib.spaces import Space

__all__ = ["Description", "Failure", "Order", "main", "map_buffers"]


@dataclass(frozen=True)
class Order:
    """Parent to host, once: what to build.

    Attributes:
        entry: "module:function", which takes ``seed`` and the options and returns a ``PufferEnv``.
    """

    entry: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Description:
    """Host to parent, once: what was built; the memory follows."""

    observation_space: Any
    action_space: Space
    num_agents: int
    autoreset: Autoreset
    render_mode: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True)
class Failure:
    """Host to parent: the environment raised.

    Attributes:
        error: The exception itself if it is one of pufferlib's own, else None.
        line: The exception in one line.
        traceback: The whole of it.
    """

    error: Exception | None
    line: str
    traceback: str


def map_buffers(fd: int, described: Description, *, create: bool = False) -> Buffers:
    """The arrays of the batch in the shared memory ``fd``, which ``create`` gives its size."""
    layout = BufferLayout(array_specs(described.observation_space, described.action_space, described.num_agents))
    if create:
        os.ftruncate(fd, layout.nbytes)
    return layout.arrays(memoryview(mmap.mmap(fd, layout.nbytes)))


def main(fd: int) -> None:
    """Serve the parent at the other end of the socket ``fd`` until it closes its end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's to handle
    with Connection(fd) as parent:
        try:
            _serve(parent)
        except (EOFError, ConnectionError):
            pass  # the parent is gone
        except Exception as error:
            parent.send(_failure(error))


def _serve(parent: Connection) -> None:
    order: Order = parent.recv()
    module, _, function = order.entry.partition(":")
    env: PufferEnv = getattr(importlib.import_module(module), function)(**order.options)
    shared = _share(env, parent)
    try:
        while True:
            request, argument = parent.recv()
            parent.send(_answer(env, shared, request, argument))
    finally:
        env.close()


def _share(env: PufferEnv, parent: Connection) -> Buffers:
    described = Description(
        env.single_observation_space,
        env.single_action_space,
        env.num_agents,
        env.autoreset,
        getattr(env, "render_mode", None),
        dict(getattr(env, "metadata", {})),
    )
    fd = os.memfd_create("pufferlib")
    try:
        os.fchmod(fd, 0o600)
        shared = map_buffers(fd, described, create=True)
        parent.send(described)
        reduction.send_handle(parent, fd, os.getppid())
    finally:
        os.close(fd)
    return shared


def _answer(env: PufferEnv, shared: Buffers, request: str, argument: Any) -> Infos | Array:
    if request == "render":
        picture: Array = env.render()  # type: ignore[attr-defined] # the parent asks only where there is a mode
        return picture
    if request == "reset":
        _, infos = env.reset(argument)
    else:
        *_, infos = env.step(shared["actions"])
    for name, array in shared.items():
        if name != "actions":
            np.copyto(array, getattr(env, name))
    return infos


def _failure(error: Exception) -> Failure:
    from pufferlib.errors import PufferError

    own = error if isinstance(error, PufferError) else None
    line = traceback.format_exception_only(error)[0].strip()
    return Failure(own, line, "".join(traceback.format_exception(error)).rstrip())
