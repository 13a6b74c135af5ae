"""Flat observations back to the tensors that they were made of, in torch."""

import functools
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.compiler import is_dynamo_compiling

from pufferlib.errors import APIUsageError

__all__ = ["NativeDtype", "NativeLeaf", "flattened_tensor_size", "nativize_dtype", "nativize_tensor"]

# Not None while torch.jit.trace watches how views are made. Dual tensors carry more than memory.
tracing_state = torch._C._get_tracing_state

# (dtype, shape, first element, number of elements); the first element counts those of this dtype
NativeLeaf = tuple[torch.dtype, tuple[int, ...], int, int]
NativeDtype = NativeLeaf | dict[str, Any]  # of NativeDtype: dicts nest

# An attribute of flat observations that are traced: their leaves, which no program outside of torch can view in bytes.
GIVEN_LEAVES = "pufferlib_leaves"

TORCH_DTYPES = {
    np.dtype(name): getattr(torch, "bool" if name == "bool_" else name)
    for name in (
        *("bool_", "float16", "float32", "float64"),
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    )
}


def nativize_dtype(emulated: Mapping[str, Any]) -> NativeDtype:
    """Find the place of each tensor for ``nativize_tensor``: a leaf, or nested dicts of leaves.

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

    Memory that was seen before takes half a microsecond: its views are kept until the tensor that
    owns it goes, or 4096 others have been seen; for arrays of numpy, 16 others.

    Args:
        observations: ``(N, numel)`` in the dtype of the flat space, or ``(N, *shape)`` when the
            environment's own space is a Box; rows contiguous.
        dtype: From ``nativize_dtype``.

    Returns:
        A tensor ``(N, *shape)`` in its own dtype, or nested dicts of them.

    Raises:
        APIUsageError: The observations were converted to another dtype before.
    """
    if type(observations) is not Tensor or is_dynamo_compiling() or forward_ad._current_level >= 0:
        if type(observations) is not Tensor and hasattr(observations, GIVEN_LEAVES):
            return _given(getattr(observations, GIVEN_LEAVES), dtype)
        return _restore(observations, dtype)
    try:
        address = observations.data_ptr()
        structure, is_inference, is_real, views_of, address_now, _ = _seen[address]
        views = views_of[observations.shape]
    except KeyError:
        return _remember(observations, dtype)
    except RuntimeError:  # inside torch.func: no memory of its own
        return _restore(observations, dtype)
    if (
        structure is dtype
        and (address_now is None or address_now() == address)
        and observations.is_contiguous()
        and not (is_real and observations.requires_grad)
        and (not is_inference or observations.is_inference())
    ):
        return views()
    return _remember(observations, dtype)


def _given(leaves: Mapping[NativeLeaf, Tensor], dtype: NativeDtype) -> Any:
    """The tensors that somebody gave in place of flat observations."""
    if isinstance(dtype, dict):
        return {field: _given(leaves, inner) for field, inner in dtype.items()}
    return leaves[dtype]


def _restore(observations: Tensor, dtype: NativeDtype) -> Any:
    """``nativize_tensor`` without a memory."""
    if isinstance(dtype, dict):
        return {field: _restore(observations, inner) for field, inner in dtype.items()}
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
    # No rows of numpy have strides of 0, of which no view can be had. While compiling, rows are not to be asked for.
    if not count or (not torch.compiler.is_compiling() and not len(leaf)):
        return leaf.new_empty((len(leaf), *shape), dtype=element)
    if observations.dtype != element:  # without need it would only stop the gradient
        leaf = leaf.view(element)
    return leaf.view(-1, *shape)


# What was seen, by address. The views hold the memory, so that an address here comes to mean another
# memory only when that of the views has moved, as it does when their owner is resized in place. They do
# not hold the tensor that owns it, with which the entry goes. Memory of numpy has no owner that torch
# knows: there the oldest entry soon makes way for the newest. An entry: structure, whether the views are
# inference tensors (autograd refuses those), whether the numbers are real and so may want a gradient,
# views by the one shape that was seen, where their memory is now (None: it cannot move), owner. By shape,
# because while torch.jit.trace watches a shape holds tensors, which equal no key: so those observations
# are never taken for seen, and nothing else needs to ask.
_Entry = tuple[
    NativeDtype,
    bool,
    bool,
    dict[torch.Size, Callable[[], Any]],
    Callable[[], int] | None,
    "weakref.ref[Tensor] | None",
]
_seen: dict[int, _Entry] = {}
_foreign: dict[int, None] = {}  # addresses in _seen without an owner, oldest first
MAX_FOREIGN = 16
MAX_SEEN = 4096


def _remember(observations: Tensor, dtype: NativeDtype) -> Any:
    """``nativize_tensor``, kept for the next time if that is safe."""
    address = observations.data_ptr()
    is_plain = observations.is_contiguous() and not observations.requires_grad
    if address == 0 or not is_plain or tracing_state() is not None:
        return _restore(observations, dtype)
    memory = observations.detach()  # views of observations would hold the owner
    views = _copier(_restore(memory, dtype))
    owner = observations if observations._base is None else observations._base
    can_move = observations.untyped_storage().resizable()
    is_foreign = owner is observations and not can_move
    reference = None if is_foreign else weakref.ref(owner, functools.partial(_forget, address))
    is_real = observations.is_floating_point()
    _seen[address] = (
        dtype,
        observations.is_inference(),
        is_real,
        {observations.shape: views},
        memory.data_ptr if can_move else None,
        reference,
    )
    _foreign.pop(address, None)
    if is_foreign:
        _foreign[address] = None
    for places, most in ((_foreign, MAX_FOREIGN), (_seen, MAX_SEEN)):
        if len(places) > most:
            oldest = next(iter(places))
            _foreign.pop(oldest, None)
            _seen.pop(oldest, None)
    return views()


def _forget(address: int, owner: "weakref.ref[Tensor]") -> None:
    """Drop the views of memory whose owner is gone, unless they have another owner by now."""
    seen = _seen.get(address)
    if seen is not None and seen[-1] is owner:
        _seen.pop(address, None)


def _copier(tree: Any) -> Callable[[], Any]:
    """Make a function that returns ``tree`` with new dicts around the same tensors, which callers may change."""
    if not isinstance(tree, dict):
        return lambda: tree
    nested = {key: _copier(child) for key, child in tree.items() if isinstance(child, dict)}
    return functools.partial(_copy_nested, tree, nested) if nested else tree.copy


def _copy_nested(tree: dict[str, Any], nested: dict[str, Callable[[], Any]]) -> dict[str, Any]:
    fresh = tree.copy()
    for key, copy in nested.items():
        fresh[key] = copy()
    return fresh


def flattened_tensor_size(dtype: NativeDtype) -> int:
    """Number of elements of all leaves together: the width of their concatenation."""
    if isinstance(dtype, dict):
        return sum(flattened_tensor_size(inner) for inner in dtype.values())
    return dtype[3]
