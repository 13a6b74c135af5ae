from typing import Any

import numpy.typing as npt

class ActionRows:
    def __init__(self, low: npt.NDArray[Any], high: npt.NDArray[Any], is_simple: bool = True) -> None: ...
    def __call__(self, actions: Any) -> npt.NDArray[Any]: ...
