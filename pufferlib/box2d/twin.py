"""Box2D tasks that are stepped in C with the results of Gymnasium's: their lookup and their games."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.utils.seeding import np_random
from gymnasium.wrappers import TimeLimit

from pufferlib.box2d._box2d import PICTURE_SHAPE, RAYS, TEXT_SHAPE, Box2DCopies
from pufferlib.box2d.engine import VERSION, box2d, engine
from pufferlib.box2d.table import CHANNELS_FIRST, FRESH_WORLD, TASKS
from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import source_hash
from pufferlib.registry.games import (
    LAYERS,
    GymnasiumTwin,
    SteppedGames,
    UnlikeOriginalError,
    class_name,
    equal_or_none,
)

__all__ = ["Box2DBatch", "Box2DTwin", "find_box2d"]

CHECKED_STEPS = 150  # in which a random player touches the ground
CHECKED_PICTURES = 60  # in which the camera has come close to the car
MAX_POWER = 1000.0  # of the wind. A hurricane would make Box2D throw exceptions
RAY_LENGTH = 160 / 30.0
ENLARGED = 4  # images of CarRacing
MAX_STEPS = 9990  # of an episode of CarRacing. Later, a reward could have five characters
TEXT = np.dtype([("width", np.int32), ("greys", np.uint8, TEXT_SHAPE)])  # PictureText


class Box2DBatch(SteppedGames):
    """Games of a task, each with a world of its own. Steps run in threads.

    Box2D cannot copy a world. A saved state has the actions of the episode, which ``load_games`` plays again.

    Args:
        name: Name for error messages.
        task: Name of the task in ``box2d.h``.
        options: Value of each field of ``Box2DOptions`` except ``texts``.
        num_games: Number of games.
        autoreset: "same_step", "next_step" or "disabled".
        num_threads: Maximum number of threads that work on a step.
        affinity: Core of the first thread, plus 1, after which those of the helpers come. 0 for any.

    Raises:
        APIUsageError: CarRacing has no step limit, or one above ``MAX_STEPS``.
        PufferError: A helper thread could not be started.
    """

    def __init__(
        self,
        name: str,
        task: str,
        options: dict[str, Any],
        num_games: int,
        autoreset: str,
        num_threads: int,
        affinity: int = 0,
    ) -> None:
        super().__init__(name, num_games, autoreset)
        self._keeps_world = options["keeps_world"]
        self._has_laps = task == "CarRacing"
        self._is_transposed = options["channels_first"]
        self._texts = _reward_texts(options["max_steps"]) if self._has_laps else None
        options = {**options, "texts": 0 if self._texts is None else self._texts.ctypes.data}
        self._copies = Box2DCopies(task, options, engine(), num_games, num_threads, affinity)
        for index in range(num_games):
            self._copies.seed(index, np_random()[1] % 2**64)

    def _bind(self) -> None:
        self._copies.bind(
            self._observations.reshape(self._num_games, -1).view(np.uint8),
            self._actions.reshape(self._num_games, -1).view(np.uint32), self._rewards,
            self._terminals, self._truncations, self.exact_rewards, self.elapsed,
        )  # fmt: skip

    def _begin(self, index: int, seed: int | None) -> dict[str, Any]:
        if seed is not None:
            self._copies.seed(index, seed)
        self._copies.begin(index)
        return {}

    def _step(self, order: npt.NDArray[np.int32]) -> None:
        self._copies.step(order)

    def _fault(self) -> str:
        return "its action has a NaN"

    def infos_of(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step: ``lap_finished`` at the end of an episode of CarRacing."""
        return {"lap_finished": self._copies.has_finished(index)} if self._has_laps and self._terminals[index] else {}

    def picture(self, index: int) -> npt.NDArray[np.uint8]:
        """Return an image of a game: of CarRacing the enlarged observation, of the others its bodies."""
        if self._has_laps:
            small: npt.NDArray[np.uint8] = self._observations[index]
            small = small.transpose(1, 2, 0) if self._is_transposed else small
            return small.repeat(ENLARGED, axis=0).repeat(ENLARGED, axis=1)
        picture = np.zeros(PICTURE_SHAPE, np.uint8)
        self._copies.draw(index, picture)
        return picture

    def _save(self, index: int) -> bytes:
        if self._keeps_world:
            raise APIUsageError(
                f"{self._name}: the state of its Box2D world depends on earlier episodes and cannot be saved; "
                f"box2d/{self._name} has a new world for each episode"
            )
        return self._copies.save(index)

    def _load(self, index: int, state: bytes) -> None:
        self._copies.load(index, state)

    def close(self) -> None:
        """Free the worlds."""
        self._copies.close()


@dataclass(frozen=True)
class Box2DTwin(GymnasiumTwin):
    """Box2D task that is stepped in C.

    Attributes:
        task: Name of the task in ``box2d.h``.
        options: Value of each field of ``Box2DOptions`` except ``texts``.
    """

    task: str
    options: Mapping[str, Any]

    def games(self, num_games: int, autoreset: str, num_threads: int, affinity: int = 0) -> Box2DBatch:
        """See ``GymnasiumTwin``."""
        options = {**self.options, "max_steps": self.max_steps}
        return Box2DBatch(self.name, self.task, options, num_games, autoreset, num_threads, affinity)

    def draw_action(self, rng: np.random.Generator) -> Any:
        """Return a random action."""
        space: Any = self.action_space
        return rng.uniform(-1, 1, space.shape) if isinstance(space, Box) else rng.integers(space.n)


