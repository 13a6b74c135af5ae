from typing import Any

import numpy as np
import numpy.typing as npt

RAYS: int
TEXT_SHAPE: tuple[int, int]
PICTURE_SHAPE: tuple[int, int, int]

class Box2DCopies:
    def __init__(
        self,
        task: str,
        options: dict[str, Any],
        engine: tuple[int, ...],
        num_games: int,
        num_threads: int,
        affinity: int = 0,
    ) -> None: ...
    def bind(
        self,
        observations: npt.NDArray[np.uint8],
        actions: npt.NDArray[np.uint32],
        rewards: npt.NDArray[np.float32],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        exact_rewards: npt.NDArray[np.float64],
        elapsed: npt.NDArray[np.int32],
    ) -> None: ...
    def seed(self, index: int, seed: int) -> None: ...
    def begin(self, index: int) -> None: ...
    def step(self, order: npt.NDArray[np.int32]) -> None: ...
    def draw(self, index: int, picture: npt.NDArray[np.uint8]) -> None: ...
    def has_finished(self, index: int) -> bool: ...
    def save(self, index: int) -> bytes: ...
    def load(self, index: int, state: bytes | memoryview) -> None: ...
    def close(self) -> None: ...
