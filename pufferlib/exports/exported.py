"""Export of a policy: written, checked against the policy at once, and only then kept."""

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
from pufferlib.training.build import pick_device
from pufferlib.training.runs import RUNS, find_run

__all__ = ["FORMATS", "Exported", "export", "write_checked"]

WHERE = "export"
CPU = torch.device("cpu")
#: Formats, and how the names of their files end.
FORMATS = {"onnx": ".onnx", "c": ".c", "torch": ".pt2"}
STEPS = 1000  # of the environment, in which the exported policy must do as the policy does
TOLERANCE = 1e-5  # of outputs, in relation to the largest of their step where that is above 1

Play = Callable[[Recording], Outputs]


@dataclass(frozen=True)
class Exported:
    """A policy that was exported.

    Attributes:
        path: The file.
        to: Its format.
        env_name: The environment that it plays.
        difference: Greatest difference of its outputs from those of the policy, in relation to the largest of the same
            agent and step where that is above 1.
        steps: Steps of the environment in which they were compared.
        header: Declarations of the C file, where they were asked for.
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

    The file is checked against the policy in 1,000 steps of the environment, through which its memory is carried; one
    that does not do as the policy does is not kept.

    Args:
        run: The folder of a run, a checkpoint, the file of a policy, or an environment's name for its latest run.
        to: "onnx", "c" (one file, which needs a C compiler to be checked) or "torch" (a program of ``torch.export``).
        path: Of the file; None: the name of the environment, in the current folder.
        best: Take the checkpoint of the best score in training, not the latest.
        greedy: Let the C file take the likeliest action instead of sampling, until its user says otherwise; None: as
            the run's evaluation does. The other formats give the likeliest action and what samples are drawn from.
        opset: Version of ONNX's operators; None: the one that torch writes.
        header: Write the declarations of the C file into a header beside it too.
        device: That the program of torch runs on: "cpu", "cuda", "cuda:<n>", or "auto" for a GPU where there is one. C
            runs on the CPU, and ONNX wherever its runtime does.
        runs: Folder in which the latest run is looked for.

    Raises:
        APIUsageError: The policy cannot be exported so, or an argument does not fit the format.
        BindingMissing: A package of the format is not installed.
        PufferError: The exported policy differs from the policy, or there is no C compiler.
    """
    _check(to, path, greedy, opset, header)
    place_of_program = _device(to, device)
    found = find_run(WHERE, str(run), Path(runs), best)
    with open_trained(found.settings(), found, greedy) as trained:
        place = user_path(path or trained.name + FORMATS[to])
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
    """Export a policy, and return the greatest difference of its outputs; see ``export``.

    Raises:
        PufferError: The difference is too large, and the file is not kept.
    """
    with tempfile.TemporaryDirectory(prefix=".puffer-export-", dir=path.absolute().parent) as folder:
        unchecked = Path(folder, path.name)
        play = _write(trained, to, unchecked, opset, device)
        recording = record(trained, steps)
        differs = difference(play(recording), recording.outputs)
        if not differs <= TOLERANCE:
            raise PufferError(
                f"{WHERE}: {path} is not kept: its outputs differ from those of the policy by up to {differs:.2g} in "
                f"{steps:,} steps of {trained.env_name}, more than {TOLERANCE:g}; does the policy draw random numbers, "
                "or keep a memory that is not in its state?"
            )
        os.replace(unchecked, path)
    return differs


def _check(to: str, path: Path | str | None, greedy: bool | None, opset: int | None, header: bool) -> None:
    if to not in FORMATS:
        raise APIUsageError(f"{WHERE}: to must be one of {', '.join(FORMATS)}, got {to!r}")
    if path and (not user_path(path).absolute().parent.is_dir() or user_path(path).is_dir()):
        raise APIUsageError(f"{WHERE}: the file must be in a folder that exists, got {path}; make the folder")
    if to == "torch" and path and Path(path).suffix != FORMATS[to]:
        raise APIUsageError(
            f"{WHERE}: a program of torch.export must be called ...{FORMATS[to]}, got {path}; rename it"
        )
    if to != "c" and (greedy is False or header):
        given = "header" if header else "sampled actions"
        raise APIUsageError(
            f"{WHERE}: {given} are for to='c', got to={to!r}, which gives the likeliest action and what samples are "
            "drawn from; leave it out"
        )
    if to != "onnx" and opset is not None:
        raise APIUsageError(f"{WHERE}: opset is for to='onnx', got to={to!r}; leave it out")


def _device(to: str, name: str) -> torch.device:
    """The device of the exported policy.

    Raises:
        APIUsageError: There is no such device here, or the format is for every device.
    """
    if to != "torch" and name not in ("cpu", "auto"):
        where = "C runs on the CPU" if to == "c" else "its runtime chooses where a model of ONNX runs"
        raise APIUsageError(f"{WHERE}: device is for to='torch', got to={to!r}: {where}; leave it out")
    return pick_device(name, f"{WHERE}: device")


def _write(trained: TrainedPolicy, to: str, path: Path, opset: int | None, device: torch.device) -> Play:
    """Write the file, and return how it is played."""
    if to == "c":
        from pufferlib.exports import c_program
        from pufferlib.exports.c_source import c_source

        path.write_text(c_source(trained))
        return partial(c_program.play, path, trained)
    if to == "onnx":
        from pufferlib.exports import onnx_model

        onnx_model.write(path, trained, opset)
        return partial(onnx_model.play, path, trained)
    from pufferlib.exports import torch_program

    torch_program.write(path, trained, device)
    return partial(torch_program.play, path, trained, device)


def _write_header(trained: TrainedPolicy, source: Path) -> Path:
    from pufferlib.exports.c_source import c_header

    header = source.with_suffix(".h")
    header.write_text(c_header(trained) + "\n")
    return header