def find_box2d(name: str, keywords: Mapping[str, Any], create: Callable[[], Any]) -> Box2DTwin | None:
    """Return the task in C that equals an environment, or None if there is none or Box2D cannot be imported.

    The first steps are compared with those of Gymnasium. If they differ, or if Box2D's library cannot be used, a
    warning says so.

    Args:
        name: Name of the environment.
        keywords: Keyword arguments of the environment.
        create: Function that makes the emulated environment of Gymnasium with these keyword arguments.
    """
    try:
        box2d()
    except (ImportError, OSError):  # the original environment reports what is missing
        return None
    return _box2d_twin(name, keywords, create)


def _box2d_twin(name: str, keywords: Mapping[str, Any], create: Callable[[], Any]) -> Box2DTwin | None:
    try:
        env = create()
        found = _options_of(env.env)
    except Exception:  # the original environment reports what is wrong
        return None
    if found is None:
        return None
    task, options, max_steps = found
    twin = Box2DTwin(
        name,
        {key: repr(value) for key, value in keywords.items()},
        f"Gymnasium {gymnasium.__version__}",
        f"Box2D {VERSION}, numpy {np.__version__}, {source_hash}",
        env.single_observation_space,
        env.single_action_space,
        env.metadata["render_fps"],
        max_steps,
        task,
        options,
    )
    steps = CHECKED_PICTURES if task == "CarRacing" else CHECKED_STEPS
    return equal_or_none(twin, env.env.env, steps)  # below EpisodeStats


def _options_of(env: Any) -> tuple[str, dict[str, Any], int] | None:
    """Return the task of an environment, its options and its step limit, or None if C does not have it."""
    limit, wrappers = 0, set()
    while isinstance(env, gymnasium.Wrapper):
        wrappers.add(class_name(env))
        if class_name(env) not in (FRESH_WORLD, CHANNELS_FIRST) and not isinstance(env, LAYERS):
            return None
        limit = env._max_episode_steps if isinstance(env, TimeLimit) else limit
        env = env.env
    task = TASKS.get(class_name(env))
    if task is None or env.render_mode is not None:
        return None
    if task == "CarRacing" and (env.verbose or not 0 < limit <= MAX_STEPS):
        return None
    numbers = {name: getattr(env, name, 0.0) for name in ("wind_power", "turbulence_power")}
    numbers["lap_percent"] = getattr(env, "lap_complete_percent", 0.0)
    numbers["gravity"] = getattr(env, "gravity", env.world.gravity.y)
    if not all(isinstance(value, int | float) and abs(value) <= MAX_POWER for value in numbers.values()):
        return None
    angles = [1.5 * ray / 10.0 for ray in range(RAYS)]
    return (
        task,
        {
            **numbers,
            "is_continuous": bool(getattr(env, "continuous", False)),
            "has_wind": bool(getattr(env, "enable_wind", False)),
            "is_hardcore": bool(getattr(env, "hardcore", False)),
            "keeps_world": task != "LunarLander" and FRESH_WORLD not in wrappers,
            "has_random_colors": bool(getattr(env, "domain_randomize", False)),
            "channels_first": CHANNELS_FIRST in wrappers,
            "ray_x": [math.sin(angle) * RAY_LENGTH for angle in angles],
            "ray_y": [math.cos(angle) * RAY_LENGTH for angle in angles],
        },
        limit,
    )


@functools.cache
def _reward_texts(max_steps: int) -> npt.NDArray[np.void]:
    """Return the texts of all rewards of an episode, 0 to 1000 first, then the negative ones from -0.

    Args:
        max_steps: Maximum number of steps of an episode, each of which costs 0.1.

    Raises:
        APIUsageError: ``max_steps`` is not 1 to ``MAX_STEPS``.
        UnlikeOriginalError: A text is larger than ``PictureText``.
    """
    if not 0 < max_steps <= MAX_STEPS:
        raise APIUsageError(
            f"CarRacing: max_episode_steps must be 1 to {MAX_STEPS} in C, got {max_steps}; "
            "make the Python environments with native=False"
        )
    import pygame

    pygame.font.init()
    font = pygame.font.Font(pygame.font.get_default_font(), 42)
    values = [*range(1001), *(-float(value) for value in range(max_steps // 10 + 2))]
    texts = np.zeros(len(values), TEXT)
    for text, value in zip(texts, values, strict=True):
        _render(font, f"{value:04.0f}", text)
    return texts


def _render(font: Any, characters: str, text: Any) -> None:
    import pygame

    greys = pygame.surfarray.array3d(font.render(characters, True, (255, 255, 255), (0, 0, 0)))[:, :, 0].T
    height, width = greys.shape
    if height != TEXT_SHAPE[0] or width > TEXT_SHAPE[1]:
        raise UnlikeOriginalError(f"expected text of {TEXT_SHAPE} pixels from pygame, found {greys.shape}")
    text["width"] = width
    text["greys"][:, :width] = greys
