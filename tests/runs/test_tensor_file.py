"""Tests of tensor files: round trips, and errors for damaged and other files."""

import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from pufferlib.errors import APIUsageError
from pufferlib.runs.tensor_file import read_metadata, read_tensors, read_tree, write_tensors, write_tree

ROWS = torch.arange(6.0).view(2, 3)


def test_tree_is_read_back(tmp_path: Path) -> None:
    tree = {
        "state": {0: {"step": torch.tensor(3.0), "shared": ROWS, "view": ROWS.t()}},
        "groups": [{"lr": 1e-3, "betas": [0.9, 0.99], "fused": True, "weight": None}],
        "empty": torch.zeros(0, 3),
        "bytes": torch.tensor([255], dtype=torch.uint8),
        "half": ROWS.bfloat16(),
        "array": np.array([True, False]),
        "$name": "x",
    }
    write_tree(tmp_path / "tree", tree, {"a": "b"})
    back = read_tree(tmp_path / "tree")
    assert read_metadata(tmp_path / "tree")["a"] == "b"
    assert repr(back) == repr(tree)
    assert back["half"].dtype == torch.bfloat16
    back["empty"].add_(1), back["state"][0]["shared"].add_(1)  # tensors own their memory


def test_safetensors_library_reads_file(tmp_path: Path) -> None:
    picture = torch.rand(2, 3, 4, 4).to(memory_format=torch.channels_last)
    write_tensors(tmp_path / "weights", {"tied": ROWS, "encoder.weight": ROWS, "conv": picture}, {})
    read = load_file(tmp_path / "weights")
    assert read.keys() == {"tied", "encoder.weight", "conv"}
    assert torch.equal(read["conv"], picture)
    assert torch.equal(read["tied"], ROWS)


def test_equal_tensors_make_equal_files(tmp_path: Path) -> None:
    for name in ("one", "other", "third"):
        write_tree(tmp_path / name, {"x": ROWS, "y": [1, 2]}, {"format": "pt", "about": "a run", "more": "é"})
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1
    assert read_metadata(tmp_path / "one")["more"] == "é"
    assert torch.equal(load_file(tmp_path / "one")["x"], ROWS)


def test_tensors_are_read_to_requested_device(tmp_path: Path) -> None:
    write_tensors(tmp_path / "weights", {"x": ROWS}, {})
    assert read_tensors(tmp_path / "weights", "meta")["x"].device.type == "meta"


@pytest.mark.parametrize("at", [-1, -24, "tensors"], ids=["last", "first", "metadata"])
def test_changed_byte_is_detected(tmp_path: Path, at: int | str) -> None:
    path = tmp_path / "tree"
    write_tree(path, {"x": ROWS, "y": 12345}, {})
    data = bytearray(path.read_bytes())
    data[at if isinstance(at, int) else data.index(b"12345")] ^= 1
    path.write_bytes(data)
    with pytest.raises(APIUsageError, match="is damaged: its checksum is wrong; give"):
        read_tree(path)


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, ("should-not-exist",)


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Evil()))


def _cut_short(path: Path) -> None:
    write_tensors(path, {"x": ROWS}, {})
    os.truncate(path, path.stat().st_size - 1)


def _torn(path: Path) -> None:
    write_tensors(path, {"x": ROWS}, {})
    path.write_bytes(path.read_bytes().replace(b'"F32"', b'"F64"'))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: None, "cannot be read: No such file"),
        (lambda path: path.mkdir(), "cannot be read: Is a directory"),
        (lambda path: path.write_bytes(b""), "is not a safetensors file: it is empty; give the path of a checkpoint"),
        (lambda path: path.write_bytes(b"hi\n"), "is not a safetensors file: its header cannot be read"),
        (lambda path: path.write_bytes((8).to_bytes(8, "little") + b"[1, 2]  "), "its header cannot be read"),
        (lambda path: path.write_bytes(pickle.dumps(Evil(), protocol=2)), "it is a pickle, which may contain code"),
        (_zip, "it is a zip archive, as torch.save writes; these may contain code, and are not read"),
        (_cut_short, r"is damaged: it should have \d+ bytes, but has \d+"),
        (_torn, r"is damaged \(.*\); give"),
        (lambda path: save_file({"x": ROWS}, path), "was written by another program"),
    ],
)
def test_other_file_raises_without_executing_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: object, message: str
) -> None:
    assert callable(write)
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "x")
    with pytest.raises(APIUsageError, match=rf"^{tmp_path}/x: .*{message}"):
        read_tree(tmp_path / "x")
    assert not (tmp_path / "should-not-exist").exists()
