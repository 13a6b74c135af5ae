"""Sources of rollouts, which collect before or while the policy learns, and the choice of the collector."""

import copy
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import torch
from typing_extensions import override

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training.accelerate import autocast, build_actor
from pufferlib.training.collector import Collector
from pufferlib.training.gpu_collector import make_gpu_collector
from pufferlib.training.partial_collectors import HalvesCollector, PartialCollector
from pufferlib.training.rollout import Rollout
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["OneUpdateStale", "RolloutSource", "build_source", "make_collector"]


class RolloutSource:
    """Source of rollouts. Each is collected when it is requested, with the current weights.

    Args:
        collector: Collector that acts in the environments.
        rollout: Rollout that is filled.
        refresh: Function that copies the weights of the policy that learns to the collector's policy.
        num_threads: CPU threads of torch while acting.
        precision: Function that returns a context in which the policy acts, for example in bfloat16.

    Attributes:
        collector: Collector that acts in the environments.
        rollout: Rollout that ``take`` returned last.
    """

    def __init__(
        self,
        collector: Collector,
        rollout: Rollout,
        refresh: Callable[[], None],
        num_threads: int,
        precision: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.collector, self.rollout = collector, rollout
        self._refresh, self._num_threads, self._precision = refresh, num_threads, precision

    def take(self) -> Rollout:
        """Return the next rollout. It stays unchanged until the next call.

        Raises:
            Exception: An exception of the environments or the policy.
        """
        self._refresh()
        self._fill()
        return self.rollout

    def start_next(self) -> None:
        """Start to collect the next rollout, if it is collected while the policy learns."""

    def wait(self) -> None:
        """Wait until no rollout is being collected.

        Raises:
            Exception: An exception of the environments or the policy.
        """

    def close(self) -> None:
        """Stop collecting."""

    def state_dict(self) -> dict[str, Any]:
        """Return experience that is collected and not yet taken."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore ``state_dict``."""

    def _fill(self) -> None:
        torch.set_num_threads(self._num_threads)  # of the calling thread
        with self._precision():
            self.collector.collect()


class OneUpdateStale(RolloutSource):
    """Source that collects the next rollout in a thread while the policy learns from the last one.

    Collecting uses the weights at the call of ``start_next``. So every rollout after the first is collected by a policy
    that is one update older than the policy that learns from it.

    Args:
        spare: Second rollout, which is filled while the first is in use.
        generator: Random number generator for actions.
        others: Arguments of ``RolloutSource``.
    """

    def __init__(self, spare: Rollout, generator: torch.Generator, *others: Any) -> None:
        super().__init__(*others)
        self._generator = generator
        self._rollouts = [spare, self.rollout]  # the last one is in use
        self._thread = ThreadPoolExecutor(1, "collector")
        self._filling: Future[None] | None = None
        # On a GPU, collecting has its own stream, so that it does not wait for learning. Tensors that both use are
        # allocated once, so that no memory moves between streams.
        device = self._generator.device
        self._stream = (
            torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]
            if device.type == "cuda"
            else None
        )

    @override
    def take(self) -> Rollout:
        if self._filling is None:
            self.start_next()
        self._rollouts.reverse()
        self.rollout = self._rollouts[-1]
        try:
            self.wait()
        finally:
            self._filling = None
        return self.rollout

    @override
    def start_next(self) -> None:
        self._refresh()
        self.collector.use(self._rollouts[0])
        if self._stream is not None:
            self._stream.wait_stream(torch.cuda.current_stream(self._stream.device))
        self._filling = self._thread.submit(self._fill)

    @override
    def _fill(self) -> None:
        with torch.cuda.stream(self._stream):  # no effect without a GPU
            super()._fill()

    @override
    def wait(self) -> None:
        if self._filling is not None:
            self._filling.result()
        if self._stream is not None:
            torch.cuda.current_stream(self._stream.device).wait_stream(self._stream)

    @override
    def close(self) -> None:
        self.collector.stop()
        self._thread.shutdown()

    @override
    def state_dict(self) -> dict[str, Any]:
        self.wait()
        state = {"generator": self._generator.get_state()}
        if self._filling is None:
            return state
        return {**state, "rollout": self._rollouts[0].state_dict(), "episodes": self.collector.episodes.state_dict()}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        generator = state["generator"].cpu()
        if len(generator) == len(self._generator.get_state()):  # otherwise it is from another kind of device
            self._generator.set_state(generator)
        if "rollout" in state:
            self._rollouts[0].load_state_dict(state["rollout"])
            self.collector.episodes.load_state_dict(state["episodes"])
            self._filling = Future()
            self._filling.set_result(None)


def build_source(
    vecenv: AnyVectorEnv,
    policy: Policy,
    rollouts: Callable[[], Rollout],
    config: TrainConfig,
    generator: torch.Generator,
) -> RolloutSource:
    """Build the source of rollouts for ``train.overlap``.

    Args:
        vecenv: Environments.
        policy: Policy that learns.
        rollouts: Function that makes a rollout.
        config: Settings.
        generator: Random number generator on the policy's device, for learning. It also draws actions, unless learning
            overlaps collecting.

    Raises:
        APIUsageError: The settings do not fit each other or these environments.
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
    """Copy the weights of ``policy`` to ``twin``, then call ``pack``."""
    with torch.no_grad():
        for mine, theirs in zip(twin.state_dict().values(), policy.state_dict().values(), strict=True):
            mine.copy_(theirs)
    pack()


def make_collector(
    vecenv: AnyVectorEnv, policy: Policy, rollout: Rollout, config: TrainConfig, generator: torch.Generator
) -> Collector:
    """Make the collector that fits the batches: all agents, alternating halves, or any part. The arguments are its own.

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
