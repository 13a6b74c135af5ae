"""Settings of a training in many processes, which are part of ``[train]``."""

from dataclasses import dataclass
from typing import Annotated

from pufferlib.train.kinds import Count, Range

__all__ = ["DEFAULT_TIMEOUT_S", "ProcessSettings"]

DEFAULT_TIMEOUT_S = 600.0
Seconds = Annotated[float, Range(0.1, 1e6)]


@dataclass(frozen=True)
class ProcessSettings:
    """Processes that train together.

    Attributes:
        processes: Processes (ranks), which share the cores of this machine, or have a GPU each. Each has all of
            vec.num_envs and env.*, and minibatches of minibatch_size, so that an update learns from as many times more
            steps; total_timesteps counts those of all.
        processes_timeout: Seconds that one waits for the others, at the start and whenever they have something in
            common.
    """

    processes: Count = 1
    processes_timeout: Seconds = DEFAULT_TIMEOUT_S
