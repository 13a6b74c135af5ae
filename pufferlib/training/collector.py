"""Collector: a policy acts in the environments, and every step is written into the rollout."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, State
from pufferlib.settings.config import TrainConfig
from pufferlib.training.diagnosis import NonFiniteError
from pufferlib.training.episodes import EpisodeMeans, reports_means
from pufferlib.training.rollout import CollectingStopped, Rollout
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["Collector", "Step", "steps_of"]


EVERYONE = slice(None)  # indexing with a slice does not copy


class _Received(NamedTuple):
    """Values that ``recv`` returns."""

    observations: npt.NDArray[np.generic]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    infos: Infos
    agent_ids: npt.NDArray[np.int64]
    masks: npt.NDArray[np.bool_]


class Step(NamedTuple):
    """Rows of a rollout that one step of all agents fills. The fields are views of the rollout."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    observation_array: npt.NDArray[Any] | None  # observations as an array on a CPU, where copying arrays is faster
    action_array: npt.NDArray[Any] | None  # actions as an array on a CPU

    def chosen(self) -> npt.NDArray[Any]:
        """Return the actions in the memory of the CPU."""
        return self.actions.numpy(force=True) if self.action_array is None else self.action_array


class Collector:
    """Collector that acts for all agents at once, on observations stored in the rollout.

    The last batch received is kept. It is the first batch of the next rollout.

    With autoreset "next_step", the step after the end of an episode only resets. Every agent has the same number of
    steps, so the rollout contains this step, but it is masked.

    Args:
        vecenv: Environments with autoreset "next_step", or "same_step", which wastes no steps.
        policy: Policy that chooses the actions.
        rollout: Rollout to fill.
        config: Settings, of which ``gamma``, ``reward_scale`` and ``reward_clip`` are read.
        generator: Random number generator for the actions, on the device of the rollout.

    Attributes:
        vecenv: Environments.
        episodes: Means over the episodes that ended.
        reward_scale: Factor of the rewards. The initial value is 1 if ``reward_scale`` is 0.
        has_reward: Whether a reward other than 0 was received since this was set to False.

    Raises:
        APIUsageError: The environments have another autoreset mode, or one that does not fit them.
    """

    def __init__(
        self, vecenv: AnyVectorEnv, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
    ) -> None:
        _check_autoreset(vecenv)
        self.episodes = EpisodeMeans(reports_means(vecenv))
        self.reward_scale = config.reward_scale or 1.0
        self.has_reward = False
        self.vecenv: Any = vecenv
        self._policy, self._config = policy, config
        self._generator, self._device = generator, generator.device
        self._is_on_cpu = generator.device.type == "cpu"
        self._resets_next = vecenv.autoreset == AutoresetMode.NEXT_STEP
        self._is_stopped = False
        self._rollout = rollout
        self._views: dict[Rollout, list[Step]] = {}
        self._absent = np.zeros(rollout.num_agents, bool)  # whether each agent was absent at its latest observation
        self._ended = np.zeros(rollout.num_agents, bool)  # whether each agent's latest action ended its episode
        self._state: State  # memory of all agents
        self._batch: _Received
        self._agents: npt.NDArray[np.int64] | slice  # agents of the batch
        self._is_episode_start: npt.NDArray[np.bool_]  # rows of the batch with the first observation of an episode

    def reset(self, seed: int) -> None:
        """Start new episodes with this seed. The running episodes are discarded."""
        self.vecenv.async_reset(seed)
        self._absent[:] = self._ended[:] = False
        self._state = self._policy.initial_state(self._rollout.num_agents, self._device)
        self._receive()

    def use(self, rollout: Rollout) -> None:
        """Fill ``rollout`` from now on. It must have the sizes of the first rollout."""
        self._rollout = rollout

    def stop(self) -> None:
        """Make ``collect``, which runs in another thread, raise CollectingStopped after the step in progress."""
        self._is_stopped = True

    def take_pending(self) -> None:
        """Add the episodes that ended since the last reports of C environments, which report at intervals.

        Environments that are still stepping, with batches of part of them, are left out.
        """
        if self.vecenv.driver_env.emulated:
            return
        of_batch: dict[str, Any] = {}
        if self.vecenv.agents_per_batch < self.vecenv.num_agents:
            agents_per_env = self.vecenv.num_agents // self.vecenv.num_envs
            of_batch = {"env_ids": np.unique(self._batch.agent_ids // agents_per_env)}
        for infos in self.vecenv.call("pending_infos", **of_batch):
            self.episodes.add(infos)

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
        """Return the index of a batch's agents among all agents."""
        return EVERYONE

    def state_dict(self) -> dict[str, Any]:
        """Return the tensors that, together with the states of the environments, describe the running episodes."""
        marks = {"absent": self._absent, "ended": self._ended, "begins": self._is_episode_start}
        return {"memory": dict(self._state), **{name: torch.from_numpy(mark.copy()) for name, mark in marks.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore ``state_dict``. Reset the environments and restore their states first."""
        for name, memory in state["memory"].items():
            self._state[name].copy_(memory)
        self._absent[:], self._ended[:] = state["absent"].cpu().numpy(), state["ended"].cpu().numpy()
        self._is_episode_start = state["begins"].cpu().numpy()

    @torch.inference_mode()
    def collect(self) -> None:
        """Fill the rollout: ``horizon`` steps of every agent, and the value of the observation after the last step."""
        rollout, reports, distribution = self._rollout, self._rollout.reports, self._policy.distribution
        self._begin(rollout)
        noises = distribution.noise((rollout.horizon, rollout.num_agents), self._generator).unbind()
        for t, (step, noise) in enumerate(zip(self._steps(rollout), noises, strict=True)):
            observations = self._store_observations(step)
            params, values = self._policy.forward_eval(observations, self._state)
            step.values.copy_(values)
            self._check(distribution.draw(params, noise, step.actions, step.log_probs), observations, self._state)
            reports.masks[t], reports.episode_starts[t] = self._counted_rows(), self._is_episode_start
            self.vecenv.send(distribution.to_env(step.chosen()))
            reports.rewards[t] = self._receive()
            reports.episode_ends[t] = self._ended
            self.episodes.add(self._batch.infos)
        self._finish(rollout)

    def _steps(self, rollout: Rollout) -> list[Step]:
        """Return views of all agents for each step. They are made once for each rollout."""
        if rollout not in self._views:
            self._views[rollout] = steps_of(rollout, EVERYONE)
        return self._views[rollout]

    def _begin(self, rollout: Rollout) -> None:
        """Store the memory that all agents have before the first step."""
        for name, memory in self._state.items():
            rollout.initial_state[name].copy_(memory)

    def _finish(self, rollout: Rollout) -> None:
        """Complete the rollout: compute the values after the last step, and take the environments' reports."""
        last = torch.from_numpy(self._batch.observations).to(self._device)
        state = {name: memory.clone() for name, memory in self._state.items()}  # the next rollout starts from it
        rollout.values[-1] = self._policy.forward_eval(last, state)[1]
        rollout.take_reports()
        self._add_values(rollout)
        self._check(bool(torch.isfinite(rollout.values.sum())), last, state)

    def _add_values(self, rollout: Rollout) -> None:
        """Do nothing, because ``_bootstrap`` has added the values of the last observations."""

    def _store_observations(self, step: Step) -> Tensor:
        """Write the observations of the batch into the rollout. Return them on the policy's device."""
        if step.observation_array is None:
            step.observations.copy_(torch.from_numpy(self._batch.observations))
        else:
            np.copyto(step.observation_array, self._batch.observations)
        return step.observations if self._is_on_cpu else step.observations.to(self._device)

    def _check(self, finite: bool | Tensor, observations: Tensor, state: State) -> None:
        """Raise NonFiniteError unless the policy's outputs were finite."""
        if not finite:
            raise NonFiniteError(
                "Collector: the policy's outputs must be finite, got NaN or infinity; "
                "look at losses/* in the metrics and lower train.learning_rate, or scale observations and rewards",
                observations,
                state,
                self._batch.agent_ids,
            )

    def _receive(self) -> npt.NDArray[np.float32]:
        """Wait for the next batch, clear the memory of agents that start an episode, and return the rewards.

        An agent that was absent starts a new episode when it comes back.
        """
        if self._is_stopped:
            raise CollectingStopped
        self._batch = batch = _Received(*self.vecenv.recv())
        agents = self._agents = self._index(batch.agent_ids)
        ended = batch.terminals | batch.truncations
        rewards = self._rewards()
        self._is_episode_start = (self._ended[agents] if self._resets_next else ended) | self._absent[agents]
        self._absent[agents], self._ended[agents] = ~batch.masks, ended
        if self._state and np.count_nonzero(self._is_episode_start):
            self._clear_memory()
        return rewards

    def _clear_memory(self) -> None:
        """Clear the memory of agents that start an episode."""
        (starts,) = self._on_device(self._batch.agent_ids[self._is_episode_start])
        for memory in self._state.values():
            memory[starts] = 0

    def _on_device(self, *indices: npt.NDArray[np.int64]) -> Sequence[Tensor]:
        """Copy indices to the policy's device, all at once."""
        return torch.split(torch.from_numpy(np.concatenate(indices)).to(self._device), [len(each) for each in indices])

    def _rewards(self) -> npt.NDArray[np.float32]:
        """Return the rewards of the batch, scaled and clipped.

        Rewards of steps that truncated an episode include the value of the last observation.
        """
        batch, limit = self._batch, self._config.reward_clip
        if not self.has_reward:
            self.has_reward = bool(np.count_nonzero(batch.rewards))
        rewards = batch.rewards * np.float32(self.reward_scale)
        if limit > 0:
            rewards.clip(-limit, limit, out=rewards)
        # count_nonzero() takes a tenth of the time of any().
        if np.count_nonzero(batch.truncations) and len(cut := np.flatnonzero(batch.truncations & ~batch.terminals)):
            self._bootstrap(rewards, cut)
        return rewards

    def _bootstrap(self, rewards: npt.NDArray[np.float32], cut: npt.NDArray[np.int64]) -> None:
        """Add the value of the last observation to the rewards of the rows ``cut``, whose episodes were truncated."""
        state = {name: memory[self._batch.agent_ids[cut]] for name, memory in self._state.items()}
        last = torch.from_numpy(self._last_observations()[cut]).to(self._device)
        values = self._policy.forward_eval(last, state)[1]
        rewards[cut] += self._config.gamma * values.cpu().numpy()

    def _last_observations(self) -> npt.NDArray[Any]:
        """Return the observations after the step, including the final observations of episodes that ended."""
        last: npt.NDArray[Any] = self._batch.observations if self._resets_next else self.vecenv.final_observations
        return last

    def _counted_rows(self) -> npt.NDArray[np.bool_]:
        """Return the rows of the batch whose next action counts.

        These are agents that are present, unless the step only resets.
        """
        batch = self._batch
        return batch.masks & ~self._ended[self._agents] if self._resets_next else batch.masks


def steps_of(rollout: Rollout, rows: slice) -> list[Step]:
    """Return views of ``rows`` for each step."""
    fields = rollout.observations, rollout.actions, rollout.log_probs, rollout.values[:-1]
    views = [field[:, rows].unbind() for field in fields]
    arrays = [field[:, rows].numpy() if field.is_cpu else [None] * rollout.horizon for field in fields[:2]]
    return [Step(*parts) for parts in zip(*views, *arrays, strict=True)]


def _check_autoreset(vecenv: Any) -> None:
    if vecenv.autoreset not in (AutoresetMode.SAME_STEP, AutoresetMode.NEXT_STEP):
        raise APIUsageError(
            f"Collector: vecenv.autoreset must be 'same_step' or 'next_step', got {vecenv.autoreset!r}; "
            "pass autoreset='same_step' to pufferlib.vector.make"
        )
    if vecenv.autoreset == AutoresetMode.NEXT_STEP and getattr(vecenv.driver_env, "agents_end", False):
        raise APIUsageError(
            "Collector: an environment whose agents end one by one needs autoreset='same_step', got 'next_step'; "
            "pass autoreset='same_step' to pufferlib.vector.make"
        )
