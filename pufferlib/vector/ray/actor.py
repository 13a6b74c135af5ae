"""Actor of Ray with an ``EnvRunner`` whose arrays are sent as one block.

This module imports neither torch nor ray, so that an actor takes only a few MiB more than Ray itself.
"""

import os
import pickle
import socket
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array, BufferLayout, Buffers
from pufferlib.env import Infos
from pufferlib.machine.output import hide_output_for_good
from pufferlib.machine.pickling import pickled
from pufferlib.vector.calls import EnvCall, perform, sendable
from pufferlib.vector.env_runner import EnvRunner, env_rows
from pufferlib.vector.failures import Failed
from pufferlib.vector.specs import AutoresetMode, EnvSpec, Ready, RowSpec

__all__ = ["Bytes", "EnvActor", "Outcome", "actor_class", "shipped_layout"]

Bytes = npt.NDArray[np.uint8]

_T = TypeVar("_T")

_variables: set[str] = set()  # names of environment variables of this process that actors may have
# In the order of the block. Final observations come last, because they are sent only if an episode has ended.
_SHIPPED = ("rewards", "terminals", "truncations", "masks", "observations", "final_observations")


def shipped_layout(row_spec: RowSpec, num_envs: int) -> BufferLayout:
    """Return the layout of the memory block that an actor sends after each reset or step."""
    specs = row_spec.arrays(num_envs)
    return BufferLayout({name: specs[name] for name in _SHIPPED})


# For a reset or step: the block, and the pickled infos with their sources if there are any. For a call: its results.
Outcome = tuple[Bytes | None, bytes]


