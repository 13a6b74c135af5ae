from typing import Any

import numpy as np
import numpy.typing as npt

class Moments:
    mean: npt.NDArray[np.float64]
    var: npt.NDArray[np.float64]
    count: float
    scale: float
    def __init__(self, size: int, epsilon: float, plain: slice | None = None) -> None: ...
    def load(self, mean: npt.NDArray[Any], var: npt.NDArray[Any], count: float) -> None: ...
    def update(self, rows: npt.NDArray[Any], present: npt.NDArray[np.bool_] | None = None) -> None: ...
    def normalize(self, rows: npt.NDArray[Any], out: npt.NDArray[np.float32], limit: float) -> None: ...

class EpisodeFlags:
    acted: npt.NDArray[np.bool_]
    ended: npt.NDArray[np.bool_]
    begins: npt.NDArray[np.bool_]
    idle: npt.NDArray[np.uint8]
    all_acted: bool
    any_ended: bool
    any_begins: bool
    def __init__(self, num_agents: int, num_rows: int, same_step: bool) -> None: ...
    def reset(self) -> None: ...
    def note(
        self,
        agent_ids: npt.NDArray[np.int64],
        terminals: npt.NDArray[np.bool_],
        truncations: npt.NDArray[np.bool_],
        masks: npt.NDArray[np.bool_],
    ) -> None: ...
    def note_reset(
        self, agent_ids: npt.NDArray[np.int64], masks: npt.NDArray[np.bool_], agents: npt.NDArray[np.int64]
    ) -> None: ...

def add_rewards(
    returns: npt.NDArray[np.float64],
    rewards: npt.NDArray[np.float32],
    gamma: float,
    acted: npt.NDArray[np.bool_] | None = None,
) -> None: ...
def add_squares(
    sums: npt.NDArray[np.float64],
    rewards: npt.NDArray[np.float32],
    acted: npt.NDArray[np.bool_] | None = None,
) -> None: ...
def clear_episodes(
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64],
    ended: npt.NDArray[np.bool_],
    begins: npt.NDArray[np.bool_],
) -> None: ...
def scale_rewards(
    rewards: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
    scale: float,
    limit: float,
    acted: npt.NDArray[np.bool_] | None = None,
) -> None: ...
def add_novelty(
    rows: npt.NDArray[np.uint8],
    agent_ids: npt.NDArray[np.int64],
    begins: npt.NDArray[np.bool_],
    acted: npt.NDArray[np.bool_] | None,
    counts: npt.NDArray[np.uint32],
    episodes: npt.NDArray[np.uint32],
    seen: npt.NDArray[np.uint32],
    rewards: npt.NDArray[np.float32],
    out: npt.NDArray[np.float32],
    coef: float,
    counting: bool,
) -> float: ...
def push_frames(
    stacks: npt.NDArray[np.uint8],
    frames: npt.NDArray[np.uint8],
    chunk: int,
    begins: npt.NDArray[np.bool_],
    only_begins: bool,
) -> None: ...
