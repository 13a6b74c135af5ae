"""Statistics of episodes: returns and lengths."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.vector.specs import InfoSource
from pufferlib.vector.vector_env import VectorEnv
from pufferlib.wrappers.vector._kernels import add_rewards, clear_episodes
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["EpisodeStatistics"]


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
    """

    def __init__(self, vecenv: Any, buffer_length: int = 100, infos: bool | None = None) -> None:
        super().__init__(vecenv)
        if isinstance(buffer_length, bool) or not isinstance(buffer_length, int | np.integer) or buffer_length < 1:
            raise APIUsageError(f"EpisodeStatistics: buffer_length must be an int of at least 1, got {buffer_length!r}")
        self.episode_returns = np.zeros(vecenv.num_agents)
        self.episode_lengths = np.zeros(vecenv.num_agents, np.int64)
        self.episode_count = 0
        self._adds_infos = bool(vecenv.emulated) if infos is None else infos
        self._has_sources = isinstance(vecenv, VectorEnv)
        self._rows_per_env = vecenv.num_agents // vecenv.num_envs if self._has_sources else vecenv.num_agents
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
