"""Cost of the rollout loop alone, with an environment and a network that do nothing. Also for PufferLib 3.0.0."""

import functools
import sys
from typing import Any

import numpy as np
import sides
import torch
from gymnasium.spaces import Box, Discrete

import pufferlib
import pufferlib.vector

HORIZON, SIZE, ACTIONS = 64, 4, 4


class Free(pufferlib.PufferEnv):  # type: ignore[misc]  # works with both libraries
    """Environment that does nothing.

    Args:
        buf: Arrays of a batch.
        num_envs: Number of agents.
        seed: Seed, which is ignored.
    """

    def __init__(self, buf: Any = None, num_envs: int = 64, seed: int = 0) -> None:
        self.single_observation_space = Box(-1, 1, (SIZE,), np.float32)
        self.single_action_space = Discrete(ACTIONS)
        self.num_agents = num_envs
        super().__init__(buf)

    def reset(self, seed: int | None = None) -> tuple[Any, list[Any]]:
        """Set all arrays to 0."""
        for array in (self.observations, self.rewards, self.terminals, self.truncations):
            array[:] = 0
        return self.observations, []

    def step(self, actions: Any) -> tuple[Any, ...]:
        """Return the arrays unchanged."""
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self) -> None:
        """Do nothing."""


def ours(agents: int, seconds: float) -> float:
    """Return the time of a step of our collector in microseconds."""
    from pufferlib.models import Policy
    from pufferlib.training import Rollout, TrainConfig
    from pufferlib.training.sources import make_collector

    class Constant(Policy):
        def forward_eval(self, observations: Any, state: Any = None) -> Any:
            return outputs

    torch.set_num_threads(1)
    outputs = torch.zeros(agents, ACTIONS), torch.zeros(agents)
    with pufferlib.vector.make(Free, env_kwargs={"num_envs": agents}, autoreset="same_step") as vecenv:
        policy = Constant(vecenv.driver_env, 8)
        rollout = Rollout(vecenv, policy, HORIZON, HORIZON * agents)
        generator = torch.Generator().manual_seed(0)
        collector = make_collector(vecenv, policy, rollout, TrainConfig(), generator)
        collector.reset(0)
        return sides.us_per_call(collector.collect, seconds) / HORIZON


def copies(agents: int, seconds: float) -> float:
    """Return the time to copy the data of a step in microseconds.

    The data are observations, rewards, terminals, truncations, actions, log-probabilities and values.
    """
    step = [
        np.zeros((agents, SIZE), np.float32),
        *(np.zeros(agents, kind) for kind in ("f4", "?", "?", "i4", "f4", "f4")),
    ]
    kept = [np.zeros((HORIZON, *part.shape), part.dtype) for part in step]

    def collect() -> None:
        for row in range(HORIZON):
            for into, part in zip(kept, step, strict=True):
                into[row] = part

    return sides.us_per_call(collect, seconds) / HORIZON


def puffer(agents: int, seconds: float) -> float:
    """Return the time of a step of PufferLib 3.0.0's ``evaluate`` in microseconds."""
    from pufferlib import pufferl

    class Constant(torch.nn.Module):
        hidden_size = 8

        def __init__(self) -> None:
            super().__init__()
            self.weight = torch.nn.Parameter(torch.zeros(1))  # the optimizer needs a parameter

        def forward_eval(self, observations: Any, state: Any = None) -> Any:
            return outputs

    torch.set_num_threads(1)
    outputs = torch.zeros(agents, ACTIONS), torch.zeros(agents, 1)
    creator = functools.partial(Free, num_envs=agents)
    vecenv = pufferlib.vector.make(creator, num_envs=1, backend=pufferlib.PufferEnv)
    sys.argv = ["puffer"]  # load_config parses the command line
    own = pufferl.load_config("puffer_breakout")["train"]
    same = {"device": "cpu", "use_rnn": False, "bptt_horizon": HORIZON, "minibatch_size": HORIZON * agents}
    same |= {"batch_size": "auto", "compile": False, "env": "free", "precision": "float32", "optimizer": "adam"}
    pufferl.PuffeRL.print_dashboard = lambda *args, **kwargs: None
    trainer = pufferl.PuffeRL({**own, **same}, vecenv, Constant())
    try:
        return sides.us_per_call(trainer.evaluate, seconds) / HORIZON
    finally:
        trainer.utilization.stop()
        vecenv.close()
