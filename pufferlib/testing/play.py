"""Random play of an environment, and comparison of two plays."""

import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, reset_values, step_values
from pufferlib.errors import APIUsageError, InvalidAgentError
from pufferlib.legal_actions import LegalActions
from pufferlib.testing.contract import ContractError

__all__ = ["FINAL", "MARKS", "OUTCOMES", "Differs", "Shown", "Trace", "play"]

OUTCOMES = ("observations", "rewards", "terminals", "truncations", "masks")
FINAL = "final_observations"
MARKS = 0x55, 0xAA  # two bytes that differ in every bit

# Contract line of an error in reset or step, by a part of the message. The first match counts.
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
        index: Number of the step, or 0 for the first reset.
        is_reset: True after a reset. Rewards and ends are then not used.
        arrays: Arrays of the environment, by name.
        returned: Return values of reset or step, by name.
        infos: Infos returned by reset or step.
        final: True if truncations write ``final_observations``.
    """

    index: int
    is_reset: bool
    arrays: dict[str, Array]
    returned: dict[str, Any]
    infos: Any
    final: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays that are valid after this reset or step."""
        return ("observations", "masks") if self.is_reset else OUTCOMES

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Agents whose episode ended in this step, bool ``(num_agents,)``."""
        if self.is_reset:
            return np.zeros(len(self.arrays["masks"]), bool)
        ended: npt.NDArray[np.bool_] = self.arrays["terminals"] | self.arrays["truncations"]
        return ended

    def copy(self) -> dict[str, Array]:
        """Return copies of the valid arrays, by name."""
        return {name: self.arrays[name].copy() for name in self.names}

    def digests(self, rows: slice = slice(None)) -> Digests:
        """Return digests of ``rows`` of the valid arrays. Final observations have a digest per row."""
        found: Digests = {name: _digest(self.arrays[name][rows]) for name in self.names}
        if self.final and not self.is_reset:
            cut = np.flatnonzero(self.arrays["truncations"][rows])
            found[FINAL] = {int(row): _digest(self.arrays[FINAL][rows][row]) for row in cut}
        return found


class Differs(Exception):  # noqa: N818 - never reaches the caller
    """Difference between two plays: array ``name`` in step ``index``, and ``row`` if it is known."""

    def __init__(self, name: str, index: int, row: int | None) -> None:
        super().__init__(name, index, row)
        self.name, self.index, self.row = name, index, row


@dataclass
class Trace:
    """Digests of a play, with 32 bits per array and step."""

    steps: list[Digests] = field(default_factory=list)

    def add(self, shown: Shown, rows: slice = slice(None)) -> None:
        """Append the digests of one reset or step."""
        self.steps.append(shown.digests(rows))

    def compare(self, shown: Shown, rows: slice = slice(None)) -> None:
        """Raise Differs unless ``shown`` equals the same step of this play."""
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
    """Reset ``env`` with ``seed``, then step it ``steps`` times, and yield the outcome of each.

    Before each step ``final_observations`` is filled with the byte ``mark``. Two plays with different marks therefore
    show which parts a truncation did not write.

    Args:
        env: ``PufferEnv`` or emulated environment.
        seed: Seed of the environment and its actions.
        steps: Number of steps. For an emulated environment some of them are resets.
        mark: Byte value, 0 to 255.
        actions: Function from observations to the actions of the next step. By default actions are random and legal.
    """
    arrays = {name: getattr(env, name) for name in (*OUTCOMES, FINAL)}
    if actions is None:
        actions = LegalActions(env, env.num_agents, seed).sample
    final = not env.emulated and env.autoreset == AutoresetMode.SAME_STEP
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
    """Convert errors of emulation in a reset or step to ContractError."""
    try:
        yield
    except InvalidAgentError as error:
        raise ContractError.of("spaces", str(error)) from error
    except APIUsageError as error:
        message = str(error)
        raise ContractError.of(next(line for part, line in LINES if part in message), message) from error
