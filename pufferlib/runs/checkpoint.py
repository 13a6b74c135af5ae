"""Checkpoints, which are written atomically. The latest ones and the best one are kept.

    runs/<run>/checkpoints/000200/
        policy.safetensors   weights by name; settings, score and versions are in its metadata; enough to share an agent
        state.safetensors    optimizer, random numbers, counters, episodes: everything else that is needed to resume

Loading a checkpoint never executes code.
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
    "check_spaces",
    "check_storable",
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


FORMAT = 2  # format 1 was a file of torch.save
POLICY, STATE = "policy.safetensors", "state.safetensors"
PARTIAL = ".partial"  # suffix of folders that are being written or removed
KEY = "pufferlib"  # key of this package's facts in the metadata
# Required entries of a run's state, and their types.
CONTENTS: dict[str, tuple[type, ...]] = {
    "optimizer": (Mapping,),
    "generator": (Tensor,),
    "agent_steps": (int,),
    "updates": (int,),
    "uptime_s": (int, float),
}


@dataclass(frozen=True)
class About:
    """Facts of a checkpoint, stored in the metadata of its policy.

    Attributes:
        env_name: Name of the environment.
        updates: Number of updates of the run so far.
        agent_steps: Number of agent-steps of the run so far.
        score: Mean score, or None if no episode ended.
        score_of: "training" if the score is of training episodes since the previous checkpoint, "evaluation" if it is
            of an evaluation of these weights.
        given: Names of the loss and the callbacks of the training, which the checkpoint does not contain.
        config: All settings as TOML, or an empty text if TOML cannot represent them.
        versions: Versions of all dependencies, by name.
        number: Number of the checkpoint in its folder, in the order in which checkpoints were saved.
        spaces: Descriptions of the observations and actions of the policy. Earlier versions did not save them.
    """

    env_name: str
    updates: int
    agent_steps: int
    score: float | None = None
    config: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    number: int = 0
    score_of: str = "training"
    given: list[str] = field(default_factory=list)
    spaces: Mapping[str, str] = field(default_factory=dict)


def save(folder: Path, policy: Mapping[str, Tensor], state: Mapping[str, Any], about: About) -> Path:
    """Write a checkpoint into ``folder``, which is created if it does not exist.

    The checkpoint appears under its name only after everything is on the disk. If the process is killed or the disk is
    full, earlier checkpoints stay unchanged, and the next call removes incomplete files.

    Args:
        folder: Folder of all checkpoints of a run.
        policy: ``state_dict()`` of the policy.
        state: Nested dicts and lists of tensors, arrays, numbers and strings, with at least the entries of CONTENTS.
        about: Facts of the checkpoint. The number is chosen here.

    Returns:
        Folder of the checkpoint, ``folder/<updates>``.

    Raises:
        OSError: The checkpoint cannot be written.
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
    """Write only the weights, as one file to share. Matrices are stored as float16, which halves the size.

    Raises:
        OSError: The file cannot be written.
    """
    half = {name: each.half() if each.is_floating_point() and each.dim() > 1 else each for name, each in policy.items()}
    tensor_file.write_tensors(file, half, _metadata(about))


def rotate(folder: Path, keep: int) -> None:
    """Remove all checkpoints except the ``keep`` latest and the best. 0 removes none.

    Raises:
        OSError: The checkpoints cannot be removed.
    """
    if not keep:
        return
    ordered = sorted(_all(folder).items(), key=lambda item: item[1].number)
    kept = {path for path, _ in ordered[-keep:]} | {best(folder)}
    for path, _ in ordered:
        if path not in kept:
            gone = path.rename(folder / f".{path.name}{PARTIAL}")  # never leave an incomplete checkpoint under its name
            shutil.rmtree(gone)


def latest(folder: Path) -> Path | None:
    """Return the checkpoint that was saved last, or None if ``folder`` has none. Warn about damaged ones."""
    found = _all(folder, warn=True)
    return max(found, key=lambda path: found[path].number, default=None)


def best(folder: Path) -> Path | None:
    """Return the checkpoint with the best score, or None if none has a score. Of equal scores, the latest wins.

    Scores of evaluations take precedence over scores of training.
    """
    scored = {
        path: (about.score_of == "evaluation", about.score, about.number)
        for path, about in _all(folder).items()
        if about.score is not None
    }
    return max(scored, key=lambda path: scored[path], default=None)


def is_checkpoint(path: Path) -> bool:
    """Return whether ``path`` is the folder of a checkpoint, which may be damaged."""
    return (path / POLICY).is_file()


def read_about(path: Path) -> About:
    """Return the facts of a checkpoint or of its policy file. Only the head of the file is read.

    Raises:
        APIUsageError: The file is missing or damaged, or has the format of another program or version.
    """
    file = path / POLICY if path.is_dir() else path
    if file.suffix == ".pt":
        raise APIUsageError(
            f"{file}: is a file of torch.save, which may contain code and is not read; expected a folder of "
            "runs/.../checkpoints, or its policy.safetensors; agents of earlier versions must be trained again"
        )
    try:
        facts = json.loads(tensor_file.read_metadata(file)[KEY])
        if facts.pop("format") != FORMAT:
            raise APIUsageError(f"{file}: was saved by a later version of pufferlib; update pufferlib, or train again")
        return About(**{key: value for key, value in facts.items() if key in About.__dataclass_fields__})
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        if isinstance(error, APIUsageError):
            raise
        raise APIUsageError(
            f"{file}: contains tensors, but was not saved by pufferlib; give the path of a checkpoint, as in "
            "runs/.../checkpoints"
        ) from error


