"""Checks of pool arguments that the fast path rejects. Safe values are converted, others get an error."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from pufferlib.actions import action_array
from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError

__all__ = [
    "converted_actions",
    "converted_ids",
    "refused_action",
    "refused_id",
]

IDLE, SENT, READY = range(3)  # states of an environment, as in C


def converted_actions(where: str, actions: Any, shape: tuple[int, ...], is_box: bool) -> Array:
    """Return ``actions`` as a C-contiguous array of int64 or float64.

    Args:
        where: Name of the calling method, for error messages.
        actions: Actions of any type.
        shape: Expected shape, ``(rows, *action_shape)``.
        is_box: Whether actions are real numbers. Otherwise they are integers, which may have a float dtype.

    Raises:
        APIUsageError: The shape is different, or the actions are not numbers.
    """
    array = action_array(where, actions)
    if array.shape != shape:
        raise APIUsageError(
            f"{where}: actions must have shape {shape}, one row for each player of each environment that is sent one, "
            f"got shape {array.shape}"
        )
    if array.dtype.kind not in ("iuf" if is_box else "biuf"):
        raise APIUsageError(
            f"{where}: actions must be {'real' if is_box else 'whole'} numbers, got dtype {array.dtype}; convert them, "
            f"e.g. actions.astype({'np.float32' if is_box else 'np.int32'})"
        )
    if array.dtype.kind == "f" or is_box:
        return np.ascontiguousarray(array, np.float64)
    if array.dtype == np.uint64:
        array = np.minimum(array, np.iinfo(np.int64).max)
    return np.ascontiguousarray(array, np.int64)


def refused_action(where: str, actions: Any, sizes: Sequence[int], is_box: bool) -> APIUsageError:
    """Return the error for the first action that is not finite, or not an integer below its size in ``sizes``."""
    array = np.asarray(actions)
    if is_box:
        with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
            fits = np.isfinite(array.astype(np.float32))
        allowed = "finite numbers of float32"
    else:
        fits = (array >= 0) & (array < np.array(sizes)) & (np.floor(array) == array)
        allowed = " and ".join(f"0 to {size - 1}" for size in dict.fromkeys(sizes))
        allowed = f"whole numbers from {allowed}"
    if fits.all():  # another thread has changed it
        return APIUsageError(f"{where}: actions must be {allowed}, and stay so during the call; copy them before")
    place = tuple(np.argwhere(~fits)[0])
    return APIUsageError(
        f"{where}: actions must be {allowed}, got {array[place].item()!r} in row {place[0]}; look at the policy, or "
        "choose from env.action_space"
    )


def converted_ids(where: str, env_ids: Any) -> Array:
    """Return ``env_ids`` as a C-contiguous int64 array of shape ``(k,)``, with k at least 1.

    Raises:
        APIUsageError: The shape is different, the array is empty, or it does not contain integers.
    """
    try:
        array = np.asarray(env_ids)
    except ValueError:
        array = np.empty((), object)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        got = f"dtype {array.dtype} and shape {array.shape}" if isinstance(env_ids, np.ndarray) else f"{env_ids!r:.80}"
        raise APIUsageError(
            f"{where}: env_id must be one or more integers in a row, as info['env_id'] has them, or None for all "
            f"environments, got {got}"
        )
    if array.dtype == np.uint64:
        array = np.minimum(array, np.iinfo(np.int64).max)
    return np.ascontiguousarray(array, np.int64)


def refused_id(where: str, env_id: int, num_envs: int, stage: int, twice: bool) -> APIUsageError:
    """Return the error for an id that is out of range, repeated, in flight, or of an environment that needs a reset."""
    if not 0 <= env_id < num_envs:
        return APIUsageError(
            f"{where}: env_id must be from 0 to {num_envs - 1}, got {env_id}; info['env_id'] has those that came back"
        )
    if twice:
        return APIUsageError(f"{where}: env_id must name each environment once, got {env_id} more than once")
    if stage == IDLE:
        return APIUsageError(
            f"{where}: environment {env_id} is over, or has not begun, and autoreset='disabled'; reset it first, as in "
            f"env.reset([{env_id}])"
        )
    return APIUsageError(
        f"{where}: environment {env_id} is in flight, since it was sent something and has not come back; recv it first"
    )
