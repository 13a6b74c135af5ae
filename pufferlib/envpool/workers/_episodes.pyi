from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt

from pufferlib.vector.env_runner import EnvRunner

class Episodes:
    ended: tuple[list[dict[str, Any]], int] | None
    def __init__(
        self,
        runner: EnvRunner,
        own: Sequence[str],
        autoreset: str,
        limit: int,
        rows: Mapping[str, npt.NDArray[Any]],
        envs: Mapping[str, npt.NDArray[Any]],
    ) -> None: ...
    def reset(self, position: int) -> list[dict[str, Any]]: ...
    def step(self, position: int) -> list[dict[str, Any]]: ...
