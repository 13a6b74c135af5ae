"""Checks of an environment before and during its first reset: spaces, arrays, and complete rows."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pufferlib.buffers import Buffers, allocate, array_specs, slice_rows
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.spaces import check_native_spaces
from pufferlib.testing.contract import ContractError, broken
from pufferlib.testing.play import MARKS

__all__ = [
    "adopting",
    "check_arrays",
    "check_autoreset",
    "check_neighbouring_rows",
    "check_rows_are_filled",
    "check_spaces",
    "check_takes_seed",
    "takes",
]

NEIGHBOURS = 0, -1  # rows of other environments in the batch of ``adopting``


def check_spaces(env: Any) -> None:
    """Raise unless the spaces and the number of agents are valid for a batch."""
    for name in ("single_observation_space", "single_action_space", "num_agents", "emulated", "done"):
        if not hasattr(env, name):
            raise broken(
                env, "spaces", f"{name} is missing", "call super().__init__(buf), or wrap it with pufferlib.emulation"
            )
    try:
        check_native_spaces(type(env).__name__, env.single_observation_space, env.single_action_space)
    except APIUsageError as error:
        raise ContractError.of("spaces", str(error)) from None


def check_arrays(env: Any) -> None:
    """Raise unless each array has the shape and dtype that the spaces require."""
    for name, (shape, dtype) in array_specs(
        env.single_observation_space, env.single_action_space, env.num_agents
    ).items():
        array = getattr(env, name, None)
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            raise broken(
                env,
                "arrays",
                f"{name} must be an array {dtype} {shape}, got {got}",
                "leave it to super().__init__(buf)",
            )


def check_autoreset(env: Any) -> None:
    """Raise unless ``autoreset`` is a valid mode."""
    mode = getattr(env, "autoreset", None)
    if not env.emulated and mode not in list(AutoresetMode):  # an emulated one is reset by its caller
        raise broken(
            env,
            "autoreset",
            f"autoreset must be one of {', '.join(map(repr, AutoresetMode))}, got {mode!r}",
            "set the mode that step implements",
        )


def check_takes_seed(env: Any) -> None:
    """Raise unless ``reset`` accepts the keyword argument ``seed``."""
    try:
        parameters = inspect.signature(env.reset).parameters.values()
    except (TypeError, ValueError):  # a C function without a signature
        return
    if not any(each.name == "seed" or each.kind is each.VAR_KEYWORD for each in parameters):
        raise broken(env, "seed", "reset must accept a seed", "define reset(self, seed=None)")


def check_rows_are_filled(env: Any, seed: int) -> None:
    """Raise if ``reset`` does not write the whole row of every present agent."""
    rows = []
    for mark in MARKS:
        env.observations.reshape(-1).view(np.uint8)[:] = mark
        env.reset(seed=seed)
        rows.append(env.observations[env.masks].view(np.uint8))
    if env.observations.dtype == bool:  # the marks are not valid bools
        rows = [row != 0 for row in rows]
    left = np.argwhere((rows[0] == MARKS[0]) & (rows[1] == MARKS[1]))
    if len(left):
        row = int(np.flatnonzero(env.masks)[left[0][0]])
        share = len(left) / rows[0].size
        raise broken(
            env,
            "observations",
            f"observations must fill the whole row of {env.single_observation_space}, "
            f"got {share:.0%} of the bytes not written by reset, first in row {row}",
            "make the space smaller, or write all of it: self.observations[:] = 0",
        )


def adopting(made: Any, creator: Callable[..., Any], /, **keywords: Any) -> tuple[Any, Buffers]:
    """Make an environment like ``made`` on rows of a larger batch.

    Returns:
        Environment, and the arrays of the batch. The rows before and after the environment's rows are marked.

    Raises:
        ContractError: The environment does not use the arrays in ``buf``.
    """
    batch = allocate(made.single_observation_space, made.single_action_space, made.num_agents + 2)
    for row in NEIGHBOURS:
        for array in batch.values():
            array[row : row + 1 or None].reshape(-1).view(np.uint8)[:] = MARKS[0]
    buf = slice_rows(batch, 1, made.num_agents + 1)
    if not takes_any(creator, "buf"):
        raise broken(
            made,
            "arrays",
            "the creator must take the arrays as the keyword buf, got a signature without it",
            "define __init__(self, ..., buf=None), and pass it on: super().__init__(buf)",
        )
    env = creator(buf=buf, **keywords)
    for name, array in buf.items():
        if getattr(env, name) is not array:
            raise broken(
                env,
                "arrays",
                f"{name} must be the array given in buf, got another",
                "pass buf on: super().__init__(buf)",
            )
    return env, batch


def check_neighbouring_rows(env: Any, batch: Buffers) -> None:
    """Raise if ``env`` wrote to the rows before or after its own in the ``batch`` returned by ``adopting``."""
    for name, array in batch.items():
        for row in NEIGHBOURS:
            if (array[row : row + 1 or None].reshape(-1).view(np.uint8) != MARKS[0]).any():
                raise broken(
                    env,
                    "arrays",
                    f"{name} must be written only in the {env.num_agents} rows of the environment, "
                    f"got another value {'after' if row else 'before'} them",
                    "look for an index that is out of range",
                )


def takes_any(creator: Callable[..., Any], keyword: str) -> bool:
    """Return False if ``creator`` has neither a parameter named ``keyword`` nor one for any keyword."""
    try:
        parameters = inspect.signature(creator).parameters
    except (TypeError, ValueError):  # a C function without a signature
        return True
    return keyword in parameters or any(each.kind is each.VAR_KEYWORD for each in parameters.values())


def takes(creator: Callable[..., Any], keyword: str) -> bool:
    """Return True if ``creator`` has a parameter named ``keyword``."""
    try:
        return keyword in inspect.signature(creator).parameters
    except (TypeError, ValueError):  # a C function without a signature
        return False
