from collections.abc import Sequence
from typing import Any

import numpy.typing as npt

class EnvSlot:
    env: Any
    spec: Any
    buffers: dict[str, npt.NDArray[Any]]
    autoreset: Any
    def __init__(self, env: Any, spec: Any, buffers: dict[str, npt.NDArray[Any]], autoreset: str) -> None: ...

class NativeSlot(EnvSlot): ...
class EmulatedSlot(EnvSlot): ...

class EnvLoop:
    sources: list[int]
    def __init__(self, slots: list[EnvSlot]) -> None: ...
    def track(self, progress: memoryview[int]) -> None: ...
    def reset(
        self,
        seeds: Sequence[int | None],
        options: Sequence[dict[str, Any] | None] | None = None,
        positions: Sequence[int] | None = None,
    ) -> list[dict[str, Any]]: ...
    def step(self) -> list[dict[str, Any]]: ...
    def show_ended(self, seeds: Sequence[int | None]) -> None: ...
