"""Checkpoints: everything a run needs to go on, in one file that is whole or not there at all."""

import io
import os
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from pufferlib.errors import APIUsageError

__all__ = ["load", "load_policy_weights", "save"]

FORMAT = 1
# What a checkpoint holds, and as what.
CONTENTS: dict[str, tuple[type, ...]] = {
    "policy": (Mapping,),
    "optimizer": (Mapping,),
    "generator": (torch.Tensor,),
    "agent_steps": (int,),
    "updates": (int,),
    "uptime_s": (int, float),
}


def save(path: Path, contents: dict[str, Any]) -> None:
    """Write ``contents`` (tensors, numbers, strings, dicts and lists) to ``path``.

    It appears under its name only when complete, so that a crash or a full disk leaves the
    previous checkpoint whole.

    Raises:
        OSError: It cannot be written.
    """
    # Through memory, since torch hides the OSError of a file it writes itself behind one of its own.
    data = io.BytesIO()
    torch.save({"format": FORMAT, **contents}, data)
    partial = path.with_name(f"{path.name}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def load(path: Path, device: torch.device | str = "cpu") -> dict[str, Any]:
    """Read what ``save`` wrote; nothing in the file is executed.

    Args:
        path: Of a run's ``checkpoint.pt``.
        device: Where its tensors are put, whatever device they were saved from.

    Returns:
        The contents that ``save`` was given, and ``format``.

    Raises:
        APIUsageError: The file is missing, damaged, of another format, or lacks something of CONTENTS.
    """
    try:
        contents = torch.load(path, map_location=device, weights_only=True)
    except OSError as error:
        raise APIUsageError(
            f"checkpoint.load: cannot read {path}: {error.strerror}; give the path of a run's checkpoint.pt"
        ) from error
    except pickle.UnpicklingError:  # torch's own words tell how to execute what is in there
        raise APIUsageError(
            f"checkpoint.load: {path} is not a checkpoint, or is damaged, or holds code, which is never executed; "
            "give the path of a run's checkpoint.pt"
        ) from None
    except (RuntimeError, EOFError, LookupError, ValueError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise APIUsageError(
            f"checkpoint.load: {path} is not a checkpoint, or is damaged ({reason}); "
            "give the path of a run's checkpoint.pt"
        ) from error
    if not isinstance(contents, dict) or contents.get("format") != FORMAT:
        found = contents.get("format") if isinstance(contents, dict) else type(contents).__name__
        raise APIUsageError(f"checkpoint.load: {path} must have format {FORMAT}, got {found}; train again to renew it")
    for key, kinds in CONTENTS.items():
        if not isinstance(contents.get(key), kinds):
            raise APIUsageError(
                f"checkpoint.load: {path} must have {key!r} ({kinds[-1].__name__}), got "
                f"{type(contents[key]).__name__ if key in contents else 'none'}; it was not written by a Trainer"
            )
    return contents


def load_policy_weights(policy: torch.nn.Module, contents: dict[str, Any], where: object) -> None:
    """Give ``policy`` the weights of a checkpoint.

    Args:
        policy: Of the same class, sizes and spaces as the one that was saved.
        contents: What ``load`` returned.
        where: Whose error it is, for the message: a path, or a command.

    Raises:
        APIUsageError: They belong to another network or other spaces, or are NaN or infinite.
    """
    try:
        policy.load_state_dict(contents["policy"])
    except RuntimeError as error:
        first = str(error).splitlines()[-1].strip()
        raise APIUsageError(
            f"{where}: the checkpoint does not fit this policy: {first}; "
            "use the config.toml beside the checkpoint, or train a new one"
        ) from error
    broken = [name for name, weights in policy.state_dict().items() if not torch.isfinite(weights).all()]
    if broken:
        raise APIUsageError(
            f"{where}: the weights must be finite, got NaN or infinity in {broken[0]}; nothing can be done with them, "
            "so train again, with a lower train.learning_rate or smaller observations and rewards"
        )
