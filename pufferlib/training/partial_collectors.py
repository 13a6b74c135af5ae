"""Collectors for batches of a part of the agents, and the choice among all."""

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.training.collector import Collector, Step, steps_of
from pufferlib.training.config import TrainConfig
from pufferlib.training.gpu_collector import make_gpu_collector
from pufferlib.training.rollout import Rollout

__all__ = ["HalvesCollector", "PartialCollector", "make_collector"]


def make_collector(
    vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
) -> "Collector":
    """Choose the collector for batches of all agents, for halves in turns, or for any parts; the arguments are theirs.

    Raises:
        APIUsageError: ``train.overlap`` is "envs", and batches are not halves of the agents.
    """
    is_whole = vecenv.agents_per_batch == vecenv.num_agents
    if is_whole and config.overlap != "envs" and generator.device.type == "cuda":
        return make_gpu_collector(vecenv, policy, rollout, config, generator)
    kind = Collector if is_whole else PartialCollector
    if config.overlap == "envs":
        _check_halves(vecenv)
        kind = HalvesCollector
    return kind(vecenv, policy, rollout, config, generator)


class PartialCollector(Collector):
    """``Collector`` where ``recv`` returns only part of the agents.

    Each agent contributes exactly ``horizon`` steps in a row. Those that have theirs go on acting, unrecorded,
    until the slowest is done.
    """

    def _open(self, rollout: Rollout) -> None:
        """Rows are chosen by index."""

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return agent_ids

    @torch.inference_mode()
    def collect(self) -> None:
        """See ``Collector``."""
        rollout, reports, horizon = self._rollout, self._rollout.reports, self._rollout.horizon
        distribution = self._policy.distribution
        taken = np.full(rollout.num_agents, -1)  # steps of the rollout, at each agent's latest observation
        while True:
            agents = self._batch.agent_ids
            taken[agents] += 1
            observations = torch.from_numpy(self._batch.observations).to(self._device)
            state = {name: memory[agents] for name, memory in self._state.items()}
            rows, _, who = _chosen(agents, taken, 0, 0)
            for name, memory in state.items():
                rollout.initial_state[name][who] = memory[rows]
            params, values = self._policy.forward_eval(observations, state)
            actions, log_probs, finite = self._drawn(params)
            self._check(finite, observations, state)
            rows, t, who = _chosen(agents, taken, 0, horizon)
            rollout.values[t, who] = values[rows]
            rows, t, who = _chosen(agents, taken, 0, horizon - 1)
            rollout.observations[t, who] = observations[rows].to(rollout.observations.device)
            rollout.actions[t, who] = actions[rows]
            rollout.log_probs[t, who] = log_probs[rows]
            reports.masks[t, who], reports.episode_starts[t, who] = self._counts()[rows], self._begins[rows]
            if taken.min() == horizon:
                break
            for name, memory in state.items():
                self._state[name][agents] = memory
            self._vecenv.send(distribution.to_env(actions.numpy(force=True)))
            rewards, agents = self._receive(), self._batch.agent_ids
            rows, t, who = _chosen(agents, taken, 0, horizon - 1)
            reports.rewards[t, who], reports.episode_ends[t, who] = rewards[rows], self._ended[agents[rows]]
            self.episodes.add(self._batch.infos)
        rollout.take_reports()
        self._check(bool(torch.isfinite(rollout.values.sum())), observations, state)

    def _drawn(self, params: Tensor) -> tuple[Tensor, Tensor, bool | Tensor]:
        """An action and the logarithm of its probability for each row, and whether ``params`` are numbers."""
        distribution, rows = self._policy.distribution, len(params)
        actions = torch.empty(rows, *distribution.shape, dtype=distribution.dtype, device=self._device)
        log_probs = torch.empty(rows, device=self._device)
        noise = distribution.noise((rows,), self._generator)
        return actions, log_probs, distribution.draw(params, noise, actions, log_probs)


