from typing import Any, SupportsFloat

import numpy.typing as npt

from pufferlib.emulation._rows import EmulatedRows

class GymnasiumStep(EmulatedRows):
    @property
    def done(self) -> bool: ...
    def step(self, action: Any) -> tuple[npt.NDArray[Any], SupportsFloat, bool, bool, dict[str, Any]]: ...
    def _begin(self, observation: Any) -> npt.NDArray[Any]: ...
