"""Collecting while learning, and the choice of what collects."""

import copy
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.training.accelerate import autocast, build_actor
from pufferlib.training.collector import Collector, HalvesCollector, PartialCollector, RolloutSource
from pufferlib.training.config import TrainConfig
from pufferlib.training.gpu_collector import make_gpu_collector
from pufferlib.training.rollout import Rollout

__all__ = ["OneUpdateStale", "build_source", "make_collector"]


class OneUpdateStale(RolloutSource):
    """Source that collects the next rollout in a thread while the policy learns from the last one.

    It acts with the weights at the call of ``start_next``, so every rollout but the first is collected by a policy that
    is one update older than the one that learns from it.

    Args:
        spare: Second rollout, which is filled while the first is in use.
        generator: Source of randomness of the actions.
        others: Arguments of ``RolloutSource``.
    """

    def __init__(self, spare: Rollout, generator: torch.Generator, *others: Any) -> None:
        super().__init__(*others)
        self._generator = generator
        self._rollouts = [spare, self.rollout]  # the one that is in use is the last
        self._thread = ThreadPoolExecutor(1, "collector")
        self._filling: Future[None] | None = None
        # On a GPU collecting has a stream of its own, or it would wait for what is being learned. All that both use is
        # allocated once, so that no memory changes hands between streams.
        device = self._generator.device
        self._stream = (
            torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
            if device.type == "cuda"
            else None
        )

    def take(self) -> Rollout:
        """See ``RolloutSource``."""
        if self._filling is None:
            self.start_next()
        self._rollouts.reverse()
        self.rollout = self._rollouts[-1]
        try:
            self.wait()
        finally:
            self._filling = None
        return self.rollout

    def start_next(self) -> None:
        """Begin to collect the next rollout, by the weights as they are now."""
        self._refresh()
        self.collector.use(self._rollouts[0])
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        self._filling = self._thread.submit(self._fill)

    def _fill(self) -> None:
        with torch.cuda.stream(self._stream):  # nothing without a GPU
            super()._fill()

    def wait(self) -> None:
        """See ``RolloutSource``."""
        if self._filling is not None:
            self._filling.result()
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    def close(self) -> None:
        """Stop after the step in progress, and end the thread."""
        self.collector.stop()
        self._thread.shutdown()

    def state_dict(self) -> dict[str, Any]:
        """See ``RolloutSource``."""
        self.wait()
        state = {"generator": self._generator.get_state()}
        if self._filling is None:
            return state
        return {**state, "rollout": self._rollouts[0].state_dict(), "episodes": self.collector.episodes.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """See ``RolloutSource``."""
        generator = state["generator"].cpu()
        if len(generator) == len(self._generator.get_state()):  # not of another kind of device
            self._generator.set_state(generator)
        if "rollout" in state:
            self._rollouts[0].load_state_dict(state["rollout"])
            self.collector.episodes.load_state_dict(state["episodes"])
            self._filling = Future()
            self._filling.set_result(None)


def build_source(
    vecenv: Any, policy: Policy, rollouts: Callable[[], Rollout], config: TrainConfig, generator: torch.Generator
) -> RolloutSource:
    """Build what collects as ``train.overlap`` says.

    Args:
        vecenv: The environments.
        policy: The policy that learns.
        rollouts: Makes a rollout.
        config: The settings.
        generator: Of what learns, on the policy's device; also of the actions, but where learning overlaps collecting.

    Raises:
        APIUsageError: The settings, or these environments, do not fit together.
    """
    device, rollout = generator.device, rollouts()
    precision = functools.partial(autocast, config.precision, device)
    if config.overlap != "learning":
        actor, refresh = build_actor(policy, config, device, vecenv.agents_per_batch)
        collector = make_collector(vecenv, actor, rollout, config, generator)
        return RolloutSource(collector, rollout, refresh, config.act_threads, precision)
    own = torch.Generator(device).manual_seed(config.seed + 1)
    twin = copy.deepcopy(policy)
    actor, pack = build_actor(twin, config, device, vecenv.agents_per_batch)

    collector = make_collector(vecenv, actor, rollout, config, own)
    refresh = functools.partial(_refresh, twin, policy, pack)
    return OneUpdateStale(rollouts(), own, collector, rollout, refresh, config.act_threads, precision)


def _refresh(twin: Policy, policy: Policy, pack: Callable[[], None]) -> None:
    """Give ``twin`` the weights of ``policy``, and then ``pack`` them."""
    with torch.no_grad():
        for mine, theirs in zip(twin.state_dict().values(), policy.state_dict().values(), strict=True):
            mine.copy_(theirs)
    pack()


def make_collector(
    vecenv: Any, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
) -> Collector:
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


def _check_halves(vecenv: Any) -> None:
    if 2 * vecenv.agents_per_batch != vecenv.num_agents:
        raise APIUsageError(
            f"train.overlap 'envs' needs batches of half of the agents, got {vecenv.agents_per_batch} of "
            f"{vecenv.num_agents}; pass batch_size=num_envs // 2 to pufferlib.vector.make, with backend "
            "'Multiprocessing' or 'Ray'"
        )
