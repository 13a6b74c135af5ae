from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

MAX_THREADS: int
source_hash: str

def ocean_types() -> list[dict[str, Any]]: ...
def add_type(address: int) -> dict[str, Any] | None: ...

class OceanBatch:
    def __init__(
        self,
        index: int,
        num_games: int,
        values: Sequence[float],
        log_interval: int,
        autoreset: str = "same_step",
        num_threads: int = 1,
        helper_ns: int = ...,
        pixels: tuple[int, int] | None = None,
    ) -> None: ...
    @property
    def spec(self) -> dict[str, Any]: ...
    def bind(
        self,
        observations: npt.NDArray[np.generic],
        final_observations: npt.NDArray[np.generic],
        actions: npt.NDArray[np.generic],
        rewards: npt.NDArray[np.float32],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        masks: npt.NDArray[np.bool_],
    ) -> None: ...
    def reset(self, seeds: Iterable[int | None] | None = None) -> None: ...
    def reset_games(self, indices: Iterable[int], seeds: Iterable[int | None]) -> None: ...
    def step(self, actions: Any) -> bool: ...
    def copy_game(self, source: OceanBatch, index: int, values: Sequence[float]) -> None: ...
    def report(self) -> list[dict[str, Any]]: ...
    def areas(self, index: int, agent: int) -> dict[int, tuple[int, int, int, int]]: ...
    def render(self, index: int, agent: int, picture: npt.NDArray[np.uint8]) -> None: ...
    def close(self) -> None: ...
