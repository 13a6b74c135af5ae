"""Collecting: the policy acts in the environments, and what happens is written into the rollout."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, State
from pufferlib.train.config import TrainConfig
from pufferlib.train.diagnosis import NonFiniteError
from pufferlib.train.episodes import EpisodeMeans
from pufferlib.train.rollout import Rollout

__all__ = ["Collector", "PartialCollector", "make_collector"]


def make_collector(
    vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
) -> "Collector":
    """Choose the collector for batches of all agents, or for partial ones; the arguments are theirs."""
    is_whole = vecenv.agents_per_batch == vecenv.num_agents
    return (Collector if is_whole else PartialCollector)(vecenv, policy, rollout, config, generator)


class _Received(NamedTuple):
    """The values that ``recv`` returns."""

    observations: npt.NDArray[np.generic]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    infos: Infos
    agent_ids: npt.NDArray[np.int64]
    masks: npt.NDArray[np.bool_]


class Collector:
    """Acts with all agents at once, on the observations as they lie in the rollout.

    The batch received last is kept: it is the first of the next rollout.

    With autoreset "next_step" the step after the end of an episode only resets. It takes its place in the
    rollout, since all agents have equally many, but is masked.

    Args:
        vecenv: The environments, with autoreset "same_step", which wastes no step, or "next_step".
        policy: Chooses the actions.
        rollout: Is filled.
        config: ``gamma``, ``reward_scale`` and ``reward_clip`` are read.
        generator: Source of the actions' randomness, on the rollout's device.

    Attributes:
        episodes: Means over the episodes that ended.
        reward_scale: Factor of the rewards; 1 at first where the settings say 0.

    Raises:
        APIUsageError: The environments reset in another mode, or in one that does not fit them.
    """

    def __init__(
        self, vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
    ) -> None:
        _check_autoreset(vecenv)
        self.episodes = EpisodeMeans()
        self.reward_scale = config.reward_scale or 1.0
        self._vecenv, self._policy, self._rollout, self._config = vecenv, policy, rollout, config
        self._generator, self._device = generator, generator.device
        self._resets_next = vecenv.autoreset == "next_step"
        self._absent = np.zeros(rollout.num_agents, bool)  # at each agent's latest observation
        self._ended = np.zeros(rollout.num_agents, bool)  # by each agent's latest action
        self._state: State  # of all agents
        self._batch: _Received
        self._begins: npt.NDArray[np.bool_]  # rows of the batch that are the first an agent sees of an episode

    def reset(self, seed: int) -> None:
        """Start new episodes, seeded, and forget those that were running."""
        self._vecenv.async_reset(seed)
        self._absent[:] = self._ended[:] = False
        self._state = self._policy.initial_state(self._rollout.num_agents, self._device)
        self._receive()

    def state_dict(self) -> dict[str, Any]:
        """Tensors that, with the states of the environments, say where the agents are in their episodes."""
        marks = {"absent": self._absent, "ended": self._ended, "begins": self._begins}
        return {"memory": dict(self._state), **{name: torch.from_numpy(mark.copy()) for name, mark in marks.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called; the environments have been reset, and then given their states."""
        for name, memory in state["memory"].items():
            self._state[name].copy_(memory)
        self._absent[:], self._ended[:] = state["absent"].cpu().numpy(), state["ended"].cpu().numpy()
        self._begins = state["begins"].cpu().numpy()

    @torch.inference_mode()
    def collect(self) -> None:
        """Fill the rollout: ``horizon`` steps of every agent, and the value of the observation after the last."""
        rollout, distribution = self._rollout, self._policy.distribution
        for name, memory in self._state.items():
            rollout.initial_state[name].copy_(memory)
        for t in range(rollout.horizon):
            observations = rollout.observations[t].copy_(torch.from_numpy(self._batch.observations))
            params, values, actions = self._act(observations, self._state)
            rollout.actions[t], rollout.values[t] = actions, values
            rollout.log_probs[t] = distribution.log_prob(params, actions)
            rollout.masks[t] = torch.from_numpy(self._counts())
            rollout.episode_starts[t] = torch.from_numpy(self._begins)
            self._vecenv.send(distribution.to_env(actions))
            rollout.rewards[t] = self._receive()
            rollout.episode_ends[t] = torch.from_numpy(self._ended)
            self.episodes.add(self._batch.infos)
        last = torch.from_numpy(self._batch.observations).to(self._device)
        state = {name: memory.clone() for name, memory in self._state.items()}  # the next rollout acts on it again
        rollout.values[-1] = self._act(last, state)[1]

    def _act(self, observations: Tensor, state: State) -> tuple[Tensor, Tensor, Tensor]:
        """Distribution params, values and sampled actions, a row for each observation; ``state`` moves on."""
        params, values = self._policy.forward_eval(observations, state)
        if not torch.isfinite(params.sum() + values.sum()):
            raise NonFiniteError(
                "Collector: the policy's outputs must be finite, got NaN or infinity; "
                "look at losses/* in the metrics and lower train.learning_rate, or scale observations and rewards",
                observations,
                state,
                self._batch.agent_ids,
            )
        return params, values, self._policy.distribution.sample(params, self._generator)

    def _receive(self) -> Tensor:
        """Wait for the next batch, and restart the memory of agents that begin an episode; returns the rewards.

        An agent that was absent begins anew when it comes back.
        """
        self._batch = batch = _Received(*self._vecenv.recv())
        agents, ended = batch.agent_ids, batch.terminals | batch.truncations
        rewards = self._rewards()
        self._begins = (self._ended[agents] if self._resets_next else ended) | self._absent[agents]
        self._absent[agents], self._ended[agents] = ~batch.masks, ended
        if self._state and self._begins.any():
            for memory in self._state.values():
                memory[agents[self._begins]] = 0
        return rewards

    def _rewards(self) -> Tensor:
        """Rewards of the batch: scaled, clipped, and with the value of what an episode cut off would have brought."""
        batch, limit = self._batch, self._config.reward_clip
        rewards = torch.from_numpy(batch.rewards).to(self._device) * self.reward_scale
        if limit > 0:
            rewards.clamp_(-limit, limit)
        cut = np.flatnonzero(batch.truncations & ~batch.terminals)
        if len(cut):
            last = batch.observations if self._resets_next else self._vecenv.final_observations
            state = {name: memory[batch.agent_ids[cut]] for name, memory in self._state.items()}
            values = self._policy.forward_eval(torch.from_numpy(last[cut]).to(self._device), state)[1]
            rewards[cut] += self._config.gamma * values
        return rewards

    def _counts(self) -> npt.NDArray[np.bool_]:
        """Rows of the batch whose next action is one: the agent is there, and the step does not only reset."""
        batch = self._batch
        return batch.masks & ~self._ended[batch.agent_ids] if self._resets_next else batch.masks


