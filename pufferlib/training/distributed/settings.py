"""Settings of a training in many processes, which are part of ``[train]``."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pufferlib.training.kinds import Count, Range

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
        launcher: Starts the processes: "local" on this machine, "ray" all but the first on the nodes of a Ray cluster.
        ray_address: Of the cluster, as 10.0.0.1:6379; "" is RAY_ADDRESS, or else a small one on this machine.
        ray_cpus: CPUs of the cluster that each process reserves.
    """

    processes: Count = 1
    processes_timeout: Seconds = DEFAULT_TIMEOUT_S
    launcher: Literal["local", "ray"] = "local"
    ray_address: str = ""
    ray_cpus: Count = 1
