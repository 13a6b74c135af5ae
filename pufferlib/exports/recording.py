"""Steps of a policy in its environment, which its copies outside of this library have to repeat."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.exports.trained import TrainedPolicy
from pufferlib.models.policies import FORBIDDEN
from pufferlib.seeding import env_seed

__all__ = ["Outputs", "Recording", "difference", "record"]

Array = npt.NDArray[Any]

ROWS = 4  # agents whose steps are repeated; others play along


@dataclass(frozen=True)
class Outputs:
    """Numbers that a policy made of the observations of a recording.

    Attributes:
        params: float32 ``(steps, rows, num_params)``.
        values: float32 ``(steps, rows)``.
        actions: The likeliest, as the environment takes them, ``(steps, rows, *shape)``.
    """

    params: Array
    values: Array
    actions: Array


@dataclass(frozen=True)
class Recording:
    """A policy's steps: what it saw, and what it made of it.

    Attributes:
        observations: As the environment shows them, ``(steps, rows, *shape)``.
        begins: bool ``(steps, rows)``: an episode begins, and the memory with it.
        outputs: Of torch.
    """

    observations: Array
    begins: Array
    outputs: Outputs

    def __iter__(self) -> Iterator[tuple[Array, Array]]:
        """Observations and beginnings, step by step."""
        return zip(self.observations, self.begins, strict=True)


@torch.inference_mode()
def record(trained: TrainedPolicy, steps: int) -> Recording:
    """Let the policy play its environment for ``steps`` steps, by sampled actions, so that it sees many states.

    The memory passes from step to step, and starts anew with each episode.
    """
    policy, vecenv = trained.policy, trained.vecenv
    generator = torch.Generator().manual_seed(env_seed(trained.seed, 0))
    state = policy.initial_state(vecenv.num_agents)
    rows = min(ROWS, vecenv.num_agents)
    shown, _ = vecenv.reset()
    begins = np.ones(vecenv.num_agents, bool)
    kept: list[tuple[Array, ...]] = []
    for _ in range(steps):
        for memory in state.values():
            memory[torch.from_numpy(begins)] = 0
        shown = np.array(shown)
        params, values = policy.forward_eval(torch.from_numpy(trained.normalize(shown)), state)
        likeliest = policy.distribution.to_env(policy.distribution.mode(params).numpy())
        kept.append(tuple(each[:rows].copy() for each in (shown, begins, params.numpy(), values.numpy(), likeliest)))
        actions = policy.distribution.to_env(policy.distribution.sample(params, generator).numpy())
        shown, _, terminals, truncations, _ = vecenv.step(actions)
        begins = terminals | truncations
    observations, beginnings, *outputs = (np.stack(each) for each in zip(*kept, strict=True))
    return Recording(observations, beginnings, Outputs(*outputs))


def difference(found: Outputs, expected: Outputs) -> float:
    """Greatest difference of an output, in relation to the largest of its agent and step where that is above 1.

    Where an action is forbidden, its logit is the same number in both. NaN differs from everything.
    """
    pair = found, expected
    new, old = (np.concatenate([each.params, each.values[..., None]], -1, dtype=np.float64) for each in pair)
    forbidden = old == FORBIDDEN
    size = np.abs(np.where(forbidden, 0, old)).max(-1, keepdims=True, initial=1)
    distance = np.abs(new - old) / np.where(forbidden, 1, size)
    return float(np.nan_to_num(distance, nan=np.inf).max(initial=0))
