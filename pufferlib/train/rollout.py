"""Experience: T steps of every agent, how environments fill them, and how minibatches are drawn."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box
from torch import Tensor

from pufferlib.env import Infos
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Policy, State
from pufferlib.train.config import TrainConfig
from pufferlib.train.episodes import EpisodeMeans

__all__ = ["Collector", "Minibatch", "Rollout"]


@dataclass(frozen=True)
class Minibatch:
    """Segments of ``steps`` steps (1 without memory); every field is ``(steps, rows, ...)``.

    Attributes:
        observations: In the dtype of the space.
        actions: What was done.
        log_probs: Logarithm of its probability then.
        values: The estimates then.
        advantages: Not yet normalised.
        returns: What the values should have been.
        mask: True where the agent was there and its action was one; None where that holds for all.
        state: Memory before the first step, ``(rows, ...)`` each.
        episode_starts: True where an episode begins; None without memory.
    """

    observations: Tensor
    actions: Tensor
    log_probs: Tensor
    values: Tensor
    advantages: Tensor
    returns: Tensor
    mask: Tensor | None
    state: State
    episode_starts: Tensor | None


class Rollout:
    """The storage of one update, time-major: ``(horizon, num_agents, ...)``, allocated once.

    Args:
        vecenv: Gives the number of agents and the shape of an observation.
        policy: Gives the shape of an action, and the memory where it has one.
        horizon: Steps of each agent.
        minibatch_size: Agent-steps of one minibatch; must divide ``horizon * num_agents``, and with memory be whole
            segments of ``horizon``. More than there are: all of them.
        device: Where the tensors live.

    Raises:
        APIUsageError: The minibatches do not fill the rollout evenly.
        PufferError: It does not fit into the memory.
    """

    def __init__(
        self, vecenv: Any, policy: Policy, horizon: int, minibatch_size: int, device: torch.device | str = "cpu"
    ) -> None:
        self.horizon, self.num_agents = horizon, int(vecenv.num_agents)
        self.batch_size = horizon * self.num_agents
        try:
            self._allocate(vecenv.single_observation_space, policy, device)
        except RuntimeError as error:
            raise PufferError(
                f"Rollout: {horizon} steps of {self.num_agents} agents do not fit into the memory of {device}; "
                "lower train.horizon or take fewer environments"
            ) from error
        self.initial_state = policy.initial_state(self.num_agents, device)
        self._out: dict[str, Tensor] = {}
        self._segment = horizon if self.initial_state else 1
        self._rows = _rows_of_minibatch(horizon, self.num_agents, self._segment, minibatch_size)

    def _allocate(self, space: Box, policy: Policy, device: torch.device | str) -> None:
        dtype = torch.from_numpy(np.zeros(0, space.dtype)).dtype
        shape = (self.horizon, self.num_agents)
        self.observations = torch.zeros(*shape, *space.shape, dtype=dtype, device=device)
        self.actions = torch.zeros(*shape, *policy.distribution.shape, dtype=policy.distribution.dtype, device=device)
        self.log_probs = torch.zeros(shape, device=device)
        self.rewards = torch.zeros(shape, device=device)
        self.values = torch.zeros(self.horizon + 1, self.num_agents, device=device)
        self.episode_starts = torch.zeros(shape, dtype=torch.bool, device=device)
        self.episode_ends = torch.zeros(shape, dtype=torch.bool, device=device)
        self.masks = torch.ones(shape, dtype=torch.bool, device=device)

    def minibatches(self, advantages: Tensor, generator: torch.Generator) -> Iterator[Minibatch]:
        """All of the rollout in random order, each part once. The tensors are reused by the next minibatch.

        Without memory the parts are single steps; with it, whole segments.
        """
        columns = self.batch_size // self._segment
        fields = {
            "observations": self.observations,
            "actions": self.actions,
            "log_probs": self.log_probs,
            "values": self.values[:-1],
            "advantages": advantages,
            "returns": advantages + self.values[:-1],
            "masks": self.masks,
            "episode_starts": self.episode_starts,
        }
        if self._segment == 1:
            del fields["episode_starts"]
        if bool(self.masks.all()):
            del fields["masks"]
        segments = {name: field.reshape(self._segment, columns, *field.shape[2:]) for name, field in fields.items()}
        order = torch.randperm(columns, generator=generator, device=generator.device)
        for chosen in torch.split(order, self._rows):
            part = {name: self._gather(name, field, 1, chosen) for name, field in segments.items()}
            state = {name: self._gather(name, field, 0, chosen) for name, field in self.initial_state.items()}
            mask, starts = part.pop("masks", None), part.pop("episode_starts", None)
            yield Minibatch(**part, mask=mask, state=state, episode_starts=starts)

    def _gather(self, name: str, source: Tensor, dim: int, chosen: Tensor) -> Tensor:
        """Rows of ``source`` in an array that is kept: new memory for each would cost more than the copy."""
        if name not in self._out:
            shape = list(source.shape)
            shape[dim] = len(chosen)
            self._out[name] = source.new_empty(shape)
        return torch.index_select(source, dim, chosen, out=self._out[name])


def _rows_of_minibatch(horizon: int, num_agents: int, segment: int, minibatch_size: int) -> int:
    """Segments of a minibatch; each has ``segment`` steps."""
    batch_size = horizon * num_agents
    size = min(minibatch_size, batch_size)
    if size % segment == 0 and batch_size % size == 0:
        return size // segment
    segments = batch_size // segment
    sizes = [segment * count for count in range(1, segments + 1) if segments % count == 0]
    near = [fits for fits in sizes if fits < size][-1:] + [fits for fits in sizes if fits > size][:1]
    whole = "be a multiple of train.horizon, for the policy is recurrent, and " if size % segment else ""
    raise APIUsageError(
        f"train.minibatch_size must {whole}divide train.horizon * agents = {horizon} * {num_agents} = {batch_size}, "
        f"got {minibatch_size}; try {' or '.join(map(str, near))}"
    )


class _Received(NamedTuple):
    """What ``recv`` returns."""

    observations: npt.NDArray[np.generic]
    rewards: npt.NDArray[np.float32]
    terminals: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    infos: Infos
    agent_ids: npt.NDArray[np.int64]
    masks: npt.NDArray[np.bool_]

    @property
    def ended(self) -> npt.NDArray[np.bool_]:
        """Rows whose last action ended an episode."""
        return self.terminals | self.truncations


class Collector:
    """Acts in the environments and writes what happens into a rollout.

    Each agent contributes exactly ``horizon`` steps in a row. Where ``recv`` returns only part of the agents,
    those that have theirs go on acting, unrecorded, until the slowest is done. The batch received last
    is kept: it is the first of the next rollout.

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
        reward_scale: What rewards are multiplied by; 1 at first where the settings say 0.

    Raises:
        APIUsageError: The environments reset in another mode, or in one that does not fit them.
    """

    def __init__(
        self, vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
    ) -> None:
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
        self._resets_next = vecenv.autoreset == "next_step"
        self.episodes = EpisodeMeans()
        self.reward_scale = config.reward_scale or 1.0
        self._vecenv, self._policy, self._rollout, self._config = vecenv, policy, rollout, config
        self._generator, self._device = generator, generator.device
        self._everyone = np.arange(rollout.num_agents)
        self._step = np.zeros(rollout.num_agents, np.int64)  # of the rollout, at each agent's latest observation
        self._state = policy.initial_state(rollout.num_agents, self._device)
        self._batch: _Received
        self._begins: npt.NDArray[np.bool_]  # rows of the batch that are the first an agent sees of an episode
        self._absent = np.zeros(rollout.num_agents, bool)  # at each agent's latest observation
        self._over = np.zeros(rollout.num_agents, bool)  # whose next action only resets

    def reset(self, seed: int) -> None:
        """Start new episodes, seeded, and forget those that were running."""
        self._vecenv.async_reset(seed)
        self._over[:] = False
        self._receive()
        for memory in self._state.values():
            memory.zero_()

    @torch.inference_mode()
    def collect(self) -> None:
        """Fill the rollout."""
        self._step[:] = -1
        while True:
            agents = self._agents()
            self._step[agents] += 1
            last = bool(self._step.min() >= self._rollout.horizon)
            self._record_outcome(agents)
            actions = self._act(agents, commit=not last)
            if last:
                return
            self._vecenv.send(self._policy.distribution.to_env(actions))
            self._receive()
            self.episodes.add(self._batch.infos)

    def _receive(self) -> None:
        """Wait for the next batch. An agent that was absent begins anew when it comes back."""
        self._batch = batch = _Received(*self._vecenv.recv())
        begins = self._over[batch.agent_ids] if self._resets_next else batch.ended
        self._begins = begins | self._absent[batch.agent_ids]
        self._absent[batch.agent_ids] = ~batch.masks
        if self._resets_next:
            self._over[batch.agent_ids] = batch.ended

    def _agents(self) -> Any:
        """Whose rows the batch holds: a slice when it is everyone's, which spares the gathers."""
        ids = self._batch.agent_ids
        return slice(None) if np.array_equal(ids, self._everyone) else ids

    def _select(self, agents: Any, first: int, last: int) -> tuple[Any, Any, Any] | None:
        """Rows of the batch, steps and agents where ``first <= step <= last``; None when there are none."""
        if isinstance(agents, slice):
            step = int(self._step[0])
            return (agents, step, agents) if first <= step <= last else None
        steps = self._step[agents]
        rows = np.flatnonzero((steps >= first) & (steps <= last))
        if not len(rows):
            return None
        return torch.from_numpy(rows), torch.from_numpy(steps[rows]), torch.from_numpy(agents[rows])

    def _record_outcome(self, agents: Any) -> None:
        """Store what the previous action brought, and restart the memory where an episode begins."""
        batch = self._batch
        ended = batch.ended
        selected = self._select(agents, 1, self._rollout.horizon)
        if selected is not None:
            rows, steps, who = selected
            earned = self._scaled(batch.rewards)
            cut = np.flatnonzero(batch.truncations & ~batch.terminals)
            if len(cut):
                earned[cut] += self._config.gamma * self._final_values(agents, cut)
            self._rollout.rewards[steps - 1, who] = earned[rows]
            self._rollout.episode_ends[steps - 1, who] = torch.from_numpy(ended).to(self._device)[rows]
        if self._state and self._begins.any():
            for memory in self._state.values():
                memory[self._everyone[agents][self._begins]] = 0

    def _scaled(self, rewards: npt.NDArray[np.float32]) -> Tensor:
        """The rewards as they are learned from, in a new tensor."""
        scaled = torch.from_numpy(rewards).to(self._device) * self.reward_scale
        limit = self._config.reward_clip
        return scaled.clamp_(-limit, limit) if limit > 0 else scaled

    def _final_values(self, agents: Any, cut: npt.NDArray[np.int64]) -> Tensor:
        """What episodes that were cut off would have been worth, judged by their last observation."""
        source = self._batch.observations if self._resets_next else self._vecenv.final_observations
        observations = torch.from_numpy(source[cut]).to(self._device)
        state = {name: memory[self._everyone[agents][cut]] for name, memory in self._state.items()}
        return self._policy.forward_eval(observations, state)[1]

    def _act(self, agents: Any, commit: bool) -> Tensor:
        """Choose an action for every row; store the step where one is still wanted.

        Args:
            agents: Whose rows the batch holds.
            commit: Whether the actions will be sent, so that the memory moves on.
        """
        observations = torch.from_numpy(self._batch.observations).to(self._device)
        state = {name: memory[agents] for name, memory in self._state.items()}
        self._keep_initial_state(agents, state)
        params, values = self._policy.forward_eval(observations, state)
        if not torch.isfinite(params.sum() + values.sum()):
            raise PufferError(
                "Collector: the policy's outputs must be finite, got NaN or infinity; "
                "look at losses/* in the metrics and lower train.learning_rate, or scale observations and rewards"
            )
        actions = self._policy.distribution.sample(params, self._generator)
        if commit:
            for name, memory in state.items():
                self._state[name][agents] = memory
        valued = self._select(agents, 0, self._rollout.horizon)
        if valued is not None:
            rows, steps, who = valued
            self._rollout.values[steps, who] = values[rows]
        begun = self._select(agents, 0, self._rollout.horizon - 1)
        if begun is not None:
            log_probs = self._policy.distribution.log_prob(params, actions)
            self._store(begun, observations, actions, log_probs)
        return actions

    def _keep_initial_state(self, agents: Any, state: State) -> None:
        """Remember the memory with which a segment begins."""
        begun = self._select(agents, 0, 0) if state else None
        if begun is not None:
            for name, memory in state.items():
                self._rollout.initial_state[name][begun[2]] = memory[begun[0]]

    def _store(self, begun: tuple[Any, Any, Any], observations: Tensor, actions: Tensor, log_probs: Tensor) -> None:
        rows, steps, who = begun
        rollout = self._rollout
        rollout.observations[steps, who] = observations[rows]
        rollout.actions[steps, who] = actions[rows]
        rollout.log_probs[steps, who] = log_probs[rows]
        counts = self._batch.masks & ~self._batch.ended if self._resets_next else self._batch.masks
        rollout.masks[steps, who] = torch.from_numpy(counts).to(self._device)[rows]
        rollout.episode_starts[steps, who] = torch.from_numpy(self._begins).to(self._device)[rows]
