"""Export of a policy to a file, with a check against the original."""

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.exports.recording import Outputs, Recording, difference, record
from pufferlib.exports.trained import TrainedPolicy, open_trained
from pufferlib.machine.paths import user_path
from pufferlib.models.devices import pick_device
from pufferlib.registry.outside import c_file
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS

__all__ = ["FORMATS", "Exported", "export", "write_checked"]

WHERE = "export"
CPU = torch.device("cpu")
#: File suffix of each format.
FORMATS = {"onnx": ".onnx", "c": ".c", "torch": ".pt2"}
STEPS = 1000  # environment steps of the check
TOLERANCE = 1e-5  # maximum difference of outputs, relative to the largest output of the step if it is above 1

Play = Callable[[Recording], Outputs]


@dataclass(frozen=True)
class Exported:
    """Result of an export.

    Attributes:
        path: Path of the file.
        to: Format of the file.
        env_name: Name of the environment.
        difference: Largest difference from the outputs of the original policy. It is relative to the largest output of
            the same agent and step if that is above 1.
        steps: Number of environment steps in the comparison.
        header: Path of the C header, or None if none was requested.
    """

    path: Path
    to: str
    env_name: str
    difference: float
    steps: int
    header: Path | None = None


def export(
    run: Path | str,
    to: str = "onnx",
    path: Path | str | None = None,
    *,
    best: bool = False,
    greedy: bool | None = None,
    opset: int | None = None,
    header: bool = False,
    device: str = "cpu",
    runs: Path | str = RUNS,
) -> Exported:
    """Export a trained policy.

    The outputs of the exported file are compared with the policy in 1,000 steps of the environment, including its
    memory. If they differ, an error is raised and nothing is written to ``path``.

    Args:
        run: Folder of a run, checkpoint, policy file, or environment name for its latest run, or else its shipped
            agent.
        to: Format: "onnx", "c" (one C file, whose check needs a C compiler) or "torch" (a ``torch.export`` program).
        path: Path of the file, by default the name of the environment in the current folder, and NAME_agent for an
            environment in C.
        best: True to use the checkpoint with the best score instead of the latest one. This is the score of the
            evaluations during training if there were any, and otherwise of the training.
        greedy: Default mode of the C file: True for the most likely action, False for sampling, or None for the mode of
            the run's evaluation. The other formats return both the most likely action and the distribution.
        opset: ONNX opset version, by default the version that torch writes.
        header: True to also write a C header next to the C file.
        device: Device of the torch program: "cpu", "cuda", "cuda:<n>", or "auto" for a GPU if there is one. C files run
            on the CPU, and the device of an ONNX model is chosen by its runtime.
        runs: Folder with runs, to find the latest run of an environment.

    Raises:
        APIUsageError: The policy cannot be exported to this format, or an argument does not apply to the format.
        BindingMissing: A package that the format needs is not installed.
        PufferError: The outputs of the exported file differ, or there is no C compiler.
    """
    _check(to, path, greedy, opset, header)
    place_of_program = _device(to, device)
    found = find_run(WHERE, str(run), Path(runs), best)
    with open_trained(found.settings(), found, greedy) as trained:
        place = _place(trained, to, path)
        differs = write_checked(trained, to, place, opset, device=place_of_program)
        beside = _write_header(trained, place) if header else None
        return Exported(place, to, trained.env_name, differs, STEPS, beside)


def write_checked(
    trained: TrainedPolicy,
    to: str,
    path: Path,
    opset: int | None = None,
    steps: int = STEPS,
    device: torch.device = CPU,
) -> float:
    """Export and check a policy as in ``export``, and return the largest difference of its outputs.

    Raises:
        PufferError: The difference is too large. The file is not kept.
    """
    target = path.resolve()  # a link stays one
    with tempfile.TemporaryDirectory(prefix=".puffer-export-", dir=target.parent) as folder:
        unchecked = Path(folder, path.name)
        play = _write(trained, to, unchecked, opset, device)
        recording = record(trained, steps)
        differs = difference(play(recording), recording.outputs)
        if not differs <= TOLERANCE:
            raise PufferError(
                f"{WHERE}: {path} was not kept: its outputs differ from the policy by up to {differs:.2g} in "
                f"{steps:,} steps of {trained.env_name}, more than {TOLERANCE:g}; check whether the policy draws "
                "random numbers, or keeps memory outside of its state"
            )
        os.replace(unchecked, target)
    return differs


