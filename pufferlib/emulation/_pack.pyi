from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.emulation.layout import Layout

class Packer:
    def __init__(self, layout: Layout) -> None: ...
    def pack(self, batch: npt.NDArray[np.generic], row: int, sample: Any) -> None: ...
