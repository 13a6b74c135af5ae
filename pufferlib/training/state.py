"""State of a training: everything that an update changes, apart from the environments and the rollout."""

import contextlib
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from pufferlib.models import Policy
from pufferlib.seeding import env_seed
from pufferlib.settings.config import TrainConfig
from pufferlib.training.episodes import ScoreMean

__all__ = ["SCHEDULED", "TorchRandom", "TrainState", "adapted_rate", "annealed", "share"]

LOWEST_RATE, HIGHEST_RATE = 1e-6, 1e-2
#: Coefficients of the loss that have a schedule, such as ``clip_schedule`` and ``min_clip_ratio`` for ``clip_coef``.
#: Compiled and recorded losses get them as tensors, because a number would be a constant there.
SCHEDULED = ("clip_coef", "ent_coef")


@dataclass
class TrainState:
    """Network, optimizer, random numbers and counters of a training.

    Attributes:
        policy: Network that learns.
        optimizer: Optimizer of its parameters.
        generator: Random number generator for actions and minibatches, on the device of the policy.
        torch_random: State of torch's default generators, which the network itself uses, for example in dropout.
        seed: Seed of this rank.
        agent_steps: Number of steps of all agents so far.
        updates: Number of updates completed.
        uptime_s: Seconds of collecting, learning and evaluating so far, including those before a resume.
        fits_reward_scale: Whether the automatic reward scale may still change.
        scores: Mean score of the episodes since the latest checkpoint.
    """

    policy: Policy
    optimizer: torch.optim.Optimizer
    generator: torch.Generator
    torch_random: "TorchRandom"
    seed: int
    agent_steps: int = 0
    updates: int = 0
    uptime_s: float = 0.0
    fits_reward_scale: bool = False
    scores: ScoreMean = field(default_factory=ScoreMean)

    @property
    def episode_seed(self) -> int:
        """Seed of the episodes that start after this update."""
        return env_seed(self.seed, self.updates)

    def count_update(self, agent_steps: int) -> None:
        """Count an update of ``agent_steps`` agent-steps."""
        self.agent_steps += agent_steps
        self.updates += 1

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the weights that all ranks share."""
        return {
            "optimizer": self.optimizer.state_dict(),
            "agent_steps": self.agent_steps,
            "updates": self.updates,
            "uptime_s": self.uptime_s,
            "fits_reward_scale": self.fits_reward_scale,
        }

    def rank_state_dict(self) -> dict[str, Any]:
        """Return the random numbers, which each rank has separately."""
        return {"generator": self.generator.get_state(), "torch_random": self.torch_random.states}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the counters of ``state_dict``. The optimizer is restored by ``checkpoint.load_optimizer``."""
        self.agent_steps, self.updates, self.uptime_s = state["agent_steps"], state["updates"], state["uptime_s"]
        self.fits_reward_scale = state.get("fits_reward_scale", False)  # absent in old checkpoints, where it is final

    def load_rank_state_dict(self, state: Mapping[str, Any], is_own: bool) -> None:
        """Restore the random numbers of ``rank_state_dict``, after the counters.

        They start from a new seed if they are of another rank (``is_own`` is False) or of another kind of device.
        """
        generator = state["generator"].cpu()
        if is_own and len(generator) == len(self.generator.get_state()):
            self.generator.set_state(generator)
        else:
            self.generator.manual_seed(self.episode_seed % 2**63)
        if not (is_own and self.torch_random.load(state.get("torch_random", []))):
            self.torch_random.seed(self.episode_seed)


