from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.envpool.pool import PoolBatch, PoolSpec

StepTuple = tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], npt.NDArray[np.bool_], dict[str, Any]]

class NativePool:
    spec: PoolSpec
    num_envs: int
    batch_size: int
    def __init__(
        self,
        index: int,
        values: Sequence[float | bytes],
        spec: PoolSpec,
        seeds: Sequence[int],
        batch_size: int,
        num_threads: int = 1,
        max_episode_steps: int = 0,
        autoreset: str = "next_step",
        copy: bool = True,
        thread_affinity_offset: int = -1,
        helper_ns: int = ...,
        fields: np.dtype[Any] | None = None,
    ) -> None: ...
    @property
    def num_in_flight(self) -> int: ...
    def reset(self, env_ids: Any = None) -> None: ...
    def reset_with(self, seeds: Sequence[int]) -> None: ...
    def send(self, actions: Any, env_ids: Any = None) -> None: ...
    def recv(self) -> PoolBatch: ...
    def recv_step(self) -> StepTuple: ...
    def step(self, action: Any, env_id: Any = None) -> StepTuple: ...
    def observations(self) -> Any: ...
    def render(self, env_ids: Any, camera_id: int = -1) -> npt.NDArray[np.uint8]: ...
    def close(self) -> None: ...