class PartialCollector(Collector):
    """``Collector`` where ``recv`` returns only part of the agents.

    Each agent contributes exactly ``horizon`` steps in a row. Those that have theirs go on acting, unrecorded,
    until the slowest is done.
    """

    @torch.inference_mode()
    def collect(self) -> None:
        """See ``Collector``."""
        rollout, distribution, horizon = self._rollout, self._policy.distribution, self._rollout.horizon
        steps = np.full(rollout.num_agents, -1)  # of the rollout, at each agent's latest observation
        while True:
            agents = self._batch.agent_ids
            steps[agents] += 1
            observations = torch.from_numpy(self._batch.observations).to(self._device)
            state = {name: memory[agents] for name, memory in self._state.items()}
            rows, _, who = _chosen(agents, steps, 0, 0)
            for name, memory in state.items():
                rollout.initial_state[name][who] = memory[rows]
            params, values, actions = self._act(observations, state)
            rows, t, who = _chosen(agents, steps, 0, horizon)
            rollout.values[t, who] = values[rows]
            rows, t, who = _chosen(agents, steps, 0, horizon - 1)
            rollout.observations[t, who], rollout.actions[t, who] = observations[rows], actions[rows]
            rollout.log_probs[t, who] = distribution.log_prob(params, actions)[rows]
            rollout.masks[t, who] = torch.from_numpy(self._counts()).to(self._device)[rows]
            rollout.episode_starts[t, who] = torch.from_numpy(self._begins).to(self._device)[rows]
            if steps.min() == horizon:
                return
            for name, memory in state.items():
                self._state[name][agents] = memory
            self._vecenv.send(distribution.to_env(actions))
            rewards, agents = self._receive(), self._batch.agent_ids
            rows, t, who = _chosen(agents, steps, 0, horizon - 1)
            rollout.rewards[t, who] = rewards[rows]
            rollout.episode_ends[t, who] = torch.from_numpy(self._ended[agents]).to(self._device)[rows]
            self.episodes.add(self._batch.infos)


def _chosen(
    agents: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], first: int, last: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Rows of the batch, steps and agents where ``first <= steps[agent] <= last``."""
    rows = np.flatnonzero((first <= steps[agents]) & (steps[agents] <= last))
    return torch.from_numpy(rows), torch.from_numpy(steps[agents[rows]]), torch.from_numpy(agents[rows])


def _check_autoreset(vecenv: Any) -> None:
    if vecenv.autoreset not in ("same_step", "next_step"):
        raise APIUsageError(
            f"Collector: vecenv.autoreset must be 'same_step' or 'next_step', got {vecenv.autoreset!r}; "
            "pass autoreset='same_step' to pufferlib.vector.make"
        )
    if vecenv.autoreset == "next_step" and getattr(vecenv.driver_env, "agents_end", False):
        raise APIUsageError(
            "Collector: an environment whose agents end one by one begins their next episodes in the same step, "
            "got autoreset='next_step'; pass autoreset='same_step'"
        )