class TorchRandom:
    """State of torch's default generators in a run, separate from the state in the rest of the program.

    With ``train.overlap = "learning"``, two threads draw from it, and the order of their draws may vary.

    Args:
        seed: Seed of the generators.
        device: Device of the policy.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        self._generators = [torch.default_generator]
        if device.type == "cuda":
            torch.cuda.init()  # type: ignore[no-untyped-call]
            index = torch.cuda.current_device() if device.index is None else device.index
            self._generators.append(torch.cuda.default_generators[index])
        self.seed(seed)

    def seed(self, seed: int) -> None:
        """Set the states from ``seed``."""
        self.states: list[Tensor] = [
            torch.Generator(generator.device).manual_seed(seed % 2**63).get_state() for generator in self._generators
        ]

    def load(self, states: Sequence[Tensor]) -> bool:
        """Set ``states`` of another object. Return False if they are from another kind of device."""
        sizes = [len(state) for state in states]
        if sizes != [len(state) for state in self.states]:
            return False
        self.states = [state.cpu() for state in states]
        return True

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Return a context in which torch draws from these states. Afterwards the previous states are restored."""
        outer = self._exchange(self.states)
        try:
            yield
        finally:
            self.states = self._exchange(outer)

    def _exchange(self, states: Sequence[Tensor]) -> list[Tensor]:
        """Set the states of the generators and return their previous states."""
        before = [generator.get_state() for generator in self._generators]
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)
        return before


def share(schedule: str, progress: float, least: float = 0.0) -> float:
    r"""Return the remaining share of a setting's initial value.

    .. math::
        s = m + (1 - m) f(p), \quad f_\mathrm{linear}(p) = 1 - p, \quad f_\mathrm{cosine}(p) = (1 + \cos \pi p) / 2

    Source of the cosine: Loshchilov and Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts" (2017).

    Args:
        schedule: "constant", "linear" or "cosine". "adaptive" counts as constant. See ``adapted_rate``.
        progress: Completed share p of the run. Values above 1 count as 1.
        least: Share m at the end.
    """
    if schedule in ("constant", "adaptive"):
        return 1.0
    left = max(0.0, 1 - progress)
    if schedule == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2  # computed from what is left, so that the end is exactly 0
    return least + (1 - least) * left


def annealed(config: TrainConfig, progress: float) -> TrainConfig:
    """Return the settings at a point of the run: learning rate, clip range, entropy bonus and priorities.

    The importance weights of prioritized minibatches grow to their full strength, ``priority_beta`` 1.

    Args:
        config: Settings at the start.
        progress: Share of the run that is done, 0 to 1.
    """
    return config.derived(
        learning_rate=config.learning_rate * share(config.lr_schedule, progress, config.min_lr_ratio),
        priority_beta=1 - (1 - config.priority_beta) * share("linear", progress),
        **{name: _annealed_coefficient(config, name, progress) for name in SCHEDULED},
    )


def _annealed_coefficient(config: TrainConfig, name: str, progress: float) -> float:
    initial: float = getattr(config, name)
    prefix = name.removesuffix("_coef")
    schedule, least = getattr(config, f"{prefix}_schedule"), getattr(config, f"min_{prefix}_ratio")
    return initial * share(schedule, progress, least)


def adapted_rate(rate: float, approx_kl: float, config: TrainConfig) -> float:
    """Return the learning rate after an update, with ``lr_schedule`` "adaptive".

    The rate is divided by 1.5 if the KL divergence was above ``2 * target_kl``, and multiplied by 1.5 if it was below
    ``target_kl / 2``. It stays between 1e-6 (or ``min_lr_ratio * learning_rate``, if that is higher) and 1e-2. If
    ``learning_rate`` itself is outside these bounds, it is the bound.

    Sources: ``AdaptiveScheduler`` of rl_games, which has the same factors and bounds, ``KLAdaptiveLR`` of skrl, and
    ``PPO`` of rsl_rl, where 1e-5 is the lower bound. They adapt after each minibatch or epoch. Here the rate is
    constant within an update.

    Args:
        rate: Learning rate of the update.
        approx_kl: Mean KL divergence over the minibatches of the update.
        config: Settings, of which ``learning_rate``, ``min_lr_ratio`` and ``target_kl`` are read.
    """
    if approx_kl > 2 * config.target_kl:
        lowest = max(config.min_lr_ratio * config.learning_rate, min(LOWEST_RATE, config.learning_rate))
        return max(rate / 1.5, lowest)
    if approx_kl < config.target_kl / 2:
        return min(rate * 1.5, max(HIGHEST_RATE, config.learning_rate))
    return rate
