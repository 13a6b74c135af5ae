"""Games of a Box2D task of Gymnasium, stepped and reset in C."""

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.utils.seeding import np_random

from pufferlib.box2d._box2d import PICTURE_SHAPE, Box2DCopies
from pufferlib.box2d.engine import engine
from pufferlib.box2d.texts import reward_texts
from pufferlib.errors import APIUsageError
from pufferlib.registry.games import SteppedGames

__all__ = ["Box2DBatch"]

ENLARGED = 4  # images of CarRacing


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
        self._texts = reward_texts(options["max_steps"]) if self._has_laps else None
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
