"""States of the environments of a run, for its checkpoint."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pufferlib.emulation.state import is_pickle
from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import VectorWrapper

__all__ = ["load_games", "save_games"]


def save_games(vecenv: Any, how: str) -> list[Tensor] | None:
    """State of each environment, uint8; None where environments, or their backend, cannot be saved.

    They can in batches of all environments, and in wrappers that normalize: those in C, and others as ``how`` says,
    which is ``train.save_games``.
    """
    if how == "none" or vecenv.agents_per_batch != vecenv.num_agents:
        return None
    if isinstance(vecenv, VectorWrapper) and vecenv.episode_arrays() is None:
        return None
    try:
        is_native = isinstance(vecenv, PufferEnv)
        states = vecenv.call("save_state") if is_native else vecenv.save_state(allow_pickle=how == "pickle")
    except (AttributeError, APIUsageError) as error:
        if how == "pickle":
            warnings.warn(
                f"the checkpoint has no games, which train.save_games='pickle' asks for: {error}", stacklevel=3
            )
        return None
    except Exception as error:  # of the environment's own code: the weights must be saved anyway
        warnings.warn(f"the checkpoint has no games: {type(error).__name__}: {error}", stacklevel=3)
        return None
    return [torch.from_numpy(np.frombuffer(state, np.uint8).copy()) for state in states]


def load_games(vecenv: Any, states: Sequence[Tensor], allow_pickle: bool = False) -> None:
    """Let the environments, which were reset, go on from the states that ``save_games`` returned.

    Raises:
        APIUsageError: They are of other environments, settings or versions; or pickles that are not allowed.
    """
    found = [state.cpu().numpy().tobytes() for state in states]
    if not allow_pickle and any(map(is_pickle, found)):
        raise APIUsageError(
            "they are pickles, which may execute anything as they are loaded; resume with --train.save-games pickle if "
            "you know who made them"
        )
    if isinstance(vecenv, PufferEnv):
        vecenv.call("load_state", *found)
    else:
        vecenv.load_state(found, allow_pickle=allow_pickle)
