"""Transitions of one batch, and the account of episodes that says which of its rows acted, ended and began."""

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.env import Received
from pufferlib.wrappers.vector._kernels import EpisodeFlags

__all__ = ["EpisodeTracker", "Rows", "Transitions"]

Rows = slice | npt.NDArray[np.int64]  # a slice where rows are neighbours, so that arrays of agents give views


class Transitions:
    """The rows of one batch on their way through the wrappers, each of which puts its own arrays in place.

    Attributes:
        observations: ``(rows, *shape)``, like the other four what ``step`` returns.
        rewards: float32 ``(rows,)``.
        terminals: bool ``(rows,)``.
        truncations: bool ``(rows,)``.
        infos: Infos of the batch.
        agent_ids: Agents of the rows, int64.
        masks: True for agents that are present, bool ``(rows,)``.
        agents: The same agents, as an index into arrays with an entry for each agent.
        acted: Rows in which a step counts; None: in all. Not those that were reset, or whose agent was absent.
        ended: Rows whose episode ended.
        begins: Rows whose observation is the first of an episode.
        any_ended: True if there are such rows.
        any_begins: True if there are such rows.
        reset_rows: Rows that a reset of some environments changed, while all others stay; None: all are new.
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
        """Numbers of the rows whose episode ended."""
        return np.flatnonzero(self.ended)


class EpisodeTracker:
    """Account of the episodes of a vector environment, whose batches may be parts of the agents.

    Args:
        vecenv: The vector environment.
    """

    def __init__(self, vecenv: Any) -> None:
        num_agents, num_rows = int(vecenv.num_agents), int(vecenv.agents_per_batch)
        self._flags = EpisodeFlags(num_agents, num_rows, vecenv.autoreset == "same_step")
        self._is_whole = num_rows == num_agents

    def reset(self) -> None:
        """Note that every agent begins an episode with its next observation."""
        self._flags.reset()

    def after(self, received: Received) -> Transitions:
        """Transitions of a batch that was received."""
        _, _, terminals, truncations, _, agent_ids, masks = received
        self._flags.note(agent_ids, terminals, truncations, masks)
        return Transitions(received, self._flags, self._index(agent_ids))

    def after_reset_of(self, agents: npt.NDArray[np.int64], received: Received) -> Transitions:
        """Transitions of a batch in which environments with these ``agents`` were reset, and nothing else happened."""
        *_, agent_ids, masks = received
        self._flags.note_reset(agent_ids, masks, agents)
        return Transitions(received, self._flags, self._index(agent_ids), is_partial=True)

    @property
    def idle(self) -> npt.NDArray[np.uint8]:
        """Agents that were absent at their latest observation, or whose episode was over; may be written."""
        return self._flags.idle

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> Rows:
        if self._is_whole:
            return slice(None)
        first, last = int(agent_ids[0]), int(agent_ids[-1])
        return slice(first, last + 1) if last - first + 1 == len(agent_ids) else agent_ids