def _check(to: str, path: Path | str | None, greedy: bool | None, opset: int | None, header: bool) -> None:
    if to not in FORMATS:
        raise APIUsageError(f"{WHERE}: to must be one of {', '.join(FORMATS)}, got {to!r}")
    place = user_path(path).absolute() if path else None
    folder = place.parent if place else Path.cwd()
    if place and (not folder.is_dir() or place.is_dir()):
        raise APIUsageError(f"{WHERE}: the file must be in a folder that exists, got {path}; make the folder")
    if place and place.exists() and not place.is_file():  # such as /dev/stdout, which a regular file would replace
        raise APIUsageError(f"{WHERE}: the file must be a regular file, got {path}; choose another name")
    if not os.access(folder, os.W_OK):
        raise APIUsageError(
            f"{WHERE}: the file must be in a folder that can be written to, got {folder}; choose another file, for "
            "example with --out ~/agent"
        )
    if to == "torch" and path and Path(path).suffix != FORMATS[to]:
        raise APIUsageError(
            f"{WHERE}: the name of a torch.export program must end with {FORMATS[to]}, got {path}; rename it"
        )
    if to != "c" and (greedy is not None or header):
        given = "header" if header else f"greedy={greedy}"
        raise APIUsageError(
            f"{WHERE}: {given} is for to='c', got to={to!r}, which returns both the most likely action and the "
            "distribution; remove the option"
        )
    if header and path and Path(path).suffix == ".h":
        raise APIUsageError(f"{WHERE}: the C file must not end with .h if a header is written, got {path}; name it .c")
    if to != "onnx" and opset is not None:
        raise APIUsageError(f"{WHERE}: opset is for to='onnx', got to={to!r}; remove the option")


def _place(trained: TrainedPolicy, to: str, path: Path | str | None) -> Path:
    """Return the path of the file.

    Raises:
        APIUsageError: It is the source of the environment.
    """
    source = c_file(trained.env_name)
    if not path:
        return Path(trained.name + ("_agent" if source else "") + FORMATS[to])
    place = user_path(path)
    if source and place.resolve() == Path(source).resolve():
        raise APIUsageError(f"{WHERE}: {path} is the source of the environment; choose another file")
    return place


def _device(to: str, name: str) -> torch.device:
    """Return the device of the exported policy.

    Raises:
        APIUsageError: There is no such device, or the format does not depend on the device.
    """
    if to != "torch" and name not in ("cpu", "auto"):
        where = "C runs on the CPU" if to == "c" else "the runtime chooses the device of an ONNX model"
        raise APIUsageError(f"{WHERE}: device is for to='torch', got to={to!r}: {where}; remove the option")
    return pick_device(name, f"{WHERE}: device")


def _write(trained: TrainedPolicy, to: str, path: Path, opset: int | None, device: torch.device) -> Play:
    """Write the file, and return a function that runs it on a recording."""
    if to == "c":
        from pufferlib.exports.c_source import c_source, play_c

        path.write_text(c_source(trained), "utf-8", "surrogateescape")
        return partial(play_c, path, trained)
    from pufferlib.exports.torch_formats import play_onnx, play_program, write_onnx, write_program

    if to == "onnx":
        write_onnx(path, trained, opset)
        return partial(play_onnx, path, trained)
    write_program(path, trained, device)
    return partial(play_program, path, trained, device)


def _write_header(trained: TrainedPolicy, source: Path) -> Path:
    from pufferlib.exports.c_source import c_header

    header = source.with_suffix(".h")
    header.write_text(c_header(trained) + "\n", "utf-8", "surrogateescape")
    return header
