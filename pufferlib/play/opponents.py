"""Who plays the other agents of a game that a person plays, or all of one that a person watches."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pufferlib.train.runs import Run

__all__ = ["Others", "RandomOthers", "TrainedOthers"]


class Others(Protocol):
    """Chooses the actions of all agents; that of a person who plays is replaced."""

    def begin(self, agents: npt.NDArray[np.bool_] | None = None) -> None:
        """An episode begins: of the agents for which ``agents (num_agents,)`` is True; None: of all."""

    def act(self, observations: Any) -> Any:
        """The actions that follow ``observations (num_agents, *shape)``."""


class RandomOthers:
    """Agents that act at random in the vector environment ``env``."""

    def __init__(self, env: Any) -> None:
        self._space = env.action_space

    def begin(self, agents: npt.NDArray[np.bool_] | None = None) -> None:
        """See ``Others``."""

    def act(self, observations: Any) -> Any:
        """See ``Others``."""
        return self._space.sample()


class TrainedOthers:
    """Agents that act as the policy of a run does.

    Args:
        files: The run.
        config: Its settings, with the keywords of the environment that is played.
        num_agents: Rows of observations.
        seed: Of their choices.
        greedy: They take the likeliest action instead of sampling.

    Raises:
        APIUsageError: The checkpoint does not fit the environment.
    """

    def __init__(self, files: Run, config: Any, num_agents: int, seed: int, greedy: bool = False) -> None:
        import torch

        from pufferlib.train.runs import load_policy

        self._policy = load_policy(config, files)
        self._device = next(self._policy.parameters()).device
        self._generator = torch.Generator(self._device).manual_seed(seed)
        self._num_agents, self._greedy = num_agents, greedy
        self.begin()

    def begin(self, agents: npt.NDArray[np.bool_] | None = None) -> None:
        """See ``Others``."""
        import torch

        if agents is None:
            self._state = self._policy.initial_state(self._num_agents, self._device)
            return
        with torch.inference_mode():
            for memory in self._state.values():
                memory[torch.from_numpy(agents)] = 0

    def act(self, observations: Any) -> Any:
        """See ``Others``."""
        import torch

        with torch.inference_mode():
            params, _ = self._policy.forward_eval(torch.from_numpy(observations).to(self._device), self._state)
            distribution = self._policy.distribution
            chosen = distribution.mode(params) if self._greedy else distribution.sample(params, self._generator)
            return distribution.to_env(chosen)
