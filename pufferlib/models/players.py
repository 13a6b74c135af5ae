"""Players that choose the actions of agents in a vector environment, at random or with a policy."""

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
    """Player that chooses the actions of all agents, or of the agents in some rows."""

    def begin(self, rows: Any = EVERYONE) -> None:
        """Start new episodes for the agents in ``rows``."""

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """Choose the actions of the agents in ``rows``, given ``observations (num_agents, *shape)``."""


class RandomPlayer:
    """Player that draws legal actions uniformly. Environment i uses the seed ``env_seed(seed, i)``.

    If the observations contain action masks, only the actions allowed by them are legal (``pufferlib.legal_actions``).

    Args:
        vecenv: Environments, with whole batches. ``rows`` must be the rows of whole environments.
        seed: Seed of the draws.
    """

    def __init__(self, vecenv: Any, seed: int) -> None:
        self._agents = vecenv.num_agents // vecenv.num_envs
        self._rows = np.arange(vecenv.num_agents)
        self._draws = [LegalActions(vecenv, self._agents, env_seed(seed, index)) for index in range(vecenv.num_envs)]

    def begin(self, rows: Any = EVERYONE) -> None:
        """Do nothing, because random play has no memory."""

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """Draw the actions of the agents in ``rows``."""
        starts = self._rows[rows][:: self._agents]
        return np.concatenate(
            [self._draws[row // self._agents].sample(observations[row : row + self._agents]) for row in starts]
        )


class PolicyPlayer:
    """Player that uses a policy, with a memory for each agent.

    Args:
        policy: Policy, which is put into evaluation mode.
        num_agents: Number of agents in the vector environment.
        generator: Random number generator for actions, on the policy's device.
        greedy: Take the most likely action instead of sampling.
    """

    def __init__(self, policy: "models.Policy", num_agents: int, generator: "torch.Generator", greedy: bool) -> None:
        from pufferlib.models.engine import compile_policy  # random play must not load torch

        self._policy, self._generator, self._greedy = policy.eval(), generator, greedy
        self._engine = compile_policy(policy) if generator.device.type == "cpu" else None
        self._state = policy.initial_state(num_agents, generator.device)

    def begin(self, rows: Any = EVERYONE) -> None:
        """Clear the memory of the agents in ``rows``, and use the current weights of the policy."""
        if self._engine is not None:
            self._engine.refresh()
        for memory in self._state.values():
            memory[rows] = 0

    def act(self, observations: npt.NDArray[Any], rows: Rows = EVERYONE) -> Any:
        """Choose the actions of the agents in ``rows``.

        Raises:
            PufferError: The policy's outputs are NaN.
        """
        import torch

        with torch.inference_mode():
            device = self._generator.device
            index = rows if isinstance(rows, slice) else torch.from_numpy(rows).to(device)
            state = {name: memory[index] for name, memory in self._state.items()}
            inputs = torch.from_numpy(observations[rows]).to(device)
            params = self._params(inputs, state)
            if params.isnan().any():  # the mode of NaN would always be the first action
                raise PufferError(
                    "PolicyPlayer: the policy's outputs must be numbers, got NaN; look for NaN in its weights and in "
                    "observations"
                )
            for name, memory in state.items():
                self._state[name][index] = memory
            distribution = self._policy.distribution
            chosen = distribution.mode(params) if self._greedy else distribution.sample(params, self._generator)
            return distribution.to_env(chosen.numpy(force=True))

    def _params(self, observations: "torch.Tensor", state: "models.State") -> "torch.Tensor":
        """Return the parameters of the action distribution, one row per observation. ``state`` is updated in place."""
        import torch

        if self._engine is None:
            return self._policy.forward_eval(observations, state)[0]
        params = np.empty((len(observations), self._engine.num_params), np.float32)
        self._engine.forward(observations, state, params, np.empty(len(params), np.float32))
        return torch.from_numpy(params)
