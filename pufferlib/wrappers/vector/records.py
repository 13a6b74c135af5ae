"""Records of episodes: statistics and videos."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.render.video import VideoWriter
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.vector.specs import InfoSource
from pufferlib.vector.vector_env import VectorEnv
from pufferlib.wrappers.vector._kernels import add_rewards, clear_episodes
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["EpisodeStatistics", "RecordVideo"]


class EpisodeStatistics(VectorWrapper):
    """Return and length of every episode, in the last info of the episode and in arrays.

    ``episode_return`` and ``episode_length`` are added to the info, and also ``score``, equal to the return, if it has
    none. An info that already has ``episode_return`` is unchanged. If an environment has several agents, each agent
    gets its own info.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make``.
        buffer_length: Number of episodes kept in the queues.
        infos: Whether to add statistics to infos. None adds them for emulated environments only. Native environments
            report their own means, so every episode would count twice.

    Attributes:
        episode_returns: Returns of the running episodes, float64 ``(num_agents,)``.
        episode_lengths: Number of steps of the running episodes, int64 ``(num_agents,)``.
        episode_count: Number of ended episodes.

    Raises:
        APIUsageError: ``buffer_length`` is not a positive int.
    """

    def __init__(self, vecenv: AnyVectorEnv, buffer_length: int = 100, infos: bool | None = None) -> None:
        super().__init__(vecenv)
        if isinstance(buffer_length, bool) or not isinstance(buffer_length, int | np.integer) or buffer_length < 1:
            raise APIUsageError(f"EpisodeStatistics: buffer_length must be an int of at least 1, got {buffer_length!r}")
        self.episode_returns = np.zeros(vecenv.num_agents)
        self.episode_lengths = np.zeros(vecenv.num_agents, np.int64)
        self.episode_count = 0
        self._adds_infos = bool(vecenv.emulated) if infos is None else infos
        self._has_sources = isinstance(vecenv, VectorEnv)
        self._rows_per_env = vecenv.num_agents // self.vecenv.num_envs if self._has_sources else vecenv.num_agents
        self._last_returns, self._last_lengths = np.zeros(buffer_length), np.zeros(buffer_length, np.int64)
        self._sources: list[InfoSource] | None = None  # set if reports were merged into the infos
        self._reported: Array | None = None  # agents of the infos, if all infos are reports

    @property
    def return_queue(self) -> npt.NDArray[np.float64]:
        """Returns of the last episodes, oldest first."""
        return self._last_returns[self._order()]

    @property
    def length_queue(self) -> npt.NDArray[np.int64]:
        """Lengths of the last episodes, in the order of ``return_queue``."""
        return self._last_lengths[self._order()]

    @property
    def info_sources(self) -> list[InfoSource]:
        """Sources of the infos of the last batch, in their order."""
        if self._reported is not None:
            return [InfoSource(env_id, "step") for env_id in (self._reported // self._rows_per_env).tolist()]
        return self.vecenv.info_sources if self._sources is None else self._sources

    def _order(self) -> npt.NDArray[np.int64]:
        size = len(self._last_returns)
        return np.arange(max(0, self.episode_count - size), self.episode_count) % size

    def transform(self, transitions: Transitions) -> None:
        """Count the step, and add reports of ended episodes."""
        agents, acted = transitions.agents, transitions.acted
        returns, lengths = self.episode_returns[agents], self.episode_lengths[agents]
        add_rewards(returns, transitions.rewards, 1.0, acted)
        lengths += 1 if acted is None else acted
        self._sources = self._reported = None
        if transitions.any_ended:
            rows = transitions.ended_rows
            ended_returns, ended_lengths = returns[rows], lengths[rows]
            self._store(ended_returns, ended_lengths)
            if self._adds_infos:
                transitions.infos = self._add_reports(transitions, ended_returns, ended_lengths)
        if transitions.any_ended or transitions.any_begins:
            for values in (returns, lengths):
                clear_episodes(values, transitions.ended, transitions.begins)
        if not isinstance(agents, slice):  # indexing made copies
            self.episode_returns[agents], self.episode_lengths[agents] = returns, lengths

    def _store(self, returns: Array, lengths: Array) -> None:
        size = len(self._last_returns)
        self.episode_count += len(returns)
        returns, lengths = returns[-size:], lengths[-size:]
        start = (self.episode_count - len(returns)) % size
        before_wrap = size - start
        for queue, values in ((self._last_returns, returns), (self._last_lengths, lengths)):
            queue[start : start + len(values)] = values[:before_wrap]
            queue[: max(0, len(values) - before_wrap)] = values[before_wrap:]

    def _add_reports(self, transitions: Transitions, returns: Array, lengths: Array) -> Infos:
        """Return the infos of the batch, including reports of the ended episodes."""
        found = [
            {"score": episode_return, "episode_return": episode_return, "episode_length": length}
            for episode_return, length in zip(returns.tolist(), lengths.tolist(), strict=True)
        ]
        agents = transitions.agent_ids[transitions.ended_rows]
        if not transitions.infos:  # the common case
            self._reported = agents
            return found
        reports: dict[int, list[dict[str, Any]]] = {}
        for env_id, report in zip((agents // self._rows_per_env).tolist(), found, strict=True):
            reports.setdefault(env_id, []).append(report)
        return self._merge_reports(transitions.infos, reports)

    def _merge_reports(self, infos: Infos, reports: dict[int, list[dict[str, Any]]]) -> Infos:
        """Merge reports, by environment, into the infos of their last steps, or add them before other infos."""
        old = self.vecenv.info_sources if self._has_sources else [InfoSource(0, "step")] * len(infos)
        found: list[tuple[InfoSource, dict[str, Any]]] = []
        for source, info in zip(old, infos, strict=True):
            if source.kind == "step" and source.env_id in reports:
                if _has_report(info):
                    reports.pop(source.env_id)
                elif self._rows_per_env == 1:
                    (report,) = reports.pop(source.env_id)
                    info = {**report, **info}
            found.append((source, info))
        found += [(InfoSource(env_id, "step"), report) for env_id in reports for report in reports[env_id]]
        found.sort(key=_place)
        self._sources = [source for source, _ in found]
        return [info for _, info in found]

    def _settings(self) -> dict[str, Any]:
        return {"buffer_length": len(self._last_returns)}

    def _state(self) -> dict[str, Any]:
        return {"returns": self._last_returns, "lengths": self._last_lengths, "episode_count": self.episode_count}

    def _load(self, state: Mapping[str, Array]) -> None:
        self._last_returns[:], self._last_lengths[:] = state["returns"], state["lengths"]
        self.episode_count = int(state["episode_count"])


def _has_report(info: Mapping[Any, Any]) -> bool:
    """Return whether an environment already reports an episode, for itself or in its dict by agent."""
    return "episode_return" in info or any(
        isinstance(value, Mapping) and "episode_return" in value for value in info.values()
    )


def _place(entry: tuple[InfoSource, dict[str, Any]]) -> tuple[int, bool]:
    """Return the sort key of an info: by environment, step before reset."""
    source, _ = entry
    return source.env_id, source.kind != "step"


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
        vecenv: AnyVectorEnv,
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
        num_envs = 1 if self._is_native else self.vecenv.num_envs
        if not 0 <= env_id < num_envs:
            raise APIUsageError(f"RecordVideo: env_id must be 0 to {num_envs - 1}, got {env_id}")
        rows_per_env = vecenv.num_agents // num_envs
        self._first_agent = env_id * rows_per_env
        self._num_agents = rows_per_env if vecenv.emulated else 1  # of one game
        self._folder = Path(folder).absolute()  # environments may change the working directory
        self._every, self._length, self._env_id = every, length, env_id
        self._folder.mkdir(parents=True, exist_ok=True)
        metadata = getattr(vecenv.driver_env, "metadata", None) or {}
        self._fps = float(fps or metadata.get("render_fps") or 30)
        self.episode, self._is_running = 0, False
        self._writer: VideoWriter | None = None

    def close(self) -> None:
        """Finish the video, and close all environments."""
        try:
            self._finish_video()
        finally:
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