class HalvesCollector(Collector):
    """``Collector`` for two halves of the agents in turns: while it acts for one, the other's environments step.

    Each half contributes exactly ``horizon`` steps in a row. The first one acts once more, unrecorded, before the last
    step of the second has come back; so in the next rollout the second is the first.

    Raises:
        APIUsageError: A batch is another half than the one whose turn it is.
    """

    def _open(self, rollout: Rollout) -> list[list[Step]]:
        """Views of each half, with a last step that keeps nothing but the value."""
        half = rollout.num_agents // 2
        self._halves = [slice(0, half), slice(half, 2 * half)]
        self._expected = -1
        steps = [steps_of(rollout, rows) for rows in self._halves]
        for each, rows in zip(steps, self._halves, strict=True):
            seen, done, log_probs = map(torch.empty_like, each[0][:3])
            arrays = [tensor.numpy() if tensor.is_cpu else None for tensor in (seen, done)]
            each.append(Step(seen, done, log_probs, rollout.values[-1, rows], *arrays))
        return steps

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> slice:
        half = int(agent_ids[0] > 0)
        if half == self._expected or agent_ids[0] not in (0, len(agent_ids)):
            raise APIUsageError(
                "train.overlap 'envs' needs batches that are the two halves of the agents in turns, got one that "
                f"begins with agent {agent_ids[0]}; make the environments with zero_copy=True and "
                "batch_size=num_envs // 2"
            )
        self._expected = half  # not to come again at once
        return self._halves[half]

    def reset(self, seed: int) -> None:
        """See ``Collector``."""
        self._expected = -1
        super().reset(seed)

    @torch.inference_mode()
    def collect(self) -> None:
        """See ``Collector``."""
        rollout, reports, distribution = self._rollout, self._rollout.reports, self._policy.distribution
        first = int(self._batch.agent_ids[0] > 0)
        noises = distribution.noise((2 * rollout.horizon + 2, rollout.num_agents // 2), self._generator).unbind()
        for turn, noise in enumerate(noises):
            t, half = turn // 2, (first + turn) % 2
            rows, step, is_recorded = self._halves[half], self._steps[half][t], t < rollout.horizon
            observations, state = self._see(step), {name: memory[rows] for name, memory in self._state.items()}
            if t == 0:
                for name, memory in state.items():
                    rollout.initial_state[name][rows] = memory
            kept = state if turn + 1 < len(noises) else {name: memory.clone() for name, memory in state.items()}
            params, values = self._policy.forward_eval(observations, kept)
            step.values.copy_(values)
            self._check(distribution.draw(params, noise, step.actions, step.log_probs), observations, kept)
            if turn + 1 == len(noises):
                break
            if is_recorded:
                reports.masks[t, rows], reports.episode_starts[t, rows] = self._counts(), self._begins
            for name, memory in kept.items():
                self._state[name][rows] = memory
            self._vecenv.send(distribution.to_env(step.chosen()))
            rewards = self._receive()
            if turn:
                earned, others = (turn - 1) // 2, self._halves[1 - half]
                reports.rewards[earned, others], reports.episode_ends[earned, others] = rewards, self._ended[others]
            self.episodes.add(self._batch.infos)
        rollout.take_reports()
        self._check(bool(torch.isfinite(rollout.values.sum())), observations, state)


def _chosen(
    agents: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], first: int, last: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows of the batch, steps and agents where ``first <= steps[agent] <= last``."""
    rows = np.flatnonzero((first <= steps[agents]) & (steps[agents] <= last))
    return rows, steps[agents[rows]], agents[rows]


def _check_halves(vecenv: Any) -> None:
    if 2 * vecenv.agents_per_batch != vecenv.num_agents:
        raise APIUsageError(
            f"train.overlap 'envs' needs batches of half of the agents, got {vecenv.agents_per_batch} of "
            f"{vecenv.num_agents}; pass batch_size=num_envs // 2 to pufferlib.vector.make, with backend "
            "'Multiprocessing' or 'Ray'"
        )
