"""Recording of a policy in its environment, to check exported files against."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.exports.trained import TrainedPolicy, in_env_units
from pufferlib.models.policies import FORBIDDEN
from pufferlib.seeding import env_seed

__all__ = ["Outputs", "Recording", "difference", "record"]

Array = npt.NDArray[Any]

ROWS = 4  # maximum number of agents that are recorded


@dataclass(frozen=True)
class Outputs:
    """Outputs of a policy for the observations of a recording.

    Attributes:
        params: Parameters of the distributions, float32 ``(steps, rows, num_params)``.
        values: Values, float32 ``(steps, rows)``.
        actions: Most likely actions in the format of the environment, ``(steps, rows, *shape)``.
    """

    params: Array
    values: Array
    actions: Array


@dataclass(frozen=True)
class Recording:
    """Observations and outputs of a policy.

    Attributes:
        observations: Observations of the environment before normalization, ``(steps, rows, *shape)``.
        begins: True where an episode starts and the memory is cleared, bool ``(steps, rows)``.
        outputs: Outputs of the original policy in torch.
    """

    observations: Array
    begins: Array
    outputs: Outputs

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """Iterate over the observations and ``begins`` of each step."""
        return zip(self.observations, self.begins, strict=True)


@torch.inference_mode()
def record(trained: TrainedPolicy, steps: int) -> Recording:
    """Play ``steps`` steps of the environment and record the policy.

    Actions are sampled, to reach many states. The memory is carried from step to step and cleared at the start of each
    episode.
    """
    policy, vecenv = trained.policy, trained.vecenv
    generator = torch.Generator().manual_seed(env_seed(trained.seed, 0))
    state = policy.initial_state(vecenv.num_agents)
    rows = min(ROWS, vecenv.num_agents)
    seen, _ = vecenv.reset()
    begins = np.ones(vecenv.num_agents, bool)
    kept: list[tuple[Array, ...]] = []
    for _ in range(steps):
        for memory in state.values():
            memory[torch.from_numpy(begins)] = 0
        seen = np.array(seen)
        params, values = policy.forward_eval(torch.from_numpy(trained.normalize(seen)), state)
        known = _in_env_units(policy.distribution, params)
        most_likely = policy.distribution.to_env(policy.distribution.mode(params).numpy())
        kept.append(tuple(each[:rows].copy() for each in (seen, begins, known.numpy(), values.numpy(), most_likely)))
        actions = policy.distribution.to_env(policy.distribution.sample(params, generator).numpy())
        seen, _, terminals, truncations, _ = vecenv.step(actions)
        begins = terminals | truncations
    observations, beginnings, *outputs = (np.stack(each) for each in zip(*kept, strict=True))
    return Recording(observations, beginnings, Outputs(*outputs))


def _in_env_units(distribution: Any, params: torch.Tensor) -> torch.Tensor:
    """Return the parameters as exported files do: rescaled actions have the units of the action space."""
    if not getattr(distribution, "is_rescaled", False):
        return params
    reals = getattr(distribution, "reals", distribution)
    units = (torch.from_numpy(each.ravel()) for each in (reals.start, reals.scale))
    return in_env_units(params, distribution.num_logits, *units)


def difference(found: Outputs, expected: Outputs) -> float:
    """Return the largest difference of an output, relative to the largest output of the same agent and step.

    Outputs up to 1 are not scaled. The logit of a forbidden action must be the same number in both. NaN counts as an
    infinite difference.
    """
    pair = found, expected
    new, old = (np.concatenate([each.params, each.values[..., None]], -1, dtype=np.float64) for each in pair)
    forbidden = old == FORBIDDEN
    size = np.abs(np.where(forbidden, 0, old)).max(-1, keepdims=True, initial=1)
    distance = np.abs(new - old) / np.where(forbidden, 1, size)
    return float(np.nan_to_num(distance, nan=np.inf).max(initial=0))
