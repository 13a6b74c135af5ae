"""Copies of a MuJoCo robot, stepped in C and reset by Gymnasium."""

import json
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt
from gymnasium.utils.seeding import np_random

from pufferlib.registry.games import SteppedGames
from pufferlib.robots._robots import ARRAYS, INFOS, RobotCopies
from pufferlib.robots.task import Task, engine

__all__ = ["RobotBatch"]

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


class RobotBatch(SteppedGames):
    """Copies of a robot, which share one model.

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
        super().__init__(name, num_games, autoreset)
        self._task, self._original = task, original
        self.info_columns = {info: INFOS.index(info) for info in task.robot.infos.split()}
        self.infos = np.zeros((num_games, len(INFOS)))
        self.data = [mujoco.MjData(original.model) for _ in range(num_games)]
        self._generators = [np_random()[0] for _ in range(num_games)]
        self._places = np.zeros((num_games, 2))
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

    def _bind(self) -> None:
        self._copies.bind(
            self._original.model.body_mass, self._task.low, self._task.high, self._observations, self._actions,
            self._rewards, self._terminals, self._truncations, self.exact_rewards, self.infos, self._places,
            self.elapsed,
        )  # fmt: skip

    def _begin(self, index: int, seed: int | None) -> dict[str, Any]:
        original = self._original
        original.data, original.np_random = self.data[index], self._generators[index]
        observation, info = original.reset(seed=seed)
        self._generators[index] = original.np_random
        self._observations[index] = observation
        self._copies.begin(index)
        return dict(info)

    def _step(self, order: npt.NDArray[np.int32]) -> None:
        self._copies.step(order)

    def _fault(self) -> str:
        return self._copies.fault() or "its simulation is unstable"

    def infos_of(self, index: int) -> dict[str, Any]:
        """Return the infos of the last step of a copy."""
        numbers = self.infos[index, [*self.info_columns.values()]].tolist()
        infos: dict[str, Any] = dict(zip(self.info_columns, numbers, strict=True))
        for name, attribute in self._task.robot.arrays.items():
            array = getattr(self.data[index], attribute)
            infos[name] = array.item() if array.size == 1 else array.copy()
        return infos

    def _save(self, index: int) -> bytes:
        model, data = self._original.model, self.data[index]
        simulation = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, simulation, STATE)
        numbers = np.concatenate([simulation, self._places[index], self._observations[index]])
        return json.dumps(self._generators[index].bit_generator.state).encode() + b"\n" + numbers.tobytes()

    def _load(self, index: int, state: bytes) -> None:
        model, data = self._original.model, self.data[index]
        generator, _, content = state.partition(b"\n")
        numbers = np.frombuffer(content)
        size = mujoco.mj_stateSize(model, STATE)
        mujoco.mj_setState(model, data, numbers[:size].copy(), STATE)
        self._places[index], self._observations[index] = numbers[size : size + 2], numbers[size + 2 :]
        self._generators[index].bit_generator.state = json.loads(generator)

    def close(self) -> None:
        """Release the simulations."""
        self._original.close()
        self.data.clear()
