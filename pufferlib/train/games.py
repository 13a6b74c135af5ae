"""States of the environments of a run, for its checkpoint."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pufferlib.env import PufferEnv
from pufferlib.vector.wrappers import VectorWrapper

__all__ = ["load_games", "save_games"]


def save_games(vecenv: Any) -> list[Tensor] | None:
    """State of each environment, uint8; None where environments, or their backend, cannot be saved.

    C environments can, in this process or in workers that make one batch, and in wrappers that normalize.
    """
    if isinstance(vecenv, VectorWrapper) and vecenv.episode_arrays() is None:
        return None
    if vecenv.emulated or vecenv.agents_per_batch != vecenv.num_agents:
        return None
    try:
        states = vecenv.call("save_state")  # a native environment calls its own
    except AttributeError:  # environments of somebody's own
        return None
    return [torch.from_numpy(np.frombuffer(state, np.uint8).copy()) for state in states]


def load_games(vecenv: Any, states: Sequence[Tensor]) -> None:
    """Let the environments, which were reset, go on from the states that ``save_games`` returned.

    Raises:
        APIUsageError: They are of other environments, settings or versions.
    """
    found = [state.cpu().numpy().tobytes() for state in states]
    if isinstance(vecenv, PufferEnv):
        vecenv.call("load_state", *found)
        return
    for env_id, state in enumerate(found):
        vecenv.call("load_state", state, env_ids=env_id)
