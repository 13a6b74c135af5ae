"""Griddly's worlds for one or several players."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from pettingzoo import ParallelEnv

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.spaces import Space

from .._shared.gym_alias import gym_is_gymnasium
from .._shared.options import check_counts, check_render_mode
from .vulkan import check_vulkan

with gym_is_gymnasium():  # griddly registers its worlds with gym
    from griddly import GymWrapper, gd

__all__ = ["make_env"]

OBSERVERS = {
    "vector": gd.ObserverType.VECTOR,
    "sprite_2d": gd.ObserverType.SPRITE_2D,
    "block_2d": gd.ObserverType.BLOCK_2D,
    "isometric": gd.ObserverType.ISOMETRIC,
}
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}
MAX_SEED = 1 << 31
Picture = npt.NDArray[np.uint8]
Info = dict[str, Any]


def make_env(
    name: str,
    *,
    level: int = 0,
    max_steps: int | None = None,
    observer: str = "vector",
    render_mode: str | None = None,
) -> gymnasium.Env[Any, Any] | ParallelEnv:
    """Make the world ``name``.

    Args:
        name: Official id.
        level: Index of the level. Each world has 1 to 10 levels.
        max_steps: Number of steps after which an episode is truncated, or None for no limit.
        observer: Type of observation: "vector", or an image: "sprite_2d", "block_2d" or "isometric".
        render_mode: None, or "rgb_array" for an image of the whole level.

    Raises:
        UnknownNameError: The observer does not exist.
        BindingMissing: The observer needs Vulkan, and there is no Vulkan device.
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"griddly/{name}"
    check_counts(where, 0, level=level)
    if max_steps is not None:
        check_counts(where, max_steps=max_steps)
    if observer not in OBSERVERS:
        raise UnknownNameError.of(where, "observer", observer, OBSERVERS)
    check_render_mode(where, render_mode)
    if observer != "vector":
        check_vulkan(where, f"observer={observer!r}")
    simulation = GriddlySimulation(
        where, gymnasium.registry[name].kwargs["yaml_file"], level, max_steps, observer, render_mode
    )
    return GriddlyEnv(simulation) if simulation.num_players == 1 else GriddlyParallelEnv(simulation)


class GriddlySimulation:
    """Simulation shared by the classes for one and for several players.

    Args:
        where: Name for error messages.
        file: YAML file of the world.
        level: Index of the level.
        max_steps: Number of steps after which an episode is truncated.
        observer: Type of observation.
        render_mode: None or "rgb_array".
    """

    def __init__(
        self, where: str, file: str, level: int, max_steps: int | None, observer: str, render_mode: str | None
    ) -> None:
        self.render_mode = render_mode
        self._max_steps = max_steps
        self._steps = 0
        self.griddly: Any = GymWrapper(
            yaml_file=file,
            level=0,  # without a level, the engine prints that it uses the first one
            player_observer_type=OBSERVERS[observer],
            global_observer_type=gd.ObserverType.VECTOR,
        )
        if level >= self.griddly.level_count:
            raise APIUsageError(f"{where}: level must be from 0 to {self.griddly.level_count - 1}, got {level}")
        self.griddly.reset(level_id=level)  # its spaces depend on the level
        self.num_players: int = self.griddly.player_count
        one = self.num_players == 1
        self.observation_space: Box = self.griddly.observation_space if one else self.griddly.observation_space[0]
        self.action_space: Space = self.griddly.action_space if one else self.griddly.action_space[0]

    def reset(self, stream: np.random.Generator) -> Any:
        """Start the level with a seed from ``stream``. Return the observation, a list if there are several players."""
        self.griddly.game.seed(int(stream.integers(MAX_SEED)))
        self._steps = 0
        return self.griddly.reset()

    def step(self, action: Any) -> tuple[Any, Any, bool, bool]:
        """Run one step. Return the observation, the reward or rewards, and whether it terminated or was truncated."""
        observation, reward, terminated, _ = self.griddly.step(action)
        self._steps += 1
        truncated = not terminated and self._steps == self._max_steps
        return observation, reward, terminated, truncated

    def picture(self) -> Picture | None:
        """Return the level as uint8 ``(10 * rows, 10 * columns, 3)``, or None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        return np.ascontiguousarray(self.griddly.render(mode="rgb_array", observer="global"))

    def close(self) -> None:
        """Free the engine. Closing twice is safe."""
        self.griddly = None


class GriddlyEnv(gymnasium.Env[npt.NDArray[Any], Any]):
    """A world with one player."""

    metadata = METADATA

    def __init__(self, simulation: GriddlySimulation) -> None:
        self._simulation = simulation
        self.render_mode = simulation.render_mode
        self.observation_space = simulation.observation_space
        self.action_space = simulation.action_space

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[npt.NDArray[np.uint8], Info]:
        """Start the level. The next step overwrites the observation."""
        super().reset(seed=seed)
        return self._simulation.reset(self.np_random), {}

    def step(self, action: Any) -> tuple[npt.NDArray[np.uint8], float, bool, bool, Info]:
        """Run one step. The next step overwrites the observation."""
        observation, reward, terminated, truncated = self._simulation.step(action)
        return observation, float(reward), terminated, truncated, {}

    def render(self) -> Picture | None:
        """Return the level as uint8 ``(10 * rows, 10 * columns, 3)``, or None without a ``render_mode``."""
        return self._simulation.picture()

    def close(self) -> None:
        """Free the engine."""
        self._simulation.close()


class GriddlyParallelEnv(ParallelEnv):  # type: ignore[misc]  # pettingzoo has no types
    """A world with several players. An episode ends for all of them together."""

    metadata: ClassVar[dict[str, Any]] = {**METADATA, "name": "griddly"}

    def __init__(self, simulation: GriddlySimulation) -> None:
        self._simulation = simulation
        self.render_mode = simulation.render_mode
        self.possible_agents = [f"player_{index}" for index in range(simulation.num_players)]
        self.agents: list[str] = []
        self._stream = np.random.default_rng()

    def observation_space(self, agent: str) -> Box:
        """Return the observation space of each player."""
        return self._simulation.observation_space

    def action_space(self, agent: str) -> Space:
        """Return the action space of each player."""
        return self._simulation.action_space

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[dict[str, Any], dict[str, Info]]:
        """Start the level. The next step overwrites the observations."""
        if seed is not None:
            self._stream = np.random.default_rng(seed)
        self.agents = list(self.possible_agents)
        observations = self._simulation.reset(self._stream)
        return self._by_agent(observations), {agent: {} for agent in self.agents}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Run one step. The next step overwrites the observations."""
        everyone = self.possible_agents
        observations, rewards, terminated, truncated = self._simulation.step([actions[agent] for agent in everyone])
        if terminated or truncated:
            self.agents = []
        return (
            self._by_agent(observations),
            {agent: float(reward) for agent, reward in zip(everyone, rewards, strict=True)},
            dict.fromkeys(everyone, terminated),
            dict.fromkeys(everyone, truncated),
            {agent: {} for agent in everyone},
        )

    def render(self) -> Picture | None:
        """Return the level as uint8 ``(10 * rows, 10 * columns, 3)``, or None without a ``render_mode``."""
        return self._simulation.picture()

    def close(self) -> None:
        """Free the engine."""
        self._simulation.close()

    def _by_agent(self, observations: Any) -> dict[str, Any]:
        return dict(zip(self.possible_agents, observations, strict=True))
