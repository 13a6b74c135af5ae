"""Safetensors files: named tensors, and beside them JSON for all that is no tensor; reading executes nothing."""

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


TREE = "tree"  # the key of the metadata under which the outline of a tree is
CHECKSUM = "crc32"  # that of what else the file holds: disks and copies lose bytes without a word
# In an outline, a dict of one of these stands for what JSON does not have.
TENSOR, ARRAY, ITEMS = "$tensor", "$array", "$items"


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write ``tensors`` under their names, on disk when this returns; ``safetensors.torch.load_file`` reads them.

    Raises:
        OSError: It cannot be written.
    """
    # Copies, since the format has no tensors that share memory, nor others than row-major ones.
    plain = {
        name: tensor.detach().cpu().clone(memory_format=torch.contiguous_format) for name, tensor in tensors.items()
    }
    others = {key: text for key, text in metadata.items() if key != CHECKSUM}  # that of the file they come from
    data = save(plain, {**others, CHECKSUM: _checksum(plain, others)})
    with path.open("wb") as file:
        file.write(_ordered(data))
        file.flush()
        os.fsync(file.fileno())


def read_tensors(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read the tensors of a file, onto ``device``, wherever they were when they were saved.

    Raises:
        APIUsageError: The file is missing, damaged, or something else. Files of other programs have no checksum, so
            that of their tensors no damage is seen.
    """
    metadata = read_metadata(path)  # has the better words for what is wrong with a file
    try:
        tensors = load(path.read_bytes())  # not mapped: the file may be removed, or cut, while they are in use
    except (SafetensorError, ValueError, KeyError) as error:
        raise _refusal(path, f"is damaged ({error})") from error
    if metadata.pop(CHECKSUM, None) not in (None, _checksum(tensors, metadata)):
        raise _refusal(path, "is damaged: some of its bytes are not those that were written")
    return {name: tensor.to(device) for name, tensor in tensors.items()}


def _ordered(data: bytes) -> bytes:
    """``data`` with its metadata in order, so that equal runs are equal files; safetensors takes another each time."""
    end = 8 + int.from_bytes(data[:8], "little")
    head = json.loads(data[8:end])
    head["__metadata__"] = dict(sorted(head["__metadata__"].items()))
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # tensors begin at a multiple of 8
    return len(text).to_bytes(8, "little") + text + data[end:]


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Checksum of row-major tensors on the CPU, their names and the metadata."""
    checksum = zlib.crc32(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        checksum = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), checksum)
        checksum = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, checksum)
    return f"{checksum:08x}"


def read_metadata(path: Path) -> dict[str, str]:
    """Read only the texts in the head of a file, which needs no torch and takes as long for large files as for small.

    Raises:
        APIUsageError: The file is missing, was cut short, or is something else.
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
        raise _refusal(path, f"is no safetensors file: {_looks_like(start, size)}") from None
    if 8 + length + max(ends, default=0) != size:
        raise _refusal(path, f"is damaged: it should have {8 + length + max(ends, default=0)} bytes, and has {size}")
    return dict(head.get("__metadata__", {}))


def write_tree(path: Path, tree: Mapping[str, Any], metadata: Mapping[str, str]) -> None:
    """Write nested dicts, lists and tuples of tensors, arrays, numbers, strings and None; see ``write_tensors``."""
    tensors: dict[str, Tensor] = {}
    outline = _outline(tree, "", tensors)
    write_tensors(path, tensors, {**metadata, TREE: json.dumps(outline)})


def can_be_written(tree: Mapping[str, Any]) -> bool:
    """Return True if ``write_tree`` can write ``tree``."""
    try:
        json.dumps(_outline(tree, "", {}))
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def read_tree(path: Path, device: torch.device | str = "cpu") -> Any:
    """Read what ``write_tree`` wrote; tuples come back as lists, arrays on the CPU.

    Raises:
        APIUsageError: The file is missing, damaged, or something else.
    """
    tensors = read_tensors(path, device)
    try:
        return _filled(json.loads(read_metadata(path)[TREE]), tensors)
    except (ValueError, LookupError) as error:
        raise _refusal(path, "is the file of another program") from error


def _outline(value: Any, name: str, tensors: dict[str, Tensor]) -> Any:
    """``value`` for JSON, with names in place of tensors, which are added to ``tensors``."""
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


def _filled(outline: Any, tensors: Mapping[str, Tensor]) -> Any:
    """The tree of an outline, with its tensors in their places."""
    match outline:
        case {"$tensor": name}:
            return tensors[name]
        case {"$array": name}:
            return tensors[name].cpu().numpy()
        case {"$items": pairs}:
            return {key: _filled(value, tensors) for key, value in pairs}
        case dict():
            return {key: _filled(value, tensors) for key, value in outline.items()}
        case list():
            return [_filled(value, tensors) for value in outline]
    return outline


def _looks_like(start: bytes, size: int) -> str:
    """Words for a file that begins with ``start``."""
    if not size:
        return "it is empty"
    if start.startswith(b"PK"):
        return "it is a zip archive, as torch.save makes them; these may hold code, and are not read"
    if start.startswith(b"\x80") and any(start[2:]):  # else the length of a head
        return "it is a pickle, which may hold code, and is not read"
    return "its head cannot be read"


def _refusal(path: Path, reason: str) -> APIUsageError:
    return APIUsageError(f"{path}: {reason}; give the path of a checkpoint, as in runs/.../checkpoints")
