from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array

class BatchGather:
    def __init__(self, sources: Sequence[Array], num_envs: int, copies: bool) -> None: ...
    def gather(self, envs: npt.NDArray[np.int32]) -> list[Array]: ...

def scatter(rows: Array, target: Array, num_envs: int, envs: npt.NDArray[np.int32]) -> None: ...
