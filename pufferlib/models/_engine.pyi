from collections.abc import Mapping
from typing import Any

import numpy.typing as npt
from torch import Tensor

MAX_LAYERS: int
MAX_MEMORIES: int
KERNELS: tuple[str, ...]

Array = npt.NDArray[Any] | Tensor

class Engine:
    num_params: int

    def __init__(self, spec: Any, threads: int = 1, kernels: str | None = None) -> None: ...
    def refresh(self) -> None: ...
    def forward(self, observations: Array, state: Mapping[str, Array] | None, params: Array, values: Array) -> None: ...
