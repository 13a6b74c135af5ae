"""Slime volleyball for one or two agents."""

from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete, MultiBinary
from pettingzoo import ParallelEnv

from .._shared.gym_alias import gym_is_gymnasium
from .._shared.options import check_counts, check_render_mode, check_switches

with gym_is_gymnasium(), np.printoptions():  # the package changes NumPy's print options
    from slimevolleygym import slimevolley as package

# Draw with OpenCV, because the default opens a window. This changes neither the game nor numeric observations.
package.setPixelObsMode()

__all__ = ["make_env"]

KINDS = {
    "SlimeVolley-v0": package.SlimeVolleyEnv,
    "SlimeVolleyPixel-v0": package.SlimeVolleyPixelEnv,
    "SlimeVolleyNoFrameskip-v0": package.SlimeVolleyAtariEnv,
    "SlimeVolleySurvivalNoFrameskip-v0": package.SlimeVolleySurvivalAtariEnv,
}
SIDES = ("right", "left")
METADATA: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}
Picture = npt.NDArray[np.uint8]
Info = dict[str, Any]


def make_env(
    name: str, *, max_episode_steps: int = 3_000, self_play: bool = False, render_mode: str | None = None
) -> gymnasium.Env[Any, Any] | ParallelEnv:
    """Make the environment ``name``.

    Args:
        name: Official id.
        max_episode_steps: Number of steps after which a game is truncated, at 30 steps per second.
        self_play: Whether a second agent plays instead of the package's opponent.
        render_mode: None, or "rgb_array" for images of ``(336, 672, 3)``.

    Raises:
        APIUsageError: A value has the wrong type or is out of range.
    """
    where = f"slimevolley/{name}"
    check_counts(where, max_episode_steps=max_episode_steps)
    check_switches(where, self_play=self_play)
    check_render_mode(where, render_mode)
    simulation = SlimeVolleySimulation(KINDS[name](), max_episode_steps, render_mode)
    return SlimeVolleyParallelEnv(simulation) if self_play else SlimeVolleyEnv(simulation)


class SlimeVolleySimulation:
    """Simulation shared by the classes for one and for two agents.

    Args:
        env: The package's environment.
        max_episode_steps: Number of steps after which a game is truncated.
        render_mode: None or "rgb_array".
    """

    def __init__(self, env: Any, max_episode_steps: int, render_mode: str | None) -> None:
        self.env = env
        self.render_mode = render_mode
        self.env.t_limit = self._max_steps = max_episode_steps
        self.bonus = 0.01 if env.survival_bonus else 0.0  # part of the reward in each step, of either side
        self.action_space: Discrete | MultiBinary = Discrete(6) if env.atari_mode else MultiBinary(3)
        self.observation_space: Box = Box(-np.inf, np.inf, (12,), np.float32)
        if env.from_pixels:
            self.observation_space = Box(0, 255, (package.PIXEL_HEIGHT, package.PIXEL_WIDTH, 3), np.uint8)

    def reset(self, stream: np.random.Generator) -> npt.NDArray[Any]:
        """Start a game with the random generator ``stream``, and return the observation of the agent on the right."""
        self.env.game.np_random = stream
        self.env.policy.reset()
        return self.converted(self.env.reset())

    def step(self, *actions: Any) -> tuple[npt.NDArray[Any], npt.NDArray[Any], float, bool, bool]:
        """Step with an action on the right, and optionally one on the left.

        Returns:
            Observations of both sides, the reward on the right, and whether it terminated or was truncated.
        """
        observation, reward, done, info = self.env.step(*actions)
        terminated = min(self.env.game.agent_left.life, self.env.game.agent_right.life) <= 0
        other = self.converted(info["otherObs"])
        return self.converted(observation), other, float(reward), terminated, done and not terminated

    def converted(self, observation: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Convert ``observation`` to the dtype of its space."""
        return observation.astype(self.observation_space.dtype)

    def picture(self) -> Picture | None:
        """Return the court as uint8 ``(336, 672, 3)``, or None without a ``render_mode``."""
        return self.env.game.display(None) if self.render_mode else None


class SlimeVolleyEnv(gymnasium.Env[npt.NDArray[Any], Any]):
    """Environment with one agent, on the right."""

    metadata = METADATA

    def __init__(self, simulation: SlimeVolleySimulation) -> None:
        self._simulation = simulation
        self.render_mode = simulation.render_mode
        self.observation_space = simulation.observation_space
        self.action_space = simulation.action_space

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[npt.NDArray[Any], Info]:
        """Start a game."""
        super().reset(seed=seed)
        return self._simulation.reset(self.np_random), {}

    def step(self, action: Any) -> tuple[npt.NDArray[Any], float, bool, bool, Info]:
        """Run one step of 1/30 s."""
        observation, _, reward, terminated, truncated = self._simulation.step(action)
        return observation, reward, terminated, truncated, {}

    def render(self) -> Picture | None:
        """Return the court as uint8 ``(336, 672, 3)``, or None without a ``render_mode``."""
        return self._simulation.picture()


class SlimeVolleyParallelEnv(ParallelEnv):  # type: ignore[misc]  # pettingzoo has no types
    """Environment with two agents, each of which sees the court as if it stood on the right."""

    metadata: ClassVar[dict[str, Any]] = {**METADATA, "name": "slimevolley"}

    def __init__(self, simulation: SlimeVolleySimulation) -> None:
        self._simulation = simulation
        self.render_mode = simulation.render_mode
        self.possible_agents = list(SIDES)
        self.agents: list[str] = []
        self._stream = np.random.default_rng()

    def observation_space(self, agent: str) -> Box:
        """Return the observation space of each agent."""
        return self._simulation.observation_space

    def action_space(self, agent: str) -> Discrete | MultiBinary:
        """Return the action space of each agent."""
        return self._simulation.action_space

    def reset(self, seed: int | None = None, options: Info | None = None) -> tuple[dict[str, Any], dict[str, Info]]:
        """Start a game, which looks the same from both sides except for the ball."""
        if seed is not None:
            self._stream = np.random.default_rng(seed)
        right = self._simulation.reset(self._stream)
        left = np.flip(right, 1).copy() if right.ndim == 3 else self._simulation.converted(self._left())
        self.agents = list(SIDES)
        return {"right": right, "left": left}, {side: {} for side in SIDES}

    def step(
        self, actions: dict[str, Any]
    ) -> tuple[dict[str, Any], dict[str, float], dict[str, bool], dict[str, bool], dict[str, Info]]:
        """Run one step of 1/30 s."""
        right, left, reward, terminated, truncated = self._simulation.step(actions["right"], actions["left"])
        if terminated or truncated:
            self.agents = []
        return (
            {"right": right, "left": left},
            {"right": reward, "left": 2 * self._simulation.bonus - reward},
            dict.fromkeys(SIDES, terminated),
            dict.fromkeys(SIDES, truncated),
            {side: {} for side in SIDES},
        )

    def render(self) -> Picture | None:
        """Return the court as uint8 ``(336, 672, 3)``, or None without a ``render_mode``."""
        return self._simulation.picture()

    def close(self) -> None:
        """Do nothing, since there is nothing to release."""

    def _left(self) -> npt.NDArray[np.float64]:
        observation: npt.NDArray[np.float64] = self._simulation.env.game.agent_left.getObservation()
        return observation
