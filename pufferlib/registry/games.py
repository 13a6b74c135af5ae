"""Base of games in C that are stepped together and begin episodes one by one, and their check against the original."""

import abc
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, flatten
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from pufferlib.buffers import Array, allocate
from pufferlib.emulation.layout import observation_layout
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.spaces import Space
from pufferlib.wrappers import ClipAction, EpisodeStats

__all__ = [
    "LAYERS",
    "GymnasiumTwin",
    "SteppedGames",
    "UnlikeOriginalError",
    "check_equal",
    "class_name",
    "equal_or_none",
    "warn_of_python",
]

LAYERS = (EpisodeStats, ClipAction, TimeLimit, OrderEnforcing)  # wrappers whose effect the games in C have
LARGEST = float(np.finfo(np.float32).max)  # reward


class UnlikeOriginalError(PufferError):
    """An environment cannot be stepped in C with the results of the original. The message says why."""


class SteppedGames(abc.ABC):
    """Copies of an environment in C, as in ``pufferlib.registry.in_c.Games``. Subclasses step and reset them.

    Args:
        name: Name for error messages.
        num_games: Number of copies.
        autoreset: "same_step", "next_step" or "disabled".

    Attributes:
        exact_rewards: Rewards of the last step, float64 ``(num_games,)``.
        elapsed: Number of steps in the episode so far, int32 ``(num_games,)``.
        info_columns: Column of ``infos`` for each info that is a number.
        infos: Infos of the last step, float64 ``(num_games, columns)``.
    """

    def __init__(self, name: str, num_games: int, autoreset: str) -> None:
        self._name, self._num_games, self._autoreset = name, num_games, autoreset
        self.exact_rewards = np.zeros(num_games)
        self.elapsed = np.zeros(num_games, np.int32)
        self.info_columns: Mapping[str, int] = {}
        self.infos = np.zeros((num_games, 0))
        self._order = np.arange(num_games, dtype=np.int32)
        self._over = np.zeros(num_games, np.bool_)
        self._last: dict[int, dict[str, Any]] = {}

    @abc.abstractmethod
    def _bind(self) -> None:
        """Pass the bound arrays to C."""

    @abc.abstractmethod
    def _begin(self, index: int, seed: int | None) -> dict[str, Any]:
        """Reset a copy, write its observation, and return its info."""

    @abc.abstractmethod
    def _step(self, order: npt.NDArray[np.int32]) -> None:
        """Step some copies. A reward of NaN marks a copy without an outcome."""

    @abc.abstractmethod
    def _fault(self) -> str:
        """Return why a copy has no outcome."""

    @abc.abstractmethod
    def infos_of(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of a copy."""

    @abc.abstractmethod
    def picture(self, index: int) -> npt.NDArray[np.uint8]:
        """Return an image of a copy, uint8 ``(height, width, 3)``."""

    @abc.abstractmethod
    def _save(self, index: int) -> bytes:
        """Return the state of a copy's episode."""

    @abc.abstractmethod
    def _load(self, index: int, state: bytes) -> None:
        """Restore a result of ``_save``, with the observation."""

    @abc.abstractmethod
    def close(self) -> None:
        """Free the copies."""

    def bind(
        self,
        observations: Array,
        final_observations: Array,
        actions: Array,
        rewards: Array,
        terminals: Array,
        truncations: Array,
        masks: Array,
    ) -> None:
        """Use these arrays without copying them."""
        self._observations, self._final_observations, self._actions = observations, final_observations, actions
        self._rewards, self._terminals, self._truncations, self._masks = rewards, terminals, truncations, masks
        self._bind()

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start an episode in all copies. A copy whose seed is None continues its random stream."""
        self.reset_games(range(self._num_games), seeds)

    def reset_games(self, indices: Sequence[int], seeds: Sequence[int | None]) -> None:
        """Start an episode in some copies."""
        self.begin(indices, seeds)
        for index in indices:
            self.clear(index)

    def begin(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[dict[str, Any]]:
        """Reset copies as Gymnasium does, and return their infos. The outcomes of the last step stay in the rows."""
        infos = self._begin_all(indices, seeds)
        for index in indices:
            self._over[index], self._masks[index] = False, True
        return infos

    def _begin_all(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[dict[str, Any]]:
        """Reset copies, one after the other."""
        return [self._begin(index, seed) for index, seed in zip(indices, seeds, strict=True)]

    def clear(self, index: int) -> None:
        """Clear the outcome of the last step of a copy."""
        self._rewards[index] = self.exact_rewards[index] = 0
        self._terminals[index] = self._truncations[index] = False

    def step(self, actions: Array) -> None:
        """Step every copy once.

        Raises:
            APIUsageError: An observation has a NaN, or a reward is not a float32.
        """
        if actions is not self._actions:
            self._actions[...] = actions
        paused = np.flatnonzero(self._over).tolist()
        self.advance(np.flatnonzero(~self._over).astype(np.int32) if paused else self._order)
        if self._autoreset == "next_step":
            self.begin(paused, [None] * len(paused))
        for index in paused:
            self._masks[index] = self._autoreset == "next_step"
            self.clear(index)
        ended = self._terminals | self._truncations
        if ended.any():
            self._end(np.flatnonzero(ended).tolist())

    def advance(self, order: npt.NDArray[np.int32]) -> None:
        """Step some copies, each at most once, with the actions in their rows. An end has no consequence.

        Raises:
            APIUsageError: An observation has a NaN, or a reward is not a float32.
        """
        self._step(order)
        fits = np.abs(self.exact_rewards) <= LARGEST
        if not fits.all():
            index = int(np.flatnonzero(~fits)[0])
            reward = self.exact_rewards[index]
            self.exact_rewards[index] = 0
            raise APIUsageError(
                f"{self._name}: environment {index} has an observation or reward that is NaN or too large, reward "
                f"{reward}: {self._fault()}"
            )

    def _end(self, indices: list[int]) -> None:
        self._last = {index: self.infos_of(index) for index in indices}
        if self._autoreset != "same_step":
            self._over[indices] = True
            return
        self._final_observations[indices] = self._observations[indices]
        self.begin(indices, [None] * len(indices))

    def last_infos(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of the episode that has just ended."""
        return self._last[index]

    def save_games(self, indices: Sequence[int]) -> bytes:
        """Return the state of one copy."""
        (index,) = indices
        facts = {
            "elapsed": int(self.elapsed[index]),
            "reward": float(self.exact_rewards[index]),
            "flags": [bool(flags[index]) for flags in self._flags()],
        }
        return json.dumps(facts).encode() + b"\n" + self._save(index)

    def load_games(self, indices: Sequence[int], state: memoryview) -> None:
        """Load the state of one copy."""
        (index,) = indices
        text, _, content = bytes(state).partition(b"\n")
        facts = json.loads(text)
        self._load(index, content)
        self.elapsed[index] = facts["elapsed"]
        self._rewards[index] = self.exact_rewards[index] = facts["reward"]
        for flags, flag in zip(self._flags(), facts["flags"], strict=True):
            flags[index] = flag

    def _flags(self) -> tuple[Array, ...]:
        return self._terminals, self._truncations, self._masks, self._over


@dataclass(frozen=True)
class GymnasiumTwin(abc.ABC):
    """Environment in C with the results of one with Gymnasium's interface. See ``pufferlib.registry.in_c.Twin``.

    Attributes:
        name: Name of the environment.
        params: Keyword arguments of the environment, as text.
        package: Name and version of the package with the original.
        libraries: Versions of other packages and hash of the sources that the results depend on.
        observation_space: Observation space of the original. Rows in C are those of emulation.
        action_space: Action space.
        frames_per_second: Steps per second of simulated time.
        max_steps: Number of steps after which an episode is truncated, or 0.
    """

    name: str
    params: Mapping[str, str]
    package: str
    libraries: str
    observation_space: Space
    action_space: Space
    frames_per_second: float
    max_steps: int

    @property
    def code(self) -> str:
        """See ``pufferlib.registry.in_c.Twin``."""
        return f"{self.package}, {self.libraries}"

    @abc.abstractmethod
    def games(self, num_games: int, autoreset: str, num_threads: int, affinity: int = 0) -> SteppedGames:
        """Make copies.

        Args:
            num_games: Number of copies.
            autoreset: "same_step", "next_step" or "disabled".
            num_threads: Maximum number of threads that work on a step.
            affinity: Core of the first thread, plus 1, after which those of the helpers come. 0 for any.

        Raises:
            PufferError: A helper thread could not be started.
        """

    @abc.abstractmethod
    def draw_action(self, rng: np.random.Generator) -> Any:
        """Return a random action that the environment of Gymnasium accepts."""


def class_name(thing: Any) -> str:
    """Return the name of the class of an object, as in entry points of Gymnasium: ``module:Class``."""
    return f"{type(thing).__module__}:{type(thing).__qualname__}"


Twin = TypeVar("Twin", bound=GymnasiumTwin)


def warn_of_python(name: str, package: str, error: UnlikeOriginalError) -> None:
    """Warn that the environment ``name`` is stepped by a package in Python, and why."""
    message = f"{name}: steps are those of {package} in Python, because C cannot be used: {error}"
    warnings.warn(message, stacklevel=4)


def equal_or_none(twin: Twin, original: gymnasium.Env[Any, Any], num_steps: int) -> Twin | None:
    """Return an environment in C, or warn and return None if ``check_equal`` finds a difference."""
    try:
        check_equal(twin, original, num_steps)
    except UnlikeOriginalError as error:
        warn_of_python(twin.name, twin.package, error)
        return None
    return twin


def check_equal(twin: GymnasiumTwin, original: gymnasium.Env[Any, Any], num_steps: int) -> None:
    """Compare the first steps in C with those of an environment of Gymnasium, byte by byte.

    Args:
        twin: Environment in C.
        original: Environment of Gymnasium.
        num_steps: Number of steps.

    Raises:
        UnlikeOriginalError: A number differs.
    """
    space = twin.observation_space
    rows = allocate(cast(Box, observation_layout(space).flat_space), twin.action_space, 1)
    games = twin.games(1, "disabled", 1)
    games.bind(**rows)
    rng = np.random.default_rng(0)
    is_over = True
    for step in range(num_steps):
        if is_over:
            games.reset([step])
            observation, _ = original.reset(seed=step)
            _check_same(
                twin, step, {"observation": rows["observations"][0]}, {"observation": flatten(space, observation)}
            )
        rows["actions"][0] = twin.draw_action(rng)
        observation, reward, terminated, truncated, infos = original.step(rows["actions"][0])
        games.step(rows["actions"])
        names = {"observation": "observations", "terminated": "terminals", "truncated": "truncations"}
        found = {name: rows[row][0] for name, row in names.items()}
        expected = {"observation": flatten(space, observation), "terminated": terminated, "truncated": truncated}
        _check_same(
            twin,
            step,
            {**found, "reward": games.exact_rewards[0], **games.infos_of(0)},
            {**expected, "reward": reward, **infos},
        )
        is_over = terminated or truncated
    games.close()


def _check_same(twin: GymnasiumTwin, step: int, found: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    """Raise UnlikeOriginalError unless numbers and arrays of numbers have the same names and bytes."""
    for name in sorted(found.keys() | expected.keys()):
        one, other = (np.float64(values.get(name, np.nan)) for values in (found, expected))
        if one.tobytes() != other.tobytes():
            raise UnlikeOriginalError(
                f"expected the {name} of {twin.package} in step {step}, {other!r:.80}, found "
                f"{one!r:.80} with {twin.code}"
            )
