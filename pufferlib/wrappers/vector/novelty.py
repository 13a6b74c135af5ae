"""Bonus for new observations, for tasks whose rewards are too rare to be found by chance."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector._kernels import add_novelty
from pufferlib.wrappers.vector.base import VectorWrapper
from pufferlib.wrappers.vector.leaves import as_rows, field_names
from pufferlib.wrappers.vector.transitions import Transitions

__all__ = ["NoveltyReward"]

COUNTERS = 2**20  # observations whose hashes share a counter are counted together
SLOTS = 2**10  # marks of each agent for observations of its episode. Of two in one slot, the older is forgotten


class NoveltyReward(VectorWrapper):
    """Rewards plus a bonus for each observation that an agent sees for the first time in its episode.

    The bonus is ``coef / sqrt(n)``, if the agents have seen the observation ``n`` times in all episodes so far. The
    first observation of an episode gets none. Observations are told apart by a hash of their bytes, so they must be
    integers. Their counters take 4 MB, and the marks of each agent 4 kB.

    Sources: Strehl and Littman, "An Analysis of Model-Based Interval Estimation for Markov Decision Processes" (2008),
    for the bonus. Tang et al., "#Exploration" (2017), for counts of hashes. Zhang et al., "NovelD" (2021), for bonuses
    that are paid once per episode.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with observations of integers.
        coef: Bonus for an observation that no agent has seen before.

    Attributes:
        paid: Sum of the bonuses since this was set to 0.

    Raises:
        APIUsageError: ``coef`` is not above 0, or observations contain floating-point numbers.
    """

    def __init__(self, vecenv: AnyVectorEnv, coef: float = 0.01) -> None:
        super().__init__(vecenv)
        if not coef > 0:
            raise APIUsageError(f"NoveltyReward: coef must be above 0, got {coef}")
        _check_integers(vecenv)
        self._coef, self.paid = float(coef), 0.0
        self._counts = np.zeros(COUNTERS, np.uint32)
        self._episodes = np.zeros(vecenv.num_agents, np.uint32)
        self._seen = np.zeros((vecenv.num_agents, SLOTS), np.uint32)
        self.rewards = np.zeros(vecenv.agents_per_batch, np.float32)

    def transform(self, transitions: Transitions) -> None:
        """Count the observations and add the bonuses."""
        rows = np.ascontiguousarray(as_rows(transitions.observations)).view(np.uint8)
        acted, rewards = transitions.acted, transitions.rewards
        if transitions.reset_rows is not None:  # only some rows are new
            acted = np.zeros(len(rows), bool)
            rewards = np.where(transitions.reset_rows, np.float32(0), self.rewards)
        self.paid += add_novelty(
            rows, transitions.agent_ids, transitions.begins, acted, self._counts, self._episodes, self._seen,
            rewards, self.rewards, self._coef, self._is_training,
        )  # fmt: skip
        transitions.rewards = self.rewards

    def _settings(self) -> dict[str, Any]:
        return {"coef": self._coef}

    def _state(self) -> dict[str, Any]:
        return {"counts": self._counts}

    def _episode_arrays(self) -> dict[str, Array]:
        return {"episodes": self._episodes, "seen": self._seen}

    def _load(self, state: Mapping[str, Array]) -> None:
        self._counts[:] = state["counts"]


def _check_integers(vecenv: Any) -> None:
    """Raise APIUsageError if an observation contains floating-point numbers."""
    emulated = vecenv.emulated
    dtype = np.dtype(emulated["emulated_observation_dtype"] if emulated else vecenv.single_observation_space.dtype)
    for names in field_names(dtype):
        inner = dtype
        for name in names:
            inner = inner[name]
        if inner.base.kind == "f":
            raise APIUsageError(
                f"NoveltyReward, or train.novelty_coef: observations must be integers, got {inner.base}"
                f"{' in the field ' + '.'.join(names) if names else ''}: numbers that are hardly ever equal are always "
                "new; round them to integers in the environment"
            )
