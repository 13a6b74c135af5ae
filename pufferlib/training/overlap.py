"""Collecting and learning, one after the other or at the same time."""

import copy
import functools
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import torch

from pufferlib.models import Policy
from pufferlib.training.actors import build_actor
from pufferlib.training.collector import Collector
from pufferlib.training.config import TrainConfig
from pufferlib.training.partial_collectors import make_collector
from pufferlib.training.precision import autocast
from pufferlib.training.rollout import Rollout

__all__ = ["OneUpdateStale", "RolloutSource", "build_source"]


class RolloutSource:
    """Collects one rollout after the other, each when it is asked for, by the weights of then.

    Args:
        collector: Acts in the environments.
        rollout: That it fills.
        refresh: Gives the collector's policy the weights of the policy that learns.
        generator: Of the actions' randomness.
        config: ``act_threads`` and ``precision`` are read.

    Attributes:
        collector: The same.
        rollout: The one that ``take`` returned last, or failed to.
    """

    def __init__(
        self,
        collector: Collector,
        rollout: Rollout,
        refresh: Callable[[], None],
        generator: torch.Generator,
        config: TrainConfig,
    ) -> None:
        self.collector, self.rollout = collector, rollout
        self._refresh, self._generator, self._config = refresh, generator, config

    def take(self) -> Rollout:
        """Return the next rollout, which stays as it is until the next call.

        Raises:
            Exception: Whatever the environments or the policy raised.
        """
        self._refresh()
        self._fill()
        return self.rollout

    def start_next(self) -> None:
        """Note that the rollout that was taken is about to be learned from, by the weights as they are now."""

    def wait(self) -> None:
        """Wait until nothing is being collected.

        Raises:
            Exception: Whatever the environments or the policy raised.
        """

    def close(self) -> None:
        """Stop collecting."""

    def state_dict(self) -> dict[str, Any]:
        """Whatever was collected, and not yet taken."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where ``state_dict`` was called."""

    def _fill(self) -> None:
        torch.set_num_threads(self._config.act_threads)  # counts for the thread that calls it
        with autocast(self._config.precision, self._generator.device):
            self.collector.collect()


class OneUpdateStale(RolloutSource):
    """Collects the next rollout in a thread, while the last one is learned from.

    It acts by the weights as they are when ``start_next`` is called: each rollout but the first is by a policy one
    update older than the one that learns from it. The arguments are those of ``RolloutSource``, and:

    Args:
        spare: A second rollout, which is filled while the first is in use.
    """

    def __init__(self, spare: Rollout, *others: Any) -> None:
        super().__init__(*others)
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
    if config.overlap != "learning":
        actor, refresh = build_actor(policy, config, device, vecenv.agents_per_batch)
        collector = make_collector(vecenv, actor, rollout, config, generator)
        return RolloutSource(collector, rollout, refresh, generator, config)
    own = torch.Generator(device).manual_seed(config.seed + 1)
    twin = copy.deepcopy(policy)
    actor, pack = build_actor(twin, config, device, vecenv.agents_per_batch)

    collector = make_collector(vecenv, actor, rollout, config, own)
    return OneUpdateStale(rollouts(), collector, rollout, functools.partial(_refresh, twin, policy, pack), own, config)


def _refresh(twin: Policy, policy: Policy, pack: Callable[[], None]) -> None:
    """Give ``twin`` the weights of ``policy``, and then ``pack`` them."""
    with torch.no_grad():
        for mine, theirs in zip(twin.state_dict().values(), policy.state_dict().values(), strict=True):
            mine.copy_(theirs)
    pack()
