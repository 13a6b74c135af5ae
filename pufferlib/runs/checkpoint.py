"""Checkpoints: folders that are whole or not there at all, of which the latest and the best are kept.

    runs/<run>/checkpoints/000200/
        policy.safetensors   the weights by their names; in its metadata settings, score and versions: what to hand on
        state.safetensors    optimizer, random numbers, counters, games: all else that a run needs to go on

Loading executes nothing.
"""

import dataclasses
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pufferlib.errors import APIUsageError
from pufferlib.runs import tensor_file

__all__ = [
    "About",
    "best",
    "check_room",
    "is_checkpoint",
    "latest",
    "load_optimizer",
    "load_weights",
    "read_about",
    "read_policy",
    "read_state",
    "rotate",
    "save",
    "write_policy",
]


FORMAT = 2  # 1 was a file of torch.save
POLICY, STATE = "policy.safetensors", "state.safetensors"
PARTIAL = ".partial"  # ends the names of folders that are being written, or removed
KEY = "pufferlib"  # of our part of a file's metadata
# What the state of a run has to hold, and as what.
CONTENTS: dict[str, tuple[type, ...]] = {
    "optimizer": (Mapping,),
    "generator": (Tensor,),
    "agent_steps": (int,),
    "updates": (int,),
    "uptime_s": (int, float),
}


@dataclass(frozen=True)
class About:
    """Facts of a checkpoint, in the metadata of its policy.

    Attributes:
        env_name: The environment that it plays.
        updates: Of the run, until then.
        agent_steps: The same.
        score: Mean score; None where no episode ended.
        score_of: "training": of the episodes in training since the checkpoint before; or "evaluation": of one that was
            made of these weights.
        config: All settings, as TOML; empty where they could not be written down.
        versions: Of everything that it depends on, by name.
        number: Of the checkpoint among those of its folder, in the order in which they were saved.
    """

    env_name: str
    updates: int
    agent_steps: int
    score: float | None = None
    config: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    score_of: str = "training"


def save(folder: Path, policy: Mapping[str, Tensor], state: Mapping[str, Any], about: About) -> Path:
    """Write a checkpoint into ``folder``, which is made if it is not there.

    It appears under its name only when it is on the disk as a whole, so that a kill or a full disk leaves those before
    it as they are, and nothing under another name that the next call does not remove.

    Args:
        folder: Of all checkpoints of a run.
        policy: Its ``state_dict()``.
        state: Nested dicts and lists of tensors, arrays, numbers and strings; at least those of CONTENTS.
        about: Facts; the number is chosen here.

    Returns:
        The folder of the checkpoint, ``folder/<updates>``.

    Raises:
        OSError: It cannot be written.
    """
    folder.mkdir(exist_ok=True)
    for litter in folder.glob(f".*{PARTIAL}"):
        shutil.rmtree(litter)
    number = max((about.number for about in _all(folder).values()), default=0) + 1
    metadata = _metadata(dataclasses.replace(about, number=number))
    path = _free_name(folder, about.updates)
    partial = folder / f".{path.name}{PARTIAL}"
    try:
        partial.mkdir()
        tensor_file.write_tensors(partial / POLICY, policy, metadata)
        tensor_file.write_tree(partial / STATE, state, metadata)
        _sync(partial)
        partial.rename(path)
        _sync(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return path


def write_policy(file: Path, policy: Mapping[str, Tensor], about: About) -> None:
    """Write weights alone, as one file to hand on, in half of the bytes: matrices as float16.

    Raises:
        OSError: It cannot be written.
    """
    half = {name: each.half() if each.is_floating_point() and each.dim() > 1 else each for name, each in policy.items()}
    tensor_file.write_tensors(file, half, _metadata(about))


def rotate(folder: Path, keep: int) -> None:
    """Remove all but the ``keep`` latest checkpoints and the best one; 0 removes none.

    Raises:
        OSError: They cannot be removed.
    """
    if not keep:
        return
    ordered = sorted(_all(folder).items(), key=lambda item: item[1].number)
    kept = {path for path, _ in ordered[-keep:]} | {best(folder)}
    for path, _ in ordered:
        if path not in kept:
            gone = path.rename(folder / f".{path.name}{PARTIAL}")  # never half a checkpoint under its name
            shutil.rmtree(gone)


def latest(folder: Path) -> Path | None:
    """The checkpoint that was saved last; None where ``folder`` has none. A warning names those that are damaged."""
    found = _all(folder, warn=True)
    return max(found, key=lambda path: found[path].number, default=None)


def best(folder: Path) -> Path | None:
    """The checkpoint of the best score, of equal ones the latest; None where none has a score.

    Those whose score is an evaluation's come before those whose score is the training's.
    """
    scored = {
        path: (about.score_of == "evaluation", about.score, about.number)
        for path, about in _all(folder).items()
        if about.score is not None
    }
    return max(scored, key=lambda path: scored[path], default=None)


def is_checkpoint(path: Path) -> bool:
    """True for the folder of a checkpoint, damaged or not."""
    return (path / POLICY).is_file()


def read_about(path: Path) -> About:
    """The facts of a checkpoint, or of a policy of one; takes as long for large files as for small.

    Raises:
        APIUsageError: It is missing, damaged, or of another program or format.
    """
    file = path / POLICY if path.is_dir() else path
    if file.suffix == ".pt":
        raise APIUsageError(
            f"{file}: is a file of torch.save, which may hold code and is not read; expected a folder of "
            "runs/.../checkpoints, or its policy.safetensors; agents of earlier versions must be trained again"
        )
    try:
        facts = json.loads(tensor_file.read_metadata(file)[KEY])
        if facts.pop("format") != FORMAT:
            raise APIUsageError(f"{file}: is of a later version of pufferlib; update it, or train again with this one")
        return About(**{key: value for key, value in facts.items() if key in About.__dataclass_fields__})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, APIUsageError):
            raise
        raise APIUsageError(
            f"{file}: holds tensors, but was not saved by pufferlib; give the path of a checkpoint, as in "
            "runs/.../checkpoints"
        ) from error


