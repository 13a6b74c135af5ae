"""Transitions of one batch, and the account of episodes that says which of its rows acted, ended and began."""

from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.buffers import Array
from pufferlib.env import Infos, Received

__all__ = ["EpisodeTracker", "Rows", "Transitions"]

Flags = npt.NDArray[np.bool_]
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

    __slots__ = (
        "acted",
        "agent_ids",
        "agents",
        "any_begins",
        "any_ended",
        "begins",
        "ended",
        "infos",
        "masks",
        "observations",
        "reset_rows",
        "rewards",
        "terminals",
        "truncations",
    )

    agents: Rows
    acted: Flags | None
    ended: Flags
    begins: Flags
    any_ended: bool
    any_begins: bool

    def __init__(self, received: Received, reset_rows: Flags | None = None) -> None:
        self.observations: Array
        self.rewards: npt.NDArray[np.float32]
        self.infos: Infos
        (
            self.observations,
            self.rewards,
            self.terminals,
            self.truncations,
            self.infos,
            self.agent_ids,
            self.masks,
        ) = received
        self.reset_rows = reset_rows


class EpisodeTracker:
    """Account of the episodes of all agents, for batches that may be parts of them.

    Args:
        vecenv: The vector environment.
    """

    def __init__(self, vecenv: Any) -> None:
        num_agents = int(vecenv.num_agents)
        self._vecenv = vecenv
        self._is_whole = vecenv.agents_per_batch == num_agents
        self._same_step = vecenv.autoreset == "same_step"
        self._is_new = np.ones(num_agents, bool)  # no observation since the reset
        self._idle = np.zeros(num_agents, bool)  # at the latest observation: absent, or the episode is over
        self._is_plain = False  # no agent is new or idle
        self._no_rows = np.zeros(vecenv.agents_per_batch, bool)

    def reset(self) -> None:
        """Note that every agent begins an episode with its next observation."""
        self._is_new[:] = True
        self._is_plain = False

    def after_reset_of(self, agents: npt.NDArray[np.int64], received: Received) -> Transitions:
        """Transitions of a batch in which environments with these ``agents`` were reset, and nothing else happened."""
        found = Transitions(received, np.isin(received[5], agents))
        found.agents = self._index(found.agent_ids)
        found.acted = found.ended = self._no_rows
        found.any_ended, found.any_begins = False, bool(len(agents))
        found.begins = found.reset_rows  # type: ignore[assignment]
        self._is_new[agents] = False
        self._idle[found.agents] = np.where(found.begins, ~found.masks, self._idle[found.agents])
        self._is_plain = False
        return found

    def after(self, received: Received) -> Transitions:
        """Transitions of a batch that was received."""
        found = Transitions(received)
        agents = found.agents = self._index(found.agent_ids)
        ended: Flags = found.terminals | found.truncations
        found.ended, found.any_ended = ended, bool(ended.any())
        if self._is_plain and found.masks.all():
            found.acted, found.begins = None, ended if self._same_step else self._no_rows
            found.any_begins = self._same_step and found.any_ended
            if found.any_ended and not self._same_step:
                self._idle[agents] = ended
                self._is_plain = False
            return found
        new, idle, masks = self._is_new[agents], self._idle[agents], found.masks
        ended &= ~new  # what stands there is older than the reset
        found.any_ended = bool(ended.any())
        found.acted = ~(new | idle)
        found.begins = ((idle | ended if self._same_step else idle) & masks) | new
        found.any_begins = bool(found.begins.any())
        self._is_new[agents] = False
        self._idle[agents] = ~masks if self._same_step else ~masks | ended
        self._is_plain = not (self._idle.any() or self._is_new.any())
        return found

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> Rows:
        if self._is_whole:
            return slice(None)
        first, last = int(agent_ids[0]), int(agent_ids[-1])
        return slice(first, last + 1) if last - first + 1 == len(agent_ids) else agent_ids
