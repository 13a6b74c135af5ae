"""Collectors for environments whose batches are part of the agents, so that the others step meanwhile."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training.collector import Collector, Step, steps_of
from pufferlib.training.rollout import Rollout
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["HalvesCollector", "PartialCollector"]


class PartialCollector(Collector):
    """Collector for environments whose ``recv`` returns only some of the agents.

    Each agent contributes exactly ``horizon`` consecutive steps. Agents that have enough continue to act, unrecorded,
    until the slowest agent is done.
    """

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return agent_ids

    @override
    @torch.inference_mode()
    def collect(self) -> None:
        rollout, reports, horizon = self._rollout, self._rollout.reports, self._rollout.horizon
        distribution = self._policy.distribution
        taken = np.full(rollout.num_agents, -1)  # steps of the rollout, at each agent's latest observation
        while True:
            agents = self._batch.agent_ids
            taken[agents] += 1
            batch = torch.from_numpy(self._batch.observations)
            observations = batch.to(self._device)
            begun, valued, (rows, t, chosen) = (_chosen(agents, taken, 0, last) for last in (0, horizon, horizon - 1))
            index, *parts = self._on_device(agents, *begun, *valued, rows, t, chosen)
            state = {name: memory[index] for name, memory in self._state.items()}
            begun_rows, _, begun_agents = parts[:3]
            valued_rows, valued_steps, valued_agents = parts[3:6]
            recorded_rows, recorded_steps, recorded_agents = parts[6:]
            for name, memory in state.items():
                rollout.initial_state[name][begun_agents] = memory[begun_rows]
            params, values = self._policy.forward_eval(observations, state)
            actions, log_probs, finite = self._drawn(params)
            self._check(finite, observations, state)
            rollout.values[valued_steps, valued_agents] = values[valued_rows]
            place = recorded_steps, recorded_agents
            if rollout.observations.device == self._device:
                rollout.observations[place] = observations[recorded_rows]
            else:
                rollout.observations[t, chosen] = batch[rows]
            rollout.actions[place] = actions[recorded_rows]
            rollout.log_probs[place] = log_probs[recorded_rows]
            reports.masks[t, chosen], reports.episode_starts[t, chosen] = (
                self._counted_rows()[rows],
                self._is_episode_start[rows],
            )
            if taken.min() == horizon:
                break
            for name, memory in state.items():
                self._state[name][index] = memory
            self.vecenv.send(distribution.to_env(actions.numpy(force=True)))
            rewards, agents = self._receive(), self._batch.agent_ids
            rows, t, chosen = _chosen(agents, taken, 0, horizon - 1)
            reports.rewards[t, chosen], reports.episode_ends[t, chosen] = rewards[rows], self._ended[agents[rows]]
            self.episodes.add(self._batch.infos)
        rollout.take_reports()
        self._check(bool(torch.isfinite(rollout.values.sum())), observations, state)

    def _drawn(self, params: Tensor) -> tuple[Tensor, Tensor, bool | Tensor]:
        """Return an action and its log-probability for each row, and whether ``params`` are finite."""
        distribution, rows = self._policy.distribution, len(params)
        actions = torch.empty(rows, *distribution.shape, dtype=distribution.dtype, device=self._device)
        log_probs = torch.empty(rows, dtype=torch.float32, device=self._device)
        noise = distribution.noise((rows,), self._generator)
        return actions, log_probs, distribution.draw(params, noise, actions, log_probs)


class HalvesCollector(Collector):
    """Collector that alternates between two halves of the agents. While it acts for one, the other half steps.

    Each half contributes exactly ``horizon`` consecutive steps. The first half acts once more, unrecorded, before the
    last step of the second half arrives. Therefore the halves swap roles in the next rollout.

    Raises:
        APIUsageError: A batch is not the half whose turn it is.
    """

    def __init__(
        self, vecenv: AnyVectorEnv, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
    ) -> None:
        super().__init__(vecenv, policy, rollout, config, generator)
        half = rollout.num_agents // 2
        self._halves = [slice(0, half), slice(half, 2 * half)]
        self._expected = -1
        self._views_of_halves: dict[Rollout, list[list[Step]]] = {}

    def _steps_of_halves(self, rollout: Rollout) -> list[list[Step]]:
        """Return views of each half for each step. They are made once for each rollout.

        An additional last step stores only the value.
        """
        if rollout not in self._views_of_halves:
            steps = [steps_of(rollout, rows) for rows in self._halves]
            for each, rows in zip(steps, self._halves, strict=True):
                seen, done, log_probs = map(torch.empty_like, each[0][:3])
                arrays = [tensor.numpy() if tensor.is_cpu else None for tensor in (seen, done)]
                each.append(Step(seen, done, log_probs, rollout.values[-1, rows], *arrays))
            self._views_of_halves[rollout] = steps
        return self._views_of_halves[rollout]

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> slice:
        half = int(agent_ids[0] > 0)
        if half == self._expected or agent_ids[0] not in (0, len(agent_ids)):
            raise APIUsageError(
                "train.overlap 'envs' needs batches that alternate between the two halves of the agents, got one that "
                f"starts with agent {agent_ids[0]}; make the environments with zero_copy=True and "
                "batch_size=num_envs // 2"
            )
        self._expected = half  # the same half must not come twice in a row
        return self._halves[half]

    @override
    def reset(self, seed: int) -> None:
        self._expected = -1
        super().reset(seed)

    @override
    @torch.inference_mode()
    def collect(self) -> None:
        rollout, reports, distribution = self._rollout, self._rollout.reports, self._policy.distribution
        steps, first = self._steps_of_halves(rollout), int(self._batch.agent_ids[0] > 0)
        noises = distribution.noise((2 * rollout.horizon + 2, rollout.num_agents // 2), self._generator).unbind()
        for turn, noise in enumerate(noises):
            # Even turns act for the half whose batch came first, odd turns for the other half.
            t, half = turn // 2, (first + turn) % 2
            rows, step, is_recorded = self._halves[half], steps[half][t], t < rollout.horizon
            observations, state = (
                self._store_observations(step),
                {name: memory[rows] for name, memory in self._state.items()},
            )
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
                reports.masks[t, rows], reports.episode_starts[t, rows] = self._counted_rows(), self._is_episode_start
            for name, memory in kept.items():
                self._state[name][rows] = memory
            self.vecenv.send(distribution.to_env(step.chosen()))
            rewards = self._receive()
            # The batch received now is the result of the previous turn.
            if turn:
                earned, others = (turn - 1) // 2, self._halves[1 - half]
                reports.rewards[earned, others], reports.episode_ends[earned, others] = rewards, self._ended[others]
            self.episodes.add(self._batch.infos)
        rollout.take_reports()
        self._check(bool(torch.isfinite(rollout.values.sum())), observations, state)


def _chosen(
    agents: npt.NDArray[np.int64], steps: npt.NDArray[np.int64], first: int, last: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of the batch, steps and agents for which ``first <= steps[agent] <= last``."""
    rows = np.flatnonzero((first <= steps[agents]) & (steps[agents] <= last))
    return rows, steps[agents[rows]], agents[rows]
