"""Video recording of episodes."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.render.video import VideoWriter
from pufferlib.vector.vector_env import VectorEnv
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["RecordVideo"]


class RecordVideo(VectorWrapper):
    """Videos of selected episodes of one environment: ``episode-0.mp4``, ``episode-100.mp4`` and so on.

    A video has a frame for the first observation of the episode and for each step. With autoreset "same_step" the last
    frame is missing, because the environment then already shows the next episode. For a native environment, its first
    game is recorded. Episodes that are not recorded have no overhead.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``, made with ``render_mode="rgb_array"``.
        folder: Output folder. It is created if it does not exist.
        every: Interval between recorded episodes, starting with the first, or a function that takes an episode index,
            starting at 0, and returns whether to record it.
        length: Largest number of frames of a video. 0 for whole episodes.
        env_id: Environment to record.
        fps: Frames per second. None uses the environment's ``render_fps``, or 30.

    Attributes:
        episode: Index of the running episode.

    Raises:
        APIUsageError: The environments do not render frames, or an argument is wrong.
    """

    def __init__(
        self,
        vecenv: Any,
        folder: str | os.PathLike[str],
        every: int | Callable[[int], bool] = 100,
        length: int = 0,
        env_id: int = 0,
        fps: float | None = None,
    ) -> None:
        super().__init__(vecenv)
        if not callable(every) and (isinstance(every, bool) or not isinstance(every, int) or every < 1):
            raise APIUsageError(
                f"RecordVideo: every must be a number of episodes of at least 1, or a function, got {every!r}"
            )
        if isinstance(length, bool) or not isinstance(length, int) or length < 0:
            raise APIUsageError(f"RecordVideo: length must be a number of frames, or 0 for all, got {length!r}")
        _check_render_mode(vecenv)
        self._is_native = not isinstance(vecenv, VectorEnv)
        num_envs = 1 if self._is_native else vecenv.num_envs
        if not 0 <= env_id < num_envs:
            raise APIUsageError(f"RecordVideo: env_id must be 0 to {num_envs - 1}, got {env_id}")
        rows_per_env = vecenv.num_agents // num_envs
        self._first_agent = env_id * rows_per_env
        self._num_agents = rows_per_env if vecenv.emulated else 1  # of one game
        self._folder, self._every, self._length, self._env_id = Path(folder), every, length, env_id
        self._folder.mkdir(parents=True, exist_ok=True)
        metadata = getattr(vecenv.driver_env, "metadata", None) or {}
        self._fps = float(fps or metadata.get("render_fps") or 30)
        self.episode, self._is_running = 0, False
        self._writer: VideoWriter | None = None

    def close(self) -> None:
        """Finish the video, and close all environments."""
        self._finish_video()
        super().close()

    def transform(self, transitions: Transitions) -> None:
        """Record a frame if the current episode is recorded."""
        if self._writer is None and not (transitions.any_begins or transitions.any_ended):
            return
        first = int(np.searchsorted(transitions.agent_ids, self._first_agent))
        rows = slice(first, first + self._num_agents)
        if self._first_agent not in transitions.agent_ids[rows]:
            return
        if transitions.reset_rows is not None and not transitions.reset_rows[rows].all():
            return
        begins, ended, absent = transitions.begins[rows], transitions.ended[rows], ~transitions.masks[rows]
        if begins.any() and (begins | absent).all():
            self._end_episode()
            self._begin_episode()
            self._write_frame()
        else:
            self._write_frame()
            if ended.any() and (ended | absent).all():
                self._end_episode()

    def _begin_episode(self) -> None:
        self._is_running = True
        is_chosen = self._every(self.episode) if callable(self._every) else self.episode % self._every == 0
        if is_chosen:
            self._writer = VideoWriter(self._folder / f"episode-{self.episode}.mp4", self._fps)

    def _write_frame(self) -> None:
        writer = self._writer
        if writer is None:
            return
        writer.write(self.vecenv.render() if self._is_native else self.vecenv.call("render", env_ids=self._env_id)[0])
        if writer.frames == self._length:
            self._finish_video()

    def _end_episode(self) -> None:
        self._finish_video()
        self.episode += self._is_running
        self._is_running = False

    def _finish_video(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    def _state(self) -> dict[str, Any]:
        return {"episode": self.episode}

    def _load(self, state: Mapping[str, Array]) -> None:
        self.episode = int(state["episode"])


def _check_render_mode(vecenv: Any) -> None:
    if not isinstance(vecenv, VectorEnv) and not hasattr(vecenv, "render"):
        raise APIUsageError(
            f"RecordVideo: a native environment must have a render method, got {type(vecenv.driver_env).__name__} "
            "without one; define render(self), which returns uint8 (height, width, 3)"
        )
    mode = getattr(vecenv.driver_env, "render_mode", None)
    if mode == "rgb_array" or (mode is None and not vecenv.emulated):  # default of native environments
        return
    how = (
        "functools.partial(GymnasiumPufferEnv, env_creator=gymnasium.make, env_args=[...], "
        'env_kwargs={"render_mode": "rgb_array"})'
        if vecenv.emulated
        else 'pufferlib.vector.make(..., env_kwargs={"render_mode": "rgb_array"})'
    )
    raise APIUsageError(
        f'RecordVideo: environments must be made with render_mode="rgb_array", got render_mode={mode!r}; '
        f"for instance {how}"
    )