def read_policy(path: Path, device: torch.device | str = "cpu") -> dict[str, Tensor]:
    """Read the weights of a checkpoint or policy file onto ``device``.

    Raises:
        APIUsageError: The file is missing, damaged, or from another program.
    """
    read_about(path)
    return tensor_file.read_tensors(path / POLICY if path.is_dir() else path, device)


def read_state(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read the ``state`` that was passed to ``save``, with its tensors on ``device``.

    Raises:
        APIUsageError: The file is missing or damaged, or lacks an entry of CONTENTS.
    """
    if not path.is_dir():
        raise APIUsageError(
            f"{path}: is a policy file, which can be played and evaluated; to resume a run, give a folder of its "
            f"checkpoints with {STATE} in it"
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
    """Load the weights of a checkpoint into ``policy``.

    Args:
        policy: Policy of the same class, sizes and spaces as the saved one.
        weights: Weights from ``read_policy``.
        where: Start of error messages: a path, or a command.
        env_name: Environment of the training, for messages.

    Raises:
        APIUsageError: The weights belong to another network or other spaces, or a parameter is NaN or infinite. Buffers
            may be infinite, as in a causal mask.
    """
    try:
        policy.load_state_dict(weights)
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        learned = f"it was trained in {env_name}; " if env_name else ""
        raise APIUsageError(
            f"{where}: the checkpoint does not fit this policy: {first}; "
            f"{learned}train a new one, or use the settings of its run (policy.name for a network of your own)"
        ) from error
    broken = [name for name, weights in policy.named_parameters() if not torch.isfinite(weights).all()]
    if broken:
        raise APIUsageError(
            f"{where}: the weights must be finite, got NaN or infinity in {broken[0]}; "
            "train again with a lower train.learning_rate or smaller observations and rewards"
        )


def check_spaces(policy: nn.Module, about: About, where: object) -> None:
    """Check that the environment still has the spaces of the training. Equal sizes of weights do not show it.

    Raises:
        APIUsageError: The observations or actions differ. The message starts with ``where``.
    """
    for name, here in getattr(policy, "described_spaces", {}).items():
        trained = about.spaces.get(name, here)
        if here != trained:
            raise APIUsageError(
                f"{where}: was trained with other {name} of {about.env_name}: {trained}, got {here}; train a new "
                "agent, or restore the space"
            )


def load_optimizer(optimizer: torch.optim.Optimizer, state: dict[str, Any], where: object) -> None:
    """Load the state of a checkpoint into ``optimizer``.

    Raises:
        APIUsageError: The state belongs to another kind of optimizer, or to other parameters.
    """
    try:
        optimizer.load_state_dict(state)
    except (ValueError, LookupError, TypeError) as error:
        raise APIUsageError(
            f"{where}: the state does not fit this optimizer: {error}; use the config.toml of its run"
        ) from error
    # Tensors in files are row-major, parameters need not be. A fused step assumes equal layouts without a check.
    parts = getattr(optimizer, "parts", {"": optimizer}).values()  # of MuonAndAdam, or the only one
    for parameter, moments in (item for part in parts for item in part.state.items()):
        for name, value in moments.items():
            if isinstance(value, Tensor) and value.dim():
                if value.shape != parameter.shape:
                    raise APIUsageError(
                        f"{where}: the state does not fit this optimizer: expected {name!r} of shape "
                        f"{tuple(parameter.shape)}, got {tuple(value.shape)}; use the config.toml of its run"
                    )
                moments[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


def check_storable(folder: Path, policy: nn.Module) -> None:
    """Check that a checkpoint of ``policy`` can be stored in ``folder``, by writing as many bytes and removing them.

    Raises:
        APIUsageError: The state of the policy has something other than tensors.
        OSError: The folder cannot be written to, or has too little room.
    """
    state = policy.state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise APIUsageError(
                f"Trainer: the state of the policy must be tensors, as only those are stored, got {name!r} "
                f"of type {type(value).__name__}; return a tensor from get_extra_state"
            )
    needed = sum(weights.nbytes for weights in state.values())
    needed += 2 * sum(parameter.nbytes for parameter in policy.parameters())  # state of Adam
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, max(needed, 1))
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(folder)) from None


def _metadata(about: About) -> dict[str, str]:
    # By convention, "pt" marks tensors of PyTorch.
    return {"format": "pt", KEY: json.dumps({"format": FORMAT, **dataclasses.asdict(about)})}


def _all(folder: Path, warn: bool = False) -> dict[Path, About]:
    """Return the facts of all complete checkpoints by path."""
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
    """Return a free path for a checkpoint. A suffix is added if another training in the folder used the name."""
    names = [f"{updates:06}", *(f"{updates:06}-{i}" for i in range(2, 1000))]
    return next(folder / name for name in names if not (folder / name).exists())


def _sync(folder: Path) -> None:
    """Flush the entries of a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
