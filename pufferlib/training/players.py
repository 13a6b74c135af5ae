"""Players: they choose the actions of the agents in a vector environment, at random or with a policy."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt

from pufferlib.errors import PufferError
from pufferlib.legal_actions import LegalActions
from pufferlib.seeding import env_seed

if TYPE_CHECKING:
    import torch

    from pufferlib import models

__all__ = ["Player", "PolicyPlayer", "RandomPlayer"]

EVERYONE = slice(None)
Rows = npt.NDArray[np.intp] | slice


class Player(Protocol):
    """Chooses the actions of all agents, or of those in some rows."""

    def begin(self, rows: Any = EVERYONE) -> None:
        """Note that the agents in ``rows`` begin an episode."""

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """Choose the actions of the agents in ``rows``, after ``observations (num_agents, *shape)``."""


class RandomPlayer:
    """Draws legal actions uniformly; in environment i the draws follow from ``env_seed(seed, i)``.

    Actions are legal if the observations have no masks, or as their masks say (``pufferlib.legal_actions``).

    Args:
        vecenv: The environments, with whole batches. ``rows`` are those of whole environments.
        seed: Of the draws.
    """

    def __init__(self, vecenv: Any, seed: int) -> None:
        self._agents = vecenv.num_agents // vecenv.num_envs
        self._rows = np.arange(vecenv.num_agents)
        self._draws = [LegalActions(vecenv, self._agents, env_seed(seed, index)) for index in range(vecenv.num_envs)]

    def begin(self, rows: Any = EVERYONE) -> None:
        """See ``Player``: chance has no memory."""

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """See ``Player``."""
        starts = self._rows[rows][:: self._agents]
        return np.concatenate(
            [self._draws[row // self._agents].sample(observations[row : row + self._agents]) for row in starts]
        )


class PolicyPlayer:
    """Plays a policy, with a memory for each agent.

    Args:
        policy: Policy, which is put into evaluation mode.
        num_agents: Agents in the vector environment.
        generator: Source of the actions' randomness, on the policy's device.
        greedy: Take the likeliest action instead of sampling.
    """

    def __init__(self, policy: "models.Policy", num_agents: int, generator: "torch.Generator", greedy: bool) -> None:
        from pufferlib.models.engine import compile_policy  # who plays against chance needs no torch

        self._policy, self._generator, self._greedy = policy.eval(), generator, greedy
        self._engine = compile_policy(policy) if generator.device.type == "cpu" else None
        self._state = policy.initial_state(num_agents, generator.device)

    def begin(self, rows: Any = EVERYONE) -> None:
        """See ``Player``: the memory of these agents starts anew, and the weights are those of the policy now."""
        if self._engine is not None:
            self._engine.refresh()
        for memory in self._state.values():
            memory[rows] = 0

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """See ``Player``.

        Raises:
            PufferError: The policy's outputs are NaN.
        """
        import torch

        with torch.inference_mode():
            state = {name: memory[rows] for name, memory in self._state.items()}
            inputs = torch.from_numpy(observations[rows]).to(self._generator.device)
            params = self._params(inputs, state)
            if params.isnan().any():  # the likeliest of such would be the first action, whatever it sees
                raise PufferError(
                    "PolicyPlayer: the policy's outputs must be numbers, got NaN; look for NaN in its weights and in "
                    "observations"
                )
            for name, memory in state.items():
                self._state[name][rows] = memory
            distribution = self._policy.distribution
            chosen = distribution.mode(params) if self._greedy else distribution.sample(params, self._generator)
            return distribution.to_env(chosen.numpy(force=True))

    def _params(self, observations: "torch.Tensor", state: "models.State") -> "torch.Tensor":
        """Parameters of the distribution, a row for each observation; ``state`` moves on."""
        import torch

        if self._engine is None:
            return self._policy.forward_eval(observations, state)[0]
        params = np.empty((len(observations), self._engine.num_params), np.float32)
        self._engine.forward(observations, state, params, np.empty(len(params), np.float32))
        return torch.from_numpy(params)
