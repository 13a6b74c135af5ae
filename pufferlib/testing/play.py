"""Random play: what an environment shows after a reset and after each step, and how two plays differ."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.env import reset_values, step_values
from pufferlib.errors import APIUsageError, InvalidAgentError
from pufferlib.legal_actions import LegalActions
from pufferlib.testing.contract import ContractError

__all__ = ["FINAL", "MARKS", "OUTCOMES", "Differs", "Shown", "Trace", "play"]

OUTCOMES = ("observations", "rewards", "terminals", "truncations", "masks")
FINAL = "final_observations"
MARKS = 0x55, 0xAA  # two bytes of which no bit is the same

# The line that an error of a reset or step is about, by a part of its message; the first that fits.
LINES = (
    (" must return observation", "arrays"),
    ("must return a tuple", "arrays"),
    ("reward", "rewards"),
    ("terminat", "ends"),
    ("truncat", "ends"),
    ("observation", "observations"),
    ("", "arrays"),
)

Digests = dict[str, int | dict[int, int]]


@dataclass
class Shown:
    """Outcome of a reset or step.

    Attributes:
        index: 0 for the first reset, then the number of the step.
        is_reset: True after a reset, after which nobody looks at rewards and ends.
        arrays: The environment's own, by name.
        returned: Values that reset or step returned, by name.
        infos: The infos that it returned.
        final: Tells if truncations leave something in ``final_observations``.
    """

    index: int
    is_reset: bool
    arrays: dict[str, Array]
    returned: dict[str, Any]
    infos: Any
    final: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays that mean something now."""
        return ("observations", "masks") if self.is_reset else OUTCOMES

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Agents whose episode has ended in this step, bool ``(num_agents,)``."""
        if self.is_reset:
            return np.zeros(len(self.arrays["masks"]), bool)
        ended: npt.NDArray[np.bool_] = self.arrays["terminals"] | self.arrays["truncations"]
        return ended

    def copy(self) -> dict[str, Array]:
        """Copies of the arrays that mean something now."""
        return {name: self.arrays[name].copy() for name in self.names}

    def digests(self, rows: slice = slice(None)) -> Digests:
        """Digests of ``rows`` of the arrays that mean something now; of final observations, row by row."""
        found: Digests = {name: _digest(self.arrays[name][rows]) for name in self.names}
        if self.final and not self.is_reset:
            cut = np.flatnonzero(self.arrays["truncations"][rows])
            found[FINAL] = {int(row): _digest(self.arrays[FINAL][rows][row]) for row in cut}
        return found


class Differs(Exception):  # noqa: N818 - never reaches the caller
    """Two plays that should be the same are not: ``name`` in step ``index``, of ``row`` where that is known."""

    def __init__(self, name: str, index: int, row: int | None) -> None:
        super().__init__(name, index, row)
        self.name, self.index, self.row = name, index, row


@dataclass
class Trace:
    """Digests of a play: 32 bits for each array of each step, however large it is."""

    steps: list[Digests] = field(default_factory=list)

    def add(self, shown: Shown, rows: slice = slice(None)) -> None:
        """Append what was shown."""
        self.steps.append(shown.digests(rows))

    def compare(self, shown: Shown, rows: slice = slice(None)) -> None:
        """Raise Differs unless ``shown`` is what this play showed in its place."""
        expected, got = self.steps[shown.index], shown.digests(rows)
        for name in {**expected, **got}:
            before, after = expected.get(name), got.get(name)
            if before != after:
                row = None
                if isinstance(before, dict) and isinstance(after, dict) and before.keys() == after.keys():
                    row = next(row for row in before if before[row] != after[row])
                raise Differs(name, shown.index, row)


def _digest(array: Array) -> int:
    return zlib.crc32(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)


def play(
    env: Any, seed: int, steps: int, mark: int, actions: Callable[[Array], Array] | None = None
) -> Iterator[Shown]:
    """Yield what ``env`` shows after a reset with ``seed`` and after each of ``steps`` steps.

    Before each step ``final_observations`` is filled with the byte ``mark``. What a truncation leaves of
    it differs between two plays with different marks, as nothing else may.

    Args:
        env: A ``PufferEnv`` or emulated environment.
        seed: Of the environment, and of its actions.
        steps: To play; of an emulated environment some of them are resets.
        mark: A byte.
        actions: Returns the actions of the next step for observations; random legal ones by default.
    """
    arrays = {name: getattr(env, name) for name in (*OUTCOMES, FINAL)}
    if actions is None:
        actions = LegalActions(env, env.num_agents, seed).sample
    final = not env.emulated and env.autoreset == "same_step"
    for index in range(steps + 1):
        if index == 0 or env.done:
            with _contract_errors():
                observations, infos = reset_values(env, env.reset(seed=None if index else seed))
            yield Shown(index, True, arrays, {"observations": observations}, infos, final)
        else:
            arrays[FINAL].reshape(-1).view(np.uint8)[:] = mark
            drawn = actions(arrays["observations"])
            with _contract_errors():
                *values, infos = step_values(env, env.step(drawn))
            yield Shown(index, False, arrays, dict(zip(OUTCOMES, values, strict=False)), infos, final)


@contextmanager
def _contract_errors() -> Iterator[None]:
    """Raise ContractError for what emulation, or the number of values, finds wrong in a reset or step."""
    try:
        yield
    except InvalidAgentError as error:
        raise ContractError.of("spaces", str(error)) from error
    except APIUsageError as error:
        message = str(error)
        raise ContractError.of(next(line for part, line in LINES if part in message), message) from error
