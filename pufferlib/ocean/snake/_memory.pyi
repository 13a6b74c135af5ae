import numpy as np
import numpy.typing as npt

FOOD: int
CORPSE: int
WALL: int
OWN_BODY: int
HEAD: int
MOVES: int
REACH: int
SIDE: int
STEPS: int
DIRECTIONS: tuple[tuple[int, int], ...]
DUE: tuple[int, ...]
AREAS: tuple[int, ...]

def remember(
    seen: npt.NDArray[np.int8],
    starts: npt.NDArray[np.uint8] | None,
    trail: npt.NDArray[np.uint8],
    length: npt.NDArray[np.int32],
    eats: npt.NDArray[np.uint8],
    trails: npt.NDArray[np.uint8],
    lengths: npt.NDArray[np.int32],
    eats_after: npt.NDArray[np.uint8],
) -> None: ...
def features(
    seen: npt.NDArray[np.int8],
    trail: npt.NDArray[np.uint8],
    length: npt.NDArray[np.int32],
    inputs: npt.NDArray[np.float32],
) -> None: ...
