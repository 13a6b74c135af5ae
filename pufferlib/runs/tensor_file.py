"""Safetensors files with named tensors, and JSON for everything that is not a tensor. Reading never executes code."""

import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from pufferlib.errors import APIUsageError

__all__ = ["can_be_written", "read_metadata", "read_tensors", "read_tree", "write_tensors", "write_tree"]


TREE = "tree"  # metadata key of the outline of a tree
CHECKSUM = "crc32"  # metadata key of the checksum, which detects silent damage by disks and copies
# In an outline, a dict with one of these keys stands for a value that JSON lacks.
TENSOR, ARRAY, ITEMS = "$tensor", "$array", "$items"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write ``tensors`` by name, and flush them to the disk. ``safetensors.torch.load_file`` can read the file.

    Raises:
        OSError: The file cannot be written.
    """
    # Copies, because the format supports neither shared memory nor tensors that are not row-major.
    plain = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    others = {key: text for key, text in metadata.items() if key != CHECKSUM}  # drop the checksum of another file
    data = save(plain, {**others, CHECKSUM: _checksum(plain, others)})
    with path.open("wb") as file:
        file.write(_ordered(data))
        file.flush()
        os.fsync(file.fileno())


def read_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a file onto ``device``, regardless of the device from which they were saved.

    Raises:
        APIUsageError: The file is missing, damaged, or of another type. Files of other programs have no checksum, so
            damage to their tensors is not detected.
    """
    metadata = read_metadata(path)  # its error messages are better
    try:
        tensors = load(path.read_bytes())  # not memory-mapped, because the file may be removed or truncated meanwhile
    except (SafetensorError, ValueError, KeyError) as error:
        raise _file_error(path, f"is damaged ({error})") from error
    if metadata.pop(CHECKSUM, None) not in (None, _checksum(tensors, metadata)):
        raise _file_error(path, "is damaged: its checksum is wrong")
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def _ordered(data: bytes) -> bytes:
    """Return ``data`` with sorted metadata, so that equal runs give equal files. Safetensors uses a random order."""
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    head["__metadata__"] = dict(sorted(head["__metadata__"].items()))
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of 8
    return len(text).to_bytes(8, "little") + text + data[end:]


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Return the checksum of row-major tensors on the CPU, their names and the metadata."""
    checksum = zlib.crc32(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        checksum = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, checksum)
    return f"{checksum:08x}"


def read_metadata(path: Path) -> dict[str, str]:
    """Read only the metadata of a file, without torch. The time does not depend on the size of the file.

    Raises:
        APIUsageError: The file is missing, truncated, or of another type.
    """
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            length = int.from_bytes(start, "little")
            text = file.read(length) if length <= size else b""
    except OSError as error:
        raise APIUsageError(f"{path}: cannot be read: {error.strerror}; give the path of a checkpoint") from error
    try:
        head = json.loads(text)
        ends = [entry["data_offsets"][1] for name, entry in head.items() if name != "__metadata__"]
    except (ValueError, LookupError, TypeError, AttributeError):
        raise _file_error(path, f"is not a safetensors file: {_looks_like(start, size)}") from None
    if 8 + length + max(ends, default=0) != size:
        raise _file_error(path, f"is damaged: it should have {8 + length + max(ends, default=0)} bytes, but has {size}")
    return dict(head.get("__metadata__", {}))


def write_tree(path: Path, tree: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write nested dicts, lists and tuples of tensors, arrays, numbers, strings and None. See ``write_tensors``."""
    tensors: dict[str, Tensor] = {}
    outline = _outline(tree, "", tensors)
    write_tensors(path, tensors, {**metadata, TREE: json.dumps(outline)})


def can_be_written(tree: Mapping[str, Any]) -> bool:
    """Return whether ``write_tree`` can write ``tree``."""
    try:
        json.dumps(_outline(tree, "", {}))
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def read_tree(path: Path, device: torch.device | str = "cpu") -> Any:
    """Read the result of ``write_tree``. Tuples become lists, and arrays are on the CPU.

    Raises:
        APIUsageError: The file is missing, damaged, or of another type.
    """
    tensors = read_tensors(path, device)
    try:
        return _with_tensors(json.loads(read_metadata(path)[TREE]), tensors)
    except (ValueError, LookupError) as error:
        raise _file_error(path, "was written by another program") from error


def _outline(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """Return ``value`` as JSON data. Tensors are replaced by their names and added to ``tensors``."""
    if isinstance(value, Tensor | np.ndarray):
        tensors[name] = value if isinstance(value, Tensor) else torch.from_numpy(value.copy())
        return {TENSOR if isinstance(value, Tensor) else ARRAY: name}
    if isinstance(value, Mapping):
        inner = [(key, _outline(each, f"{name}/{key}".lstrip("/"), tensors)) for key, each in value.items()]
        plain = all(isinstance(key, str) and not key.startswith("$") for key in value)
        return dict(inner) if plain else {ITEMS: inner}
    if isinstance(value, list | tuple):
        return [_outline(each, f"{name}/{i}", tensors) for i, each in enumerate(value)]
    return value.item() if isinstance(value, np.generic) else value


def _with_tensors(outline: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Return the tree of an outline with its tensors."""
    match outline:
        case {"$tensor": name}:
            return tensors[name]
        case {"$array": name}:
            return tensors[name].cpu().numpy()
        case {"$items": pairs}:
            return {key: _with_tensors(value, tensors) for key, value in pairs}
        case dict():
            return {key: _with_tensors(value, tensors) for key, value in outline.items()}
        case list():
            return [_with_tensors(value, tensors) for value in outline]
    return outline


def _looks_like(start: bytes, size: int) -> str:
    """Describe a file that starts with ``start``."""
    if not size:
        return "it is empty"
    if start.startswith(b"PK"):
        return "it is a zip archive, as torch.save writes; these may contain code, and are not read"
    if start.startswith(b"\x80") and any(start[2:]):  # otherwise these bytes are the length of a header
        return "it is a pickle, which may contain code, and is not read"
    return "its header cannot be read"


def _file_error(path: Path, reason: str) -> APIUsageError:
    return APIUsageError(f"{path}: {reason}; give the path of a checkpoint, as in runs/.../checkpoints")
