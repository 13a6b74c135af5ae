"""PettingZoo's parallel interface for native environments with several agents."""

from typing import Any

import numpy as np
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space

__all__ = ["ByAgent", "PettingZooEnv", "to_pettingzoo"]

ByAgent = dict[str, Any]


def to_pettingzoo(env: PufferEnv) -> "PettingZooEnv":
    """Wrap a native environment in PettingZoo's parallel interface.

    Each row is an agent, named ``"agent_0"`` and so on. An agent leaves when its episode ends and returns after the
    next reset.

    Args:
        env: Native environment with autoreset "same_step" or "disabled". The result owns it.

    Raises:
        APIUsageError: ``env`` is not a native environment in this process, or its autoreset mode is "next_step".
    """
    return PettingZooEnv(env)


class PettingZooEnv(ParallelEnv[str, Array, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """PettingZoo parallel environment around a native environment, created by ``to_pettingzoo``.

    Attributes:
        np_random: Generator for wrappers, such as SuperSuit's ``frame_skip_v0``. ``reset`` seeds it. The environment
            uses it only for the seed of a first ``reset`` without one.
    """

    def __init__(self, env: PufferEnv) -> None:
        if not isinstance(env, PufferEnv) or env.emulated:
            raise APIUsageError(
                f"to_pettingzoo: env must be a native PufferEnv, got {type(env).__name__}; the environment behind an "
                "emulated one has an interface of its own already, and a vector environment has one agent too many"
            )
        if env.autoreset == AutoresetMode.NEXT_STEP:
            raise APIUsageError('to_pettingzoo: autoreset must be "same_step" or "disabled", got "next_step"')
        self._env = env
        self.possible_agents = [f"agent_{row}" for row in range(env.num_agents)]
        self.agents: list[str] = []
        self.render_mode = getattr(env, "render_mode", None)
        self.metadata = {"name": type(env).__name__, **getattr(env, "metadata", {})}
        self.np_random, _ = seeding.np_random()
        self._was_reset = False
        self._rows = {agent: row for row, agent in enumerate(self.possible_agents)}

    def observation_space(self, agent: str) -> Space:
        """Return the observation space, which is the same for all agents."""
        return self._env.single_observation_space

    def action_space(self, agent: str) -> Space:
        """Return the action space, which is the same for all agents."""
        return self._env.single_action_space

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[ByAgent, ByAgent]:
        """Start a new episode of every agent that is present. Options are ignored."""
        if seed is not None:
            self.np_random, _ = seeding.np_random(seed)
        elif not self._was_reset:  # different games in each environment, as with those of PettingZoo
            seed = int(self.np_random.integers(2**31))
        self._was_reset = True
        observations, _ = self._env.reset(seed)
        self.agents = [agent for agent, row in self._rows.items() if self._env.masks[row]]
        return self._by_agent(observations), {agent: {} for agent in self.agents}

    def step(self, actions: ByAgent) -> tuple[ByAgent, ByAgent, ByAgent, ByAgent, ByAgent]:
        """Take one step with every agent.

        Infos of the environment are returned as the info of the first agent. After all agents have left, ``step({})``
        returns five empty dicts.

        Args:
            actions: Action of each agent in ``agents``.

        Raises:
            APIUsageError: An agent has no action, an action does not fit the space, or actions are given after all
                agents have left.
        """
        env, alive = self._env, self.agents
        if not alive and not actions:
            return {}, {}, {}, {}, {}
        missing = [agent for agent in alive if agent not in actions]
        if missing or not alive:
            raise APIUsageError(
                f"to_pettingzoo: step needs an action of every agent, got none of {missing}"
                if missing
                else "to_pettingzoo: all agents have left; call reset first"
            )
        rows: list[Any] = [*np.zeros_like(env.actions)]  # a list, so that the environment checks what it is given
        for agent in alive:
            rows[self._rows[agent]] = actions[agent]
        observations, rewards, terminals, truncations, infos = env.step(rows)
        ended = terminals | truncations
        shown = observations.copy()
        if env.autoreset == AutoresetMode.SAME_STEP:
            shown[ended] = env.final_observations[ended]
        agent_infos: ByAgent = {agent: {} for agent in alive}
        for info in infos:
            agent_infos[alive[0]] |= info
        self.agents = [agent for agent in alive if env.masks[row := self._rows[agent]] and not ended[row]]
        return (
            {agent: shown[self._rows[agent]] for agent in alive},
            {agent: float(rewards[self._rows[agent]]) for agent in alive},
            {agent: bool(terminals[self._rows[agent]]) for agent in alive},
            {agent: bool(truncations[self._rows[agent]]) for agent in alive},
            agent_infos,
        )

    def render(self) -> Any:
        """Render the current frame as ``render_mode`` requires. Return None without a ``render_mode``."""
        return self._env.render() if self.render_mode else None  # type: ignore[attr-defined]

    def close(self) -> None:
        """Release all resources of the environment."""
        self._env.close()

    def _by_agent(self, observations: Array) -> ByAgent:
        return {agent: observations[self._rows[agent]].copy() for agent in self.agents}
