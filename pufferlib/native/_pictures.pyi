import numpy as np
import numpy.typing as npt

def scale_picture(picture: npt.NDArray[np.uint8], small: npt.NDArray[np.uint8]) -> None: ...

class FrameStack:
    def __init__(
        self, newer: npt.NDArray[np.uint8], older: npt.NDArray[np.uint8], frames: npt.NDArray[np.uint8]
    ) -> None: ...
    def push(self, both: bool) -> None: ...