def actor_class() -> type[Any]:
    """Return the class of the actors, for ``ray.remote``. Its ``call("step", ...)`` calls ``EnvActor.step(...)``.

    Actors get this process's current ``sys.path``, environment variables and working directory, like worker processes.
    On another machine, existing variables are kept, and the directory changes only if it exists there. Ray's own
    variables (``RAY_...``) are left to Ray.

    The class is local to this function, so it is pickled by value and its code runs before the actor imports pufferlib.
    This matters because Ray puts the caller's directory first on an actor's path, even if the caller has it last or not
    at all (``PYTHONSAFEPATH``). It may contain sources of the installed package.
    """
    folder, path = os.getcwd(), [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    _variables.update(environ)
    removed = _variables.difference(environ)

    def machine() -> tuple[str, str]:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return file.read(), socket.gethostname()

    home = machine()

    class Actor:
        def __init__(self) -> None:
            import contextlib
            import importlib
            import os
            import sys

            sys.path[:] = [*path, *(entry for entry in sys.path if entry not in (*path, folder))]
            os.environ.update(environ if machine() == home else {**environ, **os.environ})
            for name in removed if machine() == home else ():
                os.environ.pop(name, None)
            with contextlib.suppress(OSError):
                os.chdir(folder)
            self.actor = importlib.import_module("pufferlib.vector.ray.actor").EnvActor()

        def call(self, method: str, *args: Any) -> Any:
            return getattr(self.actor, method)(*args)

    return Actor


class EnvActor:
    """Actor that builds, resets and steps environments. Failures are returned as ``Failed``, never raised."""

    def __init__(self) -> None:
        self._runner: EnvRunner | None = None
        self._progress = memoryview(bytearray(4)).cast("I")  # position of the current environment

    def place(self) -> tuple[str, int]:
        """Return host name and process id. A reply means that the cluster has placed the actor."""
        return socket.gethostname(), os.getpid()

    def build(self, setup: bytes) -> bytes | Failed:
        """Build the environments and return a pickled ``Ready``.

        Args:
            setup: Tuple pickled by value: environment specs ``tuple[EnvSpec, ...]``, autoreset mode or None, RowSpec or
                None for the actor that determines it, and whether to discard output on stdout and stderr.
        """
        return self._try("build", lambda: pickled(self._build(*pickle.loads(setup))))

    def reset(self, seeds: npt.NDArray[np.int64]) -> Outcome | Failed:
        """Start new episodes, with one seed per environment. -1 for none."""
        return self._try("reset", lambda: self._reset(seeds))

    def step(self, actions: Array) -> Outcome | Failed:
        """Step every environment. ``actions`` holds the rows of all of them."""
        return self._try("step", lambda: self._step(actions))

    def resume(self, setup: bytes, seeds: npt.NDArray[np.int64], last_observations: Array | None) -> Outcome | Failed:
        """Replace an actor that was lost: ``build``, then ``reset``.

        Args:
            setup: Setup as for ``build``.
            seeds: Seeds as for ``reset``.
            last_observations: Last observations of the lost episodes, to be shown first. The next step is then the
                reset, or with autoreset "disabled" nothing happens until a reset.
        """
        ready = self.build(setup)
        if isinstance(ready, Failed):
            return ready
        if last_observations is None:
            return self.reset(seeds)
        self._arrays["observations"][...] = last_observations
        return self._try("step", lambda: self._show_ended(seeds))

    def call(self, call: bytes) -> Outcome | Failed:
        """Perform an ``EnvCall`` that was pickled by value."""
        return self._try("call", lambda: self._perform(pickle.loads(call)))

    def notify(self) -> None:
        """Notify the environments before their next step or reset."""
        assert self._runner is not None
        self._runner.notify()

    def close(self) -> Failed | None:
        """Close the environments."""
        return self._try("close", lambda: self._runner.close() if self._runner else None)

    def _try(self, phase: str, act: Callable[[], _T]) -> _T | Failed:
        try:
            return act()
        except BaseException as error:
            return Failed.of(phase, self._progress[0], error)

    def _build(
        self,
        specs: tuple[EnvSpec, ...],
        autoreset: AutoresetMode | None,
        row_spec: RowSpec | None,
        hide_output: bool = False,
    ) -> Ready:
        if hide_output:
            hide_output_for_good()
        self._row_spec, self._first, self._num_envs = row_spec, specs[0].index, len(specs)
        self._arrays: Buffers = {}
        self._runner = EnvRunner(specs, autoreset, self._rows, self._progress)
        self._runner.track(self._progress)
        assert self._row_spec is not None
        return Ready(self._row_spec, self._runner.describe())

    def _rows(self, row_spec: RowSpec, index: int) -> Buffers:
        self._row_spec = self._row_spec or row_spec
        self._row_spec.check_same(row_spec, index)
        if not self._arrays:
            self._layout = shipped_layout(self._row_spec, self._num_envs)
            self._memory = np.zeros(self._layout.nbytes, np.uint8)
            self._arrays = self._layout.arrays(self._memory.data)
            self._arrays["masks"][:] = True
            shape, dtype = self._row_spec.arrays(self._num_envs)["actions"]
            self._arrays["actions"] = np.zeros(shape, dtype)
        return env_rows(self._arrays, row_spec.num_agents, index - self._first)

    def _reset(self, seeds: npt.NDArray[np.int64]) -> Outcome:
        assert self._runner is not None
        return self._outcome(self._runner.reset([None if seed < 0 else seed for seed in seeds.tolist()]))

    def _step(self, actions: Array) -> Outcome:
        assert self._runner is not None
        self._arrays["actions"][...] = actions
        return self._outcome(self._runner.step())

    def _perform(self, call: EnvCall) -> Outcome:
        assert self._runner is not None
        results = perform(self._runner, call)
        if call.kind == "reset":
            return self._outcome(results)
        memory = self._outcome([])[0] if call.kind == "load" else None
        return memory, pickled((sendable(results), []))

    def _show_ended(self, seeds: npt.NDArray[np.int64]) -> Outcome:
        assert self._runner is not None
        self._runner.show_ended(seeds.tolist())
        return self._outcome([])

    def _outcome(self, infos: Infos) -> Outcome:
        ended = self._arrays["terminals"].any() or self._arrays["truncations"].any()
        shipped = self._memory if ended else self._memory[: self._layout.start("final_observations")]
        assert self._runner is not None
        return shipped, pickled((infos, self._runner.sources)) if infos else b""
