"""Environments that begin the episodes of robots, one for all copies of a batch."""

import abc
import importlib.metadata
import json
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import flatten
from gymnasium.utils.seeding import np_random

from pufferlib.robots.task import is_suite

__all__ = ["Original", "original_of"]


class Original(abc.ABC):
    """Environment that is given the simulation and the random generator of the copy that it resets.

    Args:
        env: Environment without wrappers, that nothing else uses.

    Attributes:
        model: Model of the simulation.
        package: Name and version of the package that the environment is from.
    """

    model: Any
    package: str

    def __init__(self, env: Any) -> None:
        self._env = env

    @abc.abstractmethod
    def generator(self) -> Any:
        """Return a random generator for a copy."""

    @abc.abstractmethod
    def reset(self, data: Any, generator: Any, seed: int | None) -> tuple[Any, dict[str, Any], Any]:
        """Begin an episode. Return the observation as one array, the info and the random generator of the copy.

        Args:
            data: Simulation of the copy.
            generator: Random generator of the copy.
            seed: Seed of the generator, or None to continue its stream.
        """

    @abc.abstractmethod
    def save(self, generator: Any) -> str:
        """Return the state of a random generator."""

    @abc.abstractmethod
    def load(self, data: Any, generator: Any, state: str) -> None:
        """Restore a result of ``save``, and prepare a simulation whose state was restored for the next step."""

    @abc.abstractmethod
    def draw(self, env: Any, data: Any) -> Any:
        """Draw a simulation with another environment of the same kind, and return its image."""

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


class GymnasiumOriginal(Original):
    """Robot of Gymnasium."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self.model = env.model
        self.package = f"Gymnasium {gymnasium.__version__}"

    def generator(self) -> np.random.Generator:
        """See ``Original``."""
        return np_random()[0]

    def reset(self, data: Any, generator: Any, seed: int | None) -> tuple[Any, dict[str, Any], Any]:
        """See ``Original``."""
        self._env.data, self._env.np_random = data, generator
        return *self._env.reset(seed=seed), self._env.np_random

    def save(self, generator: np.random.Generator) -> str:
        """See ``Original``."""
        return json.dumps(generator.bit_generator.state)

    def load(self, data: Any, generator: np.random.Generator, state: str) -> None:
        """See ``Original``."""
        generator.bit_generator.state = json.loads(state)

    def draw(self, env: Any, data: Any) -> Any:
        """See ``Original``."""
        mujoco.mj_copyData(env.unwrapped.data, self.model, data)
        return env.render()


class SuiteOriginal(Original):
    """Task of dm_control."""

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._physics = env.dm_env.physics
        self.model = self._physics.model.ptr
        self.package = f"dm_control {importlib.metadata.version('dm_control')}"

    def generator(self) -> np.random.RandomState:
        """See ``Original``."""
        return np.random.RandomState(0)

    def reset(self, data: Any, generator: Any, seed: int | None) -> tuple[Any, dict[str, Any], Any]:
        """See ``Original``. dm_control resets a simulation of its own, which is then copied."""
        self._env.dm_env.task._random = generator
        observation, info = self._env.reset(seed=seed)
        mujoco.mj_copyData(data, self.model, self._physics.data.ptr)
        return flatten(self._env.observation_space, observation), info, generator

    def save(self, generator: np.random.RandomState) -> str:
        """See ``Original``."""
        return json.dumps(generator.get_state(legacy=False), default=np.ndarray.tolist)

    def load(self, data: Any, generator: np.random.RandomState, state: str) -> None:
        """See ``Original``. A step of dm_control continues from ``mj_step1``."""
        generator.set_state(json.loads(state))
        mujoco.mj_step1(self.model, data)

    def draw(self, env: Any, data: Any) -> Any:
        """See ``Original``."""
        mujoco.mj_copyData(env.unwrapped.dm_env.physics.data.ptr, self.model, data)
        return env.render()


def original_of(env: Any) -> Original:
    """Return the original for an environment without wrappers."""
    return SuiteOriginal(env) if is_suite(env) else GymnasiumOriginal(env)