def read_policy(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read the weights of a checkpoint, or of a policy of one, onto ``device``.

    Raises:
        APIUsageError: It is missing, damaged, or of another program.
    """
    read_about(path)
    return tensor_file.read_tensors(path / POLICY if path.is_dir() else path, device)


def read_state(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read what ``save`` was given as ``state``, its tensors onto ``device``.

    Raises:
        APIUsageError: It is missing, damaged, or lacks something of CONTENTS.
    """
    if not path.is_dir():
        raise APIUsageError(
            f"{path}: is a policy alone, which can be played and evaluated; a run goes on from a folder of its "
            f"checkpoints, with {STATE} in it"
        )
    state: dict[str, Any] = tensor_file.read_tree(path / STATE, device)
    for key, kinds in CONTENTS.items():
        if not isinstance(state.get(key), kinds):
            raise APIUsageError(
                f"{path / STATE}: must have {key!r} ({kinds[-1].__name__}), got "
                f"{type(state[key]).__name__ if key in state else 'none'}; it was not written by a Trainer"
            )
    return state


def load_weights(policy: nn.Module, weights: Mapping[str, Tensor], where: object, env_name: str = "") -> None:
    """Give ``policy`` the weights of a checkpoint.

    Args:
        policy: Of the same class, sizes and spaces as the one that was saved.
        weights: What ``read_policy`` returned.
        where: Begins the message of an error: a path, or a command.
        env_name: The environment that they were learned in, for the message.

    Raises:
        APIUsageError: They belong to another network or other spaces, or a parameter is NaN or infinite. Buffers may
            be infinite, as those of a causal mask are.
    """
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        learned = f"it learned in {env_name}; " if env_name else ""
        raise APIUsageError(
            f"{where}: the checkpoint does not fit this policy: {first}; "
            f"{learned}train a new one, or use the settings of its run; a network of your own is named by policy.name"
        ) from error
    broken = [name for name, weights in policy.named_parameters() if not torch.isfinite(weights).all()]
    if broken:
        raise APIUsageError(
            f"{where}: the weights must be finite, got NaN or infinity in {broken[0]}; nothing can be done with them, "
            "so train again, with a lower train.learning_rate or smaller observations and rewards"
        )


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any], where: object) -> None:
    """Give ``optimizer`` the state of a checkpoint.

    Raises:
        APIUsageError: It is of another kind of optimizer, or for other parameters.
    """
    try:
        optimizer.load_state_dict(state)
    except (ValueError, LookupError, TypeError) as error:
        raise APIUsageError(
            f"{where}: the state does not fit this optimizer: {error}; use the config.toml of its run"
        ) from error
    # Files are row-major, parameters need not be, and a fused step takes both as they lie in memory, checking nothing.
    for parameter, moments in optimizer.state.items():
        for name, value in moments.items():
            if isinstance(value, Tensor) and value.dim():
                if value.shape != parameter.shape:
                    raise APIUsageError(
                        f"{where}: the state does not fit this optimizer: expected {name!r} of shape "
                        f"{tuple(parameter.shape)}, got {tuple(value.shape)}; use the config.toml of its run"
                    )
                moments[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def check_room(folder: Path, policy: nn.Module) -> None:
    """Write as much into ``folder`` as a checkpoint will need, and remove it again.

    Raises:
        OSError: Nothing can be written there, or not as much.
    """
    needed = sum(weights.nbytes for weights in policy.state_dict().values())
    needed += 2 * sum(parameter.nbytes for parameter in policy.parameters())  # of Adam
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(needed, 1))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _metadata(about: About) -> dict[str, str]:
    # "pt" says that the tensors are PyTorch's, as other programs write it.
    return {"format": "pt", KEY: json.dumps({"format": FORMAT, **dataclasses.asdict(about)})}


def _all(folder: Path, warn: bool = False) -> dict[Path, About]:
    """All whole checkpoints."""
    found = {}
    for path in sorted(folder.glob("[!.]*")):
        if is_checkpoint(path):
            try:
                found[path] = read_about(path)
                tensor_file.read_metadata(path / STATE)
            except APIUsageError as error:
                found.pop(path, None)
                if warn:
                    warnings.warn(f"{str(error).rpartition('; ')[0]}; this checkpoint is left out", stacklevel=3)
    return found


def _free_name(folder: Path, updates: int) -> Path:
    """Path for a checkpoint; with a further number where another training in the same folder took the first."""
    names = [f"{updates:06}", *(f"{updates:06}-{i}" for i in range(2, 1000))]
    return next(folder / name for name in names if not (folder / name).exists())


def _sync(folder: Path) -> None:
    """Put the entries of a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
