"""Conversion of flat observations to the tensors that they were made from, in torch."""

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

# Not None while torch.jit.trace records how views are made.
tracing_state = torch._C._get_tracing_state

# (dtype, shape, offset, count), with offset and count in elements of the dtype
NativeLeaf = tuple[torch.dtype, tuple[int, ...], int, int]
NativeDtype = NativeLeaf | dict[str, Any]  # values are NativeDtype

# Attribute of traced flat observations that holds their leaves. Programs outside of torch cannot view them as bytes.
GIVEN_LEAVES = "pufferlib_leaves"

TORCH_DTYPES = {
    np.dtype(name): getattr(torch, "bool" if name == "bool_" else name)
    for name in (
        *("bool_", "float16", "float32", "float64"),
        *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    )
}


def nativize_dtype(emulated: Mapping[str, Any]) -> NativeDtype:
    """Return the place of each tensor in flat observations, for ``nativize_tensor``.

    Args:
        emulated: Attribute ``emulated`` of an emulated environment.

    Returns:
        Leaf ``(dtype, shape, offset, count)``, or a nested dict of leaves by field. Offset and count are in elements of
        the leaf's dtype. The fields of a Tuple are called ``f0``, ``f1`` and so on.

    Raises:
        APIUsageError: Torch does not support a dtype.
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
    """Return the tensors inside flat observations, as views without copies. Supports ``torch.compile``.

    Views are cached by memory address, and a cached call takes half a microsecond. An entry is dropped when the tensor
    that owns the memory is deleted, or after 4096 other entries. For memory of numpy arrays, it is dropped after 16
    other entries.

    Args:
        observations: Flat observations ``(N, numel)`` in the dtype of the flat space, with contiguous rows. Or
            ``(N, *shape)`` if the environment's own space is a Box.
        dtype: Return value of ``nativize_dtype``.

    Returns:
        Tensor ``(N, *shape)`` in its own dtype, or nested dicts of such tensors.

    Raises:
        APIUsageError: The observations were already converted to another dtype.
    """
    # Subclasses, compiled code and dual tensors are not cached, because they are more than their memory.
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
    except RuntimeError:  # inside torch.func, where tensors have no memory
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
    """Return the given leaves of traced observations."""
    if isinstance(dtype, dict):
        return {field: _given(leaves, inner) for field, inner in dtype.items()}
    return leaves[dtype]


def _restore(observations: Tensor, dtype: NativeDtype) -> Any:
    """Do the same as ``nativize_tensor``, without the cache."""
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
    # Empty numpy arrays have strides of 0, of which torch cannot make views. The compiler must not check len(leaf).
    if not count or (not torch.compiler.is_compiling() and not len(leaf)):
        return leaf.new_empty((len(leaf), *shape), dtype=element)
    if observations.dtype != element:  # an unnecessary view would stop the gradient
        leaf = leaf.view(element)
    return leaf.view(-1, *shape)


# Cache by memory address. The cached views keep the memory alive, so an address can only refer to other memory if the
# memory of the views has moved, as when its owner is resized in place. They do not keep the owning tensor alive, and
# the entry is dropped with it. Torch knows no owner of numpy memory, so only the last few of these entries are kept.
#
# An entry holds: structure, whether the views are inference tensors (which autograd rejects), whether the values are
# floats and may need a gradient, the views by the one shape seen, the current address of their memory (None if it
# cannot move), and the owner. Under torch.jit.trace a shape holds tensors, which equal no key of the dict. So traced
# observations never hit the cache, without another check.
_Entry = tuple[
    NativeDtype,
    bool,
    bool,
    dict[torch.Size, Callable[[], Any]],
    Callable[[], int] | None,
    "weakref.ref[Tensor] | None",
]
_seen: dict[int, _Entry] = {}
_foreign: dict[int, None] = {}  # addresses of entries without an owner, oldest first
MAX_FOREIGN = 16
MAX_SEEN = 4096


def _remember(observations: Tensor, dtype: NativeDtype) -> Any:
    """Do the same as ``nativize_tensor``, and cache the views if that is safe."""
    address = observations.data_ptr()
    is_plain = observations.is_contiguous() and not observations.requires_grad
    if address == 0 or not is_plain or tracing_state() is not None:
        return _restore(observations, dtype)
    memory = observations.detach()  # views of `observations` itself would keep the owner alive
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
    """Drop the views of memory whose owner was deleted, unless the entry has a new owner."""
    seen = _seen.get(address)
    if seen is not None and seen[-1] is owner:
        _seen.pop(address, None)


def _copier(tree: Any) -> Callable[[], Any]:
    """Return a function that returns ``tree`` with new dicts around the same tensors. Callers may change the dicts."""
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
    """Return the number of elements of all leaves together, which is the width of their concatenation."""
    if isinstance(dtype, dict):
        return sum(flattened_tensor_size(inner) for inner in dtype.values())
    return dtype[3]
