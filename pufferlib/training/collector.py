"""Collecting: the policy acts in the environments, and what happens is written into the rollout.

``partial_collectors`` has those for batches of a part of the agents.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, State
from pufferlib.training.config import TrainConfig
from pufferlib.training.curriculum import StateCurriculum
from pufferlib.training.diagnosis import NonFiniteError
from pufferlib.training.episodes import EpisodeMeans, reports_means
from pufferlib.training.rollout import Rollout

__all__ = ["Collector", "CollectorStopped", "Step", "steps_of"]


class CollectorStopped(Exception):  # noqa: N818  # it tells of no error
    """Ends ``Collector.collect`` after ``stop``."""


EVERYONE = slice(None)  # an index that copies nothing


class _Received(NamedTuple):
    """The values that ``recv`` returns."""

    observations: npt.NDArray[np.generic]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    infos: Infos
    agent_ids: npt.NDArray[np.int64]
    masks: npt.NDArray[np.bool_]


class Step(NamedTuple):
    """The rows of a rollout that a step of all agents fills, where the rollout keeps them."""

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    observation_array: npt.NDArray[Any] | None  # the observations too, on a CPU, where copying arrays is quicker
    action_array: npt.NDArray[Any] | None  # the actions too, on a CPU

    def chosen(self) -> npt.NDArray[Any]:
        """The actions in the memory of the CPU."""
        return self.actions.numpy(force=True) if self.action_array is None else self.action_array


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
        has_reward: Whether a reward other than 0 was received since this was set to False.
        curriculum: Begins a share of the episodes elsewhere; None: all begin at their start.

    Raises:
        APIUsageError: The environments reset in another mode, or in one that does not fit them.
    """

    def __init__(
        self, vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
    ) -> None:
        _check_autoreset(vecenv)
        self.episodes = EpisodeMeans(reports_means(vecenv))
        self.curriculum: StateCurriculum | None = None
        self.reward_scale = config.reward_scale or 1.0
        self.has_reward = False
        self._vecenv, self._policy, self._config = vecenv, policy, config
        self._generator, self._device = generator, generator.device
        self._is_on_cpu = generator.device.type == "cpu"
        self._resets_next = vecenv.autoreset == "next_step"
        self._is_stopped = False
        self._views: dict[Rollout, Any] = {}
        self.use(rollout)
        self._absent = np.zeros(rollout.num_agents, bool)  # at each agent's latest observation
        self._ended = np.zeros(rollout.num_agents, bool)  # by each agent's latest action
        self._state: State  # of all agents
        self._batch: _Received
        self._agents: npt.NDArray[np.int64] | slice  # of the batch
        self._begins: npt.NDArray[np.bool_]  # rows of the batch that are the first an agent sees of an episode

    def reset(self, seed: int) -> None:
        """Start new episodes, seeded, and forget those that were running."""
        self._vecenv.async_reset(seed)
        if self.curriculum is not None:
            self.curriculum.forget_episodes()
        self._absent[:] = self._ended[:] = False
        self._state = self._policy.initial_state(self._rollout.num_agents, self._device)
        self._receive()

    def use(self, rollout: Rollout) -> None:
        """Fill ``rollout``, which has the sizes of the first one, from now on."""
        if rollout not in self._views:
            self._views[rollout] = self._open(rollout)
        self._rollout, self._steps = rollout, self._views[rollout]

    def stop(self) -> None:
        """Let ``collect``, in another thread, raise CollectorStopped after the step in progress."""
        self._is_stopped = True

    def _open(self, rollout: Rollout) -> Any:
        """Views of all that the loop writes."""
        return steps_of(rollout, EVERYONE)

    def _index(self, agent_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | slice:
        """Index of a batch's agents among all."""
        return EVERYONE

    def state_dict(self) -> dict[str, Any]:
        """Tensors that, with the states of the environments, say where the agents are in their episodes."""
        marks = {"absent": self._absent, "ended": self._ended, "begins": self._begins}
        found = {"memory": dict(self._state), **{name: torch.from_numpy(mark.copy()) for name, mark in marks.items()}}
        return found if self.curriculum is None else {**found, "curriculum": self.curriculum.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called; the environments have been reset, and then given their states."""
        for name, memory in state["memory"].items():
            self._state[name].copy_(memory)
        self._absent[:], self._ended[:] = state["absent"].cpu().numpy(), state["ended"].cpu().numpy()
        self._begins = state["begins"].cpu().numpy()
        if self.curriculum is not None:
            self.curriculum.load_state_dict(state["curriculum"])

    @torch.inference_mode()
    def collect(self) -> None:
        """Fill the rollout: ``horizon`` steps of every agent, and the value of the observation after the last."""
        rollout, reports, distribution = self._rollout, self._rollout.reports, self._policy.distribution
        for name, memory in self._state.items():
            rollout.initial_state[name].copy_(memory)
        noises = distribution.noise((rollout.horizon, rollout.num_agents), self._generator).unbind()
        if self.curriculum is not None:
            self.curriculum.begin_rollout()
        for t, (step, noise) in enumerate(zip(self._steps, noises, strict=True)):
            if self.curriculum is not None:
                self.curriculum.look(t)
            observations = self._see(step)
            params, values = self._policy.forward_eval(observations, self._state)
            step.values.copy_(values)
            self._check(distribution.draw(params, noise, step.actions, step.log_probs), observations, self._state)
            reports.masks[t], reports.episode_starts[t] = self._counts(), self._begins
            self._vecenv.send(distribution.to_env(step.chosen()))
            reports.rewards[t] = self._receive()
            reports.episode_ends[t] = self._ended
            self.episodes.add(self._batch.infos if self.curriculum is None else self._restart(self.curriculum))
        last = torch.from_numpy(self._batch.observations).to(self._device)
        state = {name: memory.clone() for name, memory in self._state.items()}  # the next rollout acts on it again
        rollout.values[-1] = self._policy.forward_eval(last, state)[1]
        rollout.take_reports()
        self._check(bool(torch.isfinite(rollout.values.sum())), last, state)

    def _see(self, step: Step) -> Tensor:
        """Write the observations of the batch into the rollout; returns them on the policy's device."""
        if step.observation_array is None:
            step.observations.copy_(torch.from_numpy(self._batch.observations))
        else:
            np.copyto(step.observation_array, self._batch.observations)
        return step.observations if self._is_on_cpu else step.observations.to(self._device)

    def _restart(self, curriculum: StateCurriculum) -> Infos:
        """Restart games whose episodes have ended; returns the infos of whole episodes."""
        infos = curriculum.counted(self._batch.infos, self._ended)
        curriculum.restart(self._ended)
        return infos

    def _check(self, finite: bool | Tensor, observations: Tensor, state: State) -> None:
        """Raise NonFiniteError unless the policy's outputs were numbers."""
        if not finite:
            raise NonFiniteError(
                "Collector: the policy's outputs must be finite, got NaN or infinity; "
                "look at losses/* in the metrics and lower train.learning_rate, or scale observations and rewards",
                observations,
                state,
                self._batch.agent_ids,
            )

    def _receive(self) -> npt.NDArray[np.float32]:
        """Wait for the next batch, and restart the memory of agents that begin an episode; returns the rewards.

        An agent that was absent begins anew when it comes back.
        """
        if self._is_stopped:
            raise CollectorStopped
        self._batch = batch = _Received(*self._vecenv.recv())
        agents = self._agents = self._index(batch.agent_ids)
        ended = batch.terminals | batch.truncations
        rewards = self._rewards()
        self._begins = (self._ended[agents] if self._resets_next else ended) | self._absent[agents]
        self._absent[agents], self._ended[agents] = ~batch.masks, ended
        if self._state and np.count_nonzero(self._begins):
            self._forget()
        return rewards

    def _forget(self) -> None:
        """Restart the memory of agents that begin an episode."""
        for memory in self._state.values():
            memory[torch.from_numpy(self._batch.agent_ids[self._begins])] = 0

    def _rewards(self) -> npt.NDArray[np.float32]:
        """Rewards of the batch: scaled, clipped, and with the value of what an episode cut off would have brought."""
        batch, limit = self._batch, self._config.reward_clip
        if not self.has_reward:
            self.has_reward = bool(np.count_nonzero(batch.rewards))
        rewards = batch.rewards * np.float32(self.reward_scale)
        if limit > 0:
            rewards.clip(-limit, limit, out=rewards)
        # Counting takes a tenth of the time of any().
        if np.count_nonzero(batch.truncations) and len(cut := np.flatnonzero(batch.truncations & ~batch.terminals)):
            self._bootstrap(rewards, cut)
        return rewards

    def _bootstrap(self, rewards: npt.NDArray[np.float32], cut: npt.NDArray[np.int64]) -> None:
        """Add to the rewards of the rows ``cut``, whose episodes were cut off, the value of what would follow."""
        state = {name: memory[self._batch.agent_ids[cut]] for name, memory in self._state.items()}
        last = torch.from_numpy(self._last_observations()[cut]).to(self._device)
        values = self._policy.forward_eval(last, state)[1]
        rewards[cut] += self._config.gamma * values.cpu().numpy()

    def _last_observations(self) -> npt.NDArray[Any]:
        """Observations of the batch, those after the last step of an episode included."""
        last: npt.NDArray[Any] = self._batch.observations if self._resets_next else self._vecenv.final_observations
        return last

    def _counts(self) -> npt.NDArray[np.bool_]:
        """Rows of the batch whose next action is one: the agent is there, and the step does not only reset."""
        batch = self._batch
        return batch.masks & ~self._ended[self._agents] if self._resets_next else batch.masks


def steps_of(rollout: Rollout, rows: slice) -> list[Step]:
    """Views of ``rows`` of each step."""
    fields = rollout.observations, rollout.actions, rollout.log_probs, rollout.values[:-1]
    views = [field[:, rows].unbind() for field in fields]
    arrays = [field[:, rows].numpy() if field.is_cpu else [None] * rollout.horizon for field in fields[:2]]
    return [Step(*parts) for parts in zip(*views, *arrays, strict=True)]


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
