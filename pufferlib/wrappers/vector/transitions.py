"""Transitions of one batch, and the episode tracking that determines which rows acted, ended and started."""

from functools import cached_property

import numpy as np
import numpy.typing as npt

from pufferlib.env import AutoresetMode, Received
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector._kernels import EpisodeFlags

__all__ = ["EpisodeTracker", "Rows", "Transitions"]

Rows = slice | npt.NDArray[np.int64]  # a slice if rows are adjacent, so that indexing returns views


class Transitions:
    """One batch as it passes through the wrappers. Each wrapper may replace its arrays.

    Attributes:
        observations: Observations ``(rows, *shape)``.
        rewards: Rewards, float32 ``(rows,)``.
        terminals: Whether episodes terminated, bool ``(rows,)``.
        truncations: Whether episodes were truncated, bool ``(rows,)``.
        infos: Infos of the batch.
        agent_ids: Agent of each row, int64 ``(rows,)``.
        masks: Whether agents are present, bool ``(rows,)``.
        agents: Agents of the rows, as an index into arrays with one entry for each agent.
        acted: Whether the step counts, bool ``(rows,)``. False if the row was reset or its agent was absent. None if
            the step counts in all rows.
        ended: Whether an episode ended, bool ``(rows,)``.
        begins: Whether the observation is the first of an episode, bool ``(rows,)``.
        any_ended: Whether any episode ended.
        any_begins: Whether any episode started.
        reset_rows: Rows changed by a reset of some environments, bool ``(rows,)``. None if all rows are new.
    """

    def __init__(self, received: Received, flags: EpisodeFlags, agents: Rows, is_partial: bool = False) -> None:
        (
            self.observations,
            self.rewards,
            self.terminals,
            self.truncations,
            self.infos,
            self.agent_ids,
            self.masks,
        ) = received
        self.agents = agents
        self.acted = None if flags.all_acted else flags.acted
        self.ended, self.begins = flags.ended, flags.begins
        self.any_ended, self.any_begins = flags.any_ended, flags.any_begins
        self.reset_rows = flags.begins if is_partial else None

    @cached_property
    def ended_rows(self) -> npt.NDArray[np.int64]:
        """Indices of the rows whose episode ended."""
        return np.flatnonzero(self.ended)


class EpisodeTracker:
    """Episode state of all agents of a vector environment. Batches may hold only some of the agents.

    Args:
        vecenv: Vector environment.
    """

    def __init__(self, vecenv: AnyVectorEnv) -> None:
        num_agents, num_rows = int(vecenv.num_agents), int(vecenv.agents_per_batch)
        self._flags = EpisodeFlags(num_agents, num_rows, vecenv.autoreset == AutoresetMode.SAME_STEP)
        self._is_whole = num_rows == num_agents

    def reset(self) -> None:
        """Mark the next observation of every agent as the first of an episode."""
        self._flags.reset()

    def after(self, received: Received) -> Transitions:
        """Return the transitions of a received batch."""
        _, _, terminals, truncations, _, agent_ids, masks = received
        self._flags.note(agent_ids, terminals, truncations, masks)
        return Transitions(received, self._flags, self._index(agent_ids))

    def after_reset_of(self, agents: npt.NDArray[np.int64], received: Received) -> Transitions:
        """Return the transitions of a batch in which only the environments of ``agents`` were reset."""
        *_, agent_ids, masks = received
        self._flags.note_reset(agent_ids, masks, agents)
        return Transitions(received, self._flags, self._index(agent_ids), is_partial=True)

    @property
    def idle(self) -> npt.NDArray[np.uint8]:
        """Agents that were absent at their latest observation, or whose episode was over. May be written to."""
        return self._flags.idle

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> Rows:
        if self._is_whole:
            return slice(None)
        first, last = int(agent_ids[0]), int(agent_ids[-1])
        return slice(first, last + 1) if last - first + 1 == len(agent_ids) else agent_ids
