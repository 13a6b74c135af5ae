from typing import Any

import numpy as np
import numpy.typing as npt

ARRAYS: tuple[str, ...]
INFOS: tuple[str, ...]
CHANGES: tuple[str, ...]
PLACES: tuple[str, ...]
HEALTH: tuple[str, ...]
MAX_ACTIONS: int
MAX_BODIES: int
MAX_WARNINGS: int
READS: int

class RobotCopies:
    def __init__(
        self,
        reward: str,
        task: dict[str, Any],
        parts: list[dict[str, Any]],
        engine: tuple[int, ...],
        model: int,
        copies: list[tuple[int, ...]],
        loops: tuple[np.ufunc, ...],
        num_threads: int,
        affinity: int = 0,
    ) -> None: ...
    def bind(
        self,
        body_mass: npt.NDArray[np.float64],
        low: npt.NDArray[np.float32],
        high: npt.NDArray[np.float32],
        observations: npt.NDArray[np.generic],
        single_observations: npt.NDArray[np.generic] | None,
        actions: npt.NDArray[np.generic] | None,
        double_actions: npt.NDArray[np.generic] | None,
        rewards: npt.NDArray[np.float32],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        exact_rewards: npt.NDArray[np.float64],
        infos: npt.NDArray[np.float64],
        elapsed: npt.NDArray[np.int32],
    ) -> None: ...
    def fault(self) -> str: ...
    def begin(self, index: int) -> None: ...
    def step(self, order: npt.NDArray[np.int32]) -> None: ...
