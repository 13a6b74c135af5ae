"""One battle of the StarCraft Multi-Agent Challenge as a parallel PettingZoo environment."""

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete
from pettingzoo import ParallelEnv
from smac.env import StarCraft2Env  # PyPI's smac is another package, which has no smac.env

__all__ = ["Battle"]

PerAgent = dict[str, Any]


class Battle(ParallelEnv[str, Any, Any]):  # type: ignore[misc]  # pettingzoo has no types
    """A map of SMAC. Every unit of the controlled side is an agent.

    Args:
        name: Name of the map.
        difficulty: Difficulty of the opponent, as named by SMAC. "7" is very hard.
    """

    metadata = {"name": "smac", "render_modes": []}  # noqa: RUF012 - as PettingZoo declares it
    render_mode = None

    def __init__(self, name: str, *, difficulty: str = "7") -> None:
        self._options = {"map_name": name, "difficulty": difficulty}
        self._game = StarCraft2Env(**self._options)  # the game itself starts with the first reset
        about = self._game.get_env_info()
        self.possible_agents = [f"agent_{index}" for index in range(about["n_agents"])]
        self.agents: list[str] = []
        self._choices = int(about["n_actions"])
        self._space = Dict(
            {
                "observation": Box(-np.inf, np.inf, (about["obs_shape"],), np.float32),
                "action_mask": Box(0, 1, (self._choices,), np.int8),
            }
        )

    def observation_space(self, agent: str) -> Dict:
        """Return the observation space of every agent."""
        return self._space

    def action_space(self, agent: str) -> Discrete:
        """Return the action space of every agent."""
        return Discrete(self._choices)

    def reset(self, seed: int | None = None, options: PerAgent | None = None) -> tuple[PerAgent, PerAgent]:
        """Start a battle. With a seed, restart StarCraft."""
        if seed is not None:
            self._game.close()
            self._game = StarCraft2Env(**self._options, seed=seed)
        self._game.reset()
        self.agents = list(self.possible_agents)
        return self._observe(), {agent: {} for agent in self.agents}

    def step(self, actions: PerAgent) -> tuple[PerAgent, PerAgent, PerAgent, PerAgent, PerAgent]:
        """Run one step with all units."""
        chosen = [int(actions[agent]) for agent in self.possible_agents]
        legal = [
            action if mask[action] else int(mask.argmax()) for action, mask in zip(chosen, self._masks, strict=True)
        ]
        reward, over, info = self._game.step(legal)
        truncated = bool(over and info.get("episode_limit", False))
        observations, agents = self._observe(), self.agents
        self.agents = [] if over else agents
        return (
            observations,
            dict.fromkeys(agents, float(reward)),
            dict.fromkeys(agents, bool(over) and not truncated),
            dict.fromkeys(agents, truncated),
            {agent: dict(info) for agent in agents},
        )

    def _legal(self, actions: PerAgent) -> list[int]:
        """Return the actions, with illegal ones replaced by the first legal one."""
        chosen = zip((int(actions[agent]) for agent in self.possible_agents), self._masks, strict=True)
        return [action if mask[action] else int(mask.argmax()) for action, mask in chosen]

    def close(self) -> None:
        """Close the game."""
        self._game.close()

    def _observe(self) -> PerAgent:
        self._masks = np.array(self._game.get_avail_actions(), np.int8)
        seen = np.array(self._game.get_obs(), np.float32)
        return {
            agent: {"observation": seen[index], "action_mask": self._masks[index]}
            for index, agent in enumerate(self.possible_agents)
        }
