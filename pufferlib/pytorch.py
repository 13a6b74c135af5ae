"""Flat observations back to the tensors that they were made of, in torch."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pufferlib.errors import APIUsageError

__all__ = ["NativeDtype", "NativeLeaf", "flattened_tensor_size", "nativize_dtype", "nativize_tensor"]

# (dtype, shape, first element, number of elements); the first element counts those of this dtype
NativeLeaf = tuple[torch.dtype, tuple[int, ...], int, int]
NativeDtype = NativeLeaf | dict[str, Any]  # of NativeDtype: dicts nest

TORCH_DTYPES = {
    np.dtype(name): getattr(torch, "bool" if name == "bool_" else name)
    for name in (
        *("bool_", "float16", "float32", "float64"),
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    )
}


def nativize_dtype(emulated: Mapping[str, Any]) -> NativeDtype:
    """Where ``nativize_tensor`` finds each tensor: a leaf, or nested dicts of leaves.

    Args:
        emulated: ``env.emulated`` of an emulated environment.

    Returns:
        A leaf ``(dtype, shape, offset, count)``, or a dict of them by field; entries of a Tuple
        are called ``f0``, ``f1`` and so on. Offset and count are in elements of the leaf's dtype.

    Raises:
        APIUsageError: A dtype that torch does not have.
    """
    return _nativize(emulated["emulated_observation_dtype"], 0, "observation")


def _nativize(dtype: np.dtype[Any], offset: int, name: str) -> NativeDtype:
    if dtype.names is not None:
        fields = {field: dtype.fields[field] for field in dtype.names} if dtype.fields else {}
        return {
            field: _nativize(inner, offset + start, f"{name}[{field!r}]")
            for field, (inner, start, *_) in fields.items()
        }
    if dtype.base not in TORCH_DTYPES:
        raise APIUsageError(
            f"nativize_dtype: {name} has dtype {dtype.base}, which torch does not have; "
            f"choose one of {', '.join(map(str, TORCH_DTYPES))} in the environment's space"
        )
    count = int(np.prod(dtype.shape, dtype=np.int64))
    return TORCH_DTYPES[dtype.base], dtype.shape, offset // dtype.base.itemsize, count


def nativize_tensor(observations: Tensor, dtype: NativeDtype) -> Any:
    """The tensors inside flat observations: views, no copies, fit for ``torch.compile``.

    Args:
        observations: ``(N, numel)`` in the dtype of the flat space, or ``(N, *shape)`` when the
            environment's own space is a Box; rows contiguous.
        dtype: From ``nativize_dtype``.

    Returns:
        A tensor ``(N, *shape)`` in its own dtype, or nested dicts of them.

    Raises:
        APIUsageError: The observations were converted to another dtype before.
    """
    if isinstance(dtype, dict):
        return {field: nativize_tensor(observations, inner) for field, inner in dtype.items()}
    element, shape, offset, count = dtype
    if observations.dtype not in (element, torch.uint8):
        raise APIUsageError(
            f"nativize_tensor: observations must be {element} or torch.uint8, got {observations.dtype}; "
            "nativize them before you convert them"
        )
    if observations.dtype == element and observations.shape[1:] == shape:
        return observations
    scale = element.itemsize // observations.dtype.itemsize
    leaf = observations[:, offset * scale : (offset + count) * scale]
    return leaf.view(element).view(-1, *shape) if count else leaf.new_empty((len(leaf), *shape), dtype=element)


def flattened_tensor_size(dtype: NativeDtype) -> int:
    """Number of elements of all leaves together: the width of their concatenation."""
    if isinstance(dtype, dict):
        return sum(flattened_tensor_size(inner) for inner in dtype.values())
    return dtype[3]
