"""Copies of a MuJoCo robot, stepped in C and reset by Gymnasium."""

import json
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.utils.seeding import np_random

from pufferlib.buffers import Array
from pufferlib.errors import APIUsageError
from pufferlib.robots._robots import ARRAYS, INFOS, RobotCopies
from pufferlib.robots.task import Task, engine

__all__ = ["RobotBatch"]

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)
LARGEST = float(np.finfo(np.float32).max)  # reward


class RobotBatch:
    """Copies of a robot, which share one model. It has the methods of ``pufferlib.registry.in_c.Games``.

    Steps run in C, in threads. Resets are rare and run in Python, by the original environment, which is given the
    simulation and the random generator of the copy that is reset.

    Args:
        name: Name for error messages.
        task: Description of the robot.
        original: Environment of Gymnasium, without wrappers, that nothing else uses.
        num_games: Number of copies.
        autoreset: "same_step", "next_step" or "disabled".
        num_threads: Maximum number of threads that work on a step.
        affinity: Core of the first thread, plus 1, after which those of the helpers come. 0 for any.

    Attributes:
        data: Simulation of each copy.
        exact_rewards: Rewards of the last step, float64 ``(num_games,)``.
        infos: Infos of the last step, float64 ``(num_games, len(INFOS))``. Those that the robot lacks are undefined.
        elapsed: Number of steps in the episode so far, int32 ``(num_games,)``.

    Raises:
        PufferError: A helper thread could not be started.
    """

    def __init__(
        self,
        name: str,
        task: Task,
        original: Any,
        num_games: int,
        autoreset: str,
        num_threads: int,
        affinity: int = 0,
    ) -> None:
        self._name, self._task, self._original, self._autoreset = name, task, original, autoreset
        self._names = task.robot.infos.split()
        self._columns = [INFOS.index(info) for info in self._names]
        self.data = [mujoco.MjData(original.model) for _ in range(num_games)]
        self._generators = [np_random()[0] for _ in range(num_games)]
        self._order = np.arange(num_games, dtype=np.int32)
        self._over = np.zeros(num_games, np.bool_)
        self._last: dict[int, dict[str, Any]] = {}
        self.exact_rewards = np.zeros(num_games)
        self.infos = np.zeros((num_games, len(INFOS)))
        self._places, self.elapsed = np.zeros((num_games, 2)), np.zeros(num_games, np.int32)
        self._copies = RobotCopies(
            task.robot.reward,
            task.fields,
            task.parts,
            engine(),
            original.model._address,
            [(data._address, *(getattr(data, array).ctypes.data for array in ARRAYS)) for data in self.data],
            (np.add, np.matmul, np.sin, np.cos),
            num_threads,
            affinity,
        )

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
        self._copies.bind(
            self._original.model.body_mass, self._task.low, self._task.high, observations, actions, rewards, terminals,
            truncations, self.exact_rewards, self.infos, self._places, self.elapsed,
        )  # fmt: skip

    def reset(self, seeds: Sequence[int | None]) -> None:
        """Start an episode in all copies. A copy whose seed is None continues its random stream."""
        self.reset_games(range(len(self.data)), seeds)

    def reset_games(self, indices: Sequence[int], seeds: Sequence[int | None]) -> None:
        """Start an episode in some copies."""
        for index, seed in zip(indices, seeds, strict=True):
            self.begin(index, seed)
            self.clear(index)

    def begin(self, index: int, seed: int | None = None) -> dict[str, Any]:
        """Reset a copy as Gymnasium does, and return its info. The outcome of the last step stays in the rows."""
        original = self._original
        original.data, original.np_random = self.data[index], self._generators[index]
        observation, info = original.reset(seed=seed)
        self._generators[index] = original.np_random
        self._observations[index] = observation
        self._copies.begin(index)
        self._over[index], self._masks[index] = False, True
        return dict(info)

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
        for index in paused:
            if self._autoreset == "next_step":
                self.begin(index)
            else:
                self._masks[index] = False
            self.clear(index)
        ended = self._terminals | self._truncations
        if ended.any():
            self._end(np.flatnonzero(ended).tolist())

    def advance(self, order: npt.NDArray[np.int32]) -> None:
        """Step some copies, each at most once, with the actions in their rows. An end has no consequence.

        Raises:
            APIUsageError: An observation has a NaN, or a reward is not a float32.
        """
        self._copies.step(order)
        fits = np.abs(self.exact_rewards) <= LARGEST
        if not fits.all():
            index = int(np.flatnonzero(~fits)[0])
            reward = self.exact_rewards[index]
            self.exact_rewards[index] = 0
            raise APIUsageError(
                f"{self._name}: environment {index} has an observation or reward that is NaN or too large, reward "
                f"{reward}: {self._copies.fault() or 'its simulation is unstable'}"
            )

    def _end(self, indices: list[int]) -> None:
        self._last = {index: self.infos_of(index) for index in indices}
        if self._autoreset != "same_step":
            self._over[indices] = True
            return
        self._final_observations[indices] = self._observations[indices]
        for index in indices:
            self.begin(index)

    def infos_of(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of a copy."""
        infos: dict[str, Any] = dict(zip(self._names, self.infos[index, self._columns].tolist(), strict=True))
        for name, attribute in self._task.robot.arrays.items():
            array = getattr(self.data[index], attribute)
            infos[name] = array.item() if array.size == 1 else array.copy()
        return infos

    def last_infos(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of the episode that has just ended."""
        return self._last[index]

    def save_games(self, indices: Sequence[int]) -> bytes:
        """Return the state of one copy."""
        (index,) = indices
        model, data = self._original.model, self.data[index]
        simulation = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, simulation, STATE)
        facts = {
            "generator": self._generators[index].bit_generator.state,
            "elapsed": int(self.elapsed[index]),
            "reward": float(self.exact_rewards[index]),
            "flags": [bool(flags[index]) for flags in self._flags()],
        }
        numbers = np.concatenate([simulation, self._places[index], self._observations[index]])
        return json.dumps(facts).encode() + b"\n" + numbers.tobytes()

    def load_games(self, indices: Sequence[int], state: memoryview) -> None:
        """Load the state of one copy."""
        (index,) = indices
        model, data = self._original.model, self.data[index]
        text, _, content = bytes(state).partition(b"\n")
        facts, numbers = json.loads(text), np.frombuffer(content)
        size = mujoco.mj_stateSize(model, STATE)
        mujoco.mj_setState(model, data, numbers[:size].copy(), STATE)
        self._places[index], self._observations[index] = numbers[size : size + 2], numbers[size + 2 :]
        self._generators[index].bit_generator.state = facts["generator"]
        self.elapsed[index] = facts["elapsed"]
        self._rewards[index] = self.exact_rewards[index] = facts["reward"]
        for flags, flag in zip(self._flags(), facts["flags"], strict=True):
            flags[index] = flag

    def _flags(self) -> tuple[npt.NDArray[np.bool_], ...]:
        return self._terminals, self._truncations, self._masks, self._over

    def close(self) -> None:
        """Release the simulations."""
        self._original.close()
        self.data.clear()
