"""Collector for a policy on a GPU. Each step is one launch on the GPU, and the CPU waits for it once."""

import functools
import mmap
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from typing_extensions import override

from pufferlib.models import Policy, State
from pufferlib.settings.config import TrainConfig
from pufferlib.training.collector import Collector
from pufferlib.training.graphs import CudaRecorder, Recorded, Recorder, uses_cuda_graphs
from pufferlib.training.rollout import Rollout
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["GpuCollector", "make_gpu_collector"]


class _Cut(NamedTuple):
    """Episodes that were truncated in a step. Their last rewards still lack the value of the last observation."""

    step: int
    agents: npt.NDArray[np.int64]
    observations: npt.NDArray[np.generic]
    state: dict[str, Tensor]


class GpuCollector(Collector):
    """Collector for a policy on a GPU.

    Observations are copied from the memory of the environments to the GPU. The GPU writes everything into the rollout
    and sends the actions, with a flag for NaN, to page-locked memory. Nothing else is transferred during a rollout.
    Rewards, masks and episode ends follow after the last step, as do the values of truncated episodes.

    Args:
        vecenv: Environments.
        policy: Policy on the device.
        rollout: Rollout on the device.
        config: Settings.
        generator: Random number generator on the device.
        recorder: Recorder of the work of a step, or None to run it unrecorded.
    """

    def __init__(
        self,
        vecenv: AnyVectorEnv,
        policy: Policy,
        rollout: Rollout,
        config: TrainConfig,
        generator: torch.Generator,
        recorder: Recorder | None,
    ) -> None:
        super().__init__(vecenv, policy, rollout, config, generator)
        device, count, is_gpu = generator.device, rollout.num_agents, generator.device.type == "cuda"
        distribution = policy.distribution
        self._recorder = recorder
        self._seen = torch.zeros(rollout.observations.shape[1:], dtype=rollout.observations.dtype, device=device)
        self._episode_starts = torch.zeros(count, dtype=torch.bool, device=device)
        self._actions = torch.zeros(count, *distribution.shape, dtype=distribution.dtype, device=device)
        self._log_probs = torch.zeros(count, device=device)
        self._noise = distribution.noise((rollout.horizon, count), torch.Generator(device))
        self._time = torch.zeros(1, dtype=torch.int64, device=device)
        self._memory = policy.initial_state(count, device)
        self._chosen = torch.zeros(self._actions.shape, dtype=distribution.dtype, pin_memory=is_gpu)
        self._are_numbers = torch.zeros(1, dtype=torch.bool, pin_memory=is_gpu)
        self._host_outputs = self._chosen.numpy(), self._are_numbers.numpy()  # these share their memory
        self._cuts: list[_Cut] = []
        self._locked: set[int] = set()
        self._step_index = 0  # step of the rollout
        self._step_functions: dict[Rollout, Callable[[], object]] = {}

    def _run_step(self, rollout: Rollout) -> None:
        """Do a step on the GPU. The work is recorded once for each rollout."""
        if rollout not in self._step_functions:
            act = functools.partial(self._act, rollout)
            self._step_functions[rollout] = act if self._recorder is None else Recorded(act, self._recorder)
        self._step_functions[rollout]()

    @override
    def reset(self, seed: int) -> None:
        self._cuts.clear()
        super().reset(seed)
        for name, memory in self._state.items():
            self._memory[name].copy_(memory)
        self._state = self._memory  # recorded work needs the same addresses

    @override
    @torch.inference_mode()
    def collect(self) -> None:
        rollout, reports, distribution = self._rollout, self._rollout.reports, self._policy.distribution
        self._begin(rollout)
        self._noise.copy_(distribution.noise((rollout.horizon, rollout.num_agents), self._generator))
        self._time.zero_()
        for t in range(rollout.horizon):
            self._step_index = t
            self._send(rollout, t)
            self._run_step(rollout)
            reports.masks[t], reports.episode_starts[t] = self._counted_rows(), self._is_episode_start
            self._wait()
            actions, are_numbers = self._host_outputs
            self._check(bool(are_numbers[0]), self._seen, self._state)
            self.vecenv.send(distribution.to_env(actions))
            reports.rewards[t] = self._receive()
            reports.episode_ends[t] = self._ended
            self.episodes.add(self._batch.infos)
        self._finish(rollout)

    def _send(self, rollout: Rollout, t: int) -> None:
        """Copy the observations to the GPU."""
        observations = torch.from_numpy(self._batch.observations)
        if self._device.type == "cuda":
            self._lock_pages(observations)
        self._seen.copy_(observations, non_blocking=True)
        if self._state:
            self._episode_starts.copy_(torch.from_numpy(self._is_episode_start), non_blocking=True)
        if rollout.observations.device != self._device:
            rollout.observations[t].copy_(observations)

    def _act(self, rollout: Rollout) -> None:
        """Compute a step on the GPU, from the inputs copied by ``_send`` to ``_chosen``.

        Nothing in this method may wait for the GPU.
        """
        memory, t = self._state, self._time
        _restart(memory, self._episode_starts)
        state = dict(memory)
        params, values = self._policy.forward_eval(self._seen, state)
        for name, each in memory.items():
            each.copy_(state[name])
        noise = self._noise.index_select(0, t).squeeze(0)
        finite = self._policy.distribution.draw(params, noise, self._actions, self._log_probs)
        fields = {"actions": self._actions, "log_probs": self._log_probs, "values": values, "observations": self._seen}
        for name, rows in fields.items():
            field: Tensor = getattr(rollout, name)
            if field.device == self._device:
                field.index_copy_(0, t, rows.unsqueeze(0))
        self._chosen.copy_(self._actions, non_blocking=True)
        self._are_numbers.copy_(torch.as_tensor(finite).view(1), non_blocking=True)
        t.add_(1)

    def _wait(self) -> None:
        """Wait until the actions have arrived."""
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()

    @override
    def _finish(self, rollout: Rollout) -> None:
        _restart(self._state, torch.from_numpy(self._is_episode_start).to(self._device))
        super()._finish(rollout)

    def _add_values(self, rollout: Rollout) -> None:
        """Add the values of the last observations to the rewards of steps that truncated episodes."""
        if not self._cuts:
            return
        cuts, self._cuts = self._cuts, []
        steps = np.concatenate([np.full(len(cut.agents), cut.step) for cut in cuts])
        places = [torch.from_numpy(each).to(self._device) for each in (steps, np.concatenate([c.agents for c in cuts]))]
        observations = torch.from_numpy(np.concatenate([cut.observations for cut in cuts])).to(self._device)
        state = {name: torch.cat([cut.state[name] for cut in cuts]) for name in self._state}
        values = self._policy.forward_eval(observations, state)[1]
        rollout.rewards.index_put_(tuple(places), self._config.gamma * values, accumulate=True)

    def _clear_memory(self) -> None:
        """Do nothing, because ``_act`` clears the memory of agents that start an episode."""

    def _bootstrap(self, rewards: npt.NDArray[np.float32], cut: npt.NDArray[np.int64]) -> None:
        """Keep the last observations of truncated episodes until the rollout is full."""
        agents = self._batch.agent_ids[cut]
        state = {name: memory[torch.from_numpy(agents).to(self._device)] for name, memory in self._state.items()}
        self._cuts.append(_Cut(self._step_index, agents, self._last_observations()[cut], state))

    def _lock_pages(self, observations: Tensor) -> None:
        """Lock the pages of the environments' memory, so that the GPU can copy from it asynchronously.

        A page can be locked only once. Memory that starts within a page may share it, and is not locked. If the driver
        refuses for another reason, copies are correct but slower.
        """
        address, size = observations.data_ptr(), observations.numel() * observations.element_size()
        if address in self._locked or address % mmap.PAGESIZE:
            return
        self._locked.add(address)
        runtime = torch.cuda.cudart()  # type: ignore[no-untyped-call]
        if int(runtime.cudaHostRegister(address, size, 0)) == 0:
            weakref.finalize(self, _unlock, runtime, address, observations)
            return
        with suppress(RuntimeError):  # the next operation of torch raises the refusal of the driver
            torch.zeros(1, device=self._device)


def _restart(memory: State, begins: Tensor) -> None:
    """Set the rows ``begins`` of a memory to 0."""
    for each in memory.values():
        each.masked_fill_(begins.view(-1, *[1] * (each.ndim - 1)), 0)


def _unlock(runtime: Any, address: int, memory: Tensor) -> None:
    """Unlock the pages of ``memory``. The argument keeps the memory alive until then."""
    torch.cuda.synchronize()
    runtime.cudaHostUnregister(address)


def make_gpu_collector(
    vecenv: AnyVectorEnv, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
) -> GpuCollector:
    """Build the collector for a policy on a GPU, with CUDA graphs if the settings ask for them."""
    is_recorded, is_required = uses_cuda_graphs(config, generator.device), bool(config.cuda_graphs)
    recorder = CudaRecorder(generator.device, is_required) if is_recorded else None
    return GpuCollector(vecenv, policy, rollout, config, generator, recorder)
