"""Copies of a MuJoCo robot, stepped in C and reset by the original environment."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mujoco
import numpy as np
import numpy.typing as npt

from pufferlib.registry.games import SteppedGames
from pufferlib.robots._robots import ARRAYS, INFOS, RobotCopies
from pufferlib.robots.originals import Original
from pufferlib.robots.task import Task, engine

__all__ = ["RobotBatch"]

STATE = int(mujoco.mjtState.mjSTATE_INTEGRATION)


class RobotBatch(SteppedGames):
    """Copies of a robot, which share one model.

    Steps run in C, in threads. Resets are rare and run in Python, by the original environment, which is given the
    simulation and the random generator of the copy that is reset. If resets simulate many steps, several originals
    share them in threads, because MuJoCo's functions run in parallel.

    Args:
        name: Name for error messages.
        task: Description of the robot.
        originals: Environments for resets, that nothing else uses, one for each thread.
        create: Function that makes the emulated original, for images.
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
        originals: Sequence[Original],
        create: Callable[..., Any],
        num_games: int,
        autoreset: str,
        num_threads: int,
        affinity: int = 0,
    ) -> None:
        super().__init__(name, num_games, autoreset)
        self._task, self._originals = task, originals
        self._original = original = originals[0]
        self._resetting = ThreadPoolExecutor(len(originals)) if len(originals) > 1 else None
        self._create = create
        self._drawing: Any = None
        self.info_columns = {info: INFOS.index(info) for info in task.robot.infos.split()}
        self.infos = np.zeros((num_games, len(INFOS)))
        self.data = [mujoco.MjData(original.model) for _ in range(num_games)]
        self._generators = [original.generator() for _ in range(num_games)]
        self._places = np.zeros((num_games, 2))
        self._copies = RobotCopies(
            task.robot.reward,
            task.fields,
            task.parts,
            engine(),
            original.model._address,
            [self._addresses(data, place) for data, place in zip(self.data, self._places, strict=True)],
            (np.add, np.matmul, np.sin, np.cos, np.exp, np.log1p),
            num_threads,
            affinity,
        )

    def _addresses(self, data: Any, place: npt.NDArray[np.float64]) -> tuple[int, ...]:
        arrays = (place if array == "place" else getattr(data, array) for array in ARRAYS)
        return data._address, data.warning.number.ctypes.data, *(array.ctypes.data for array in arrays)

    def _bind(self) -> None:
        rows, actions = self._observations, self._actions
        is_single, is_double = rows.dtype == np.float32, actions.dtype == np.float64
        self._copies.bind(
            self._original.model.body_mass, self._task.low, self._task.high,
            np.zeros(rows.shape) if is_single else rows, rows if is_single else None,
            None if is_double else actions, actions if is_double else None, self._rewards, self._terminals,
            self._truncations, self.exact_rewards, self.infos, self.elapsed,
        )  # fmt: skip

    def _begin_all(self, indices: Sequence[int], seeds: Sequence[int | None]) -> list[dict[str, Any]]:
        if self._resetting is None or len(indices) < 2:
            return super()._begin_all(indices, seeds)
        count = len(self._originals)
        commands = [*zip(indices, seeds, strict=True)]

        def begin(thread: int) -> list[dict[str, Any]]:
            return [self._begin(index, seed, self._originals[thread]) for index, seed in commands[thread::count]]

        parts = [*self._resetting.map(begin, range(count))]
        return [parts[place % count][place // count] for place in range(len(commands))]

    def _begin(self, index: int, seed: int | None, original: Original | None = None) -> dict[str, Any]:
        reset = (original or self._original).reset(self.data[index], self._generators[index], seed)
        self._observations[index], info, self._generators[index] = reset
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

    def picture(self, index: int) -> npt.NDArray[np.uint8]:
        """Return the image that the original draws of a copy."""
        if self._drawing is None:
            self._drawing = self._create(render_mode="rgb_array")
        picture: npt.NDArray[np.uint8] = self._original.draw(self._drawing, self.data[index])
        return picture

    def _save(self, index: int) -> bytes:
        model, data = self._original.model, self.data[index]
        simulation = np.empty(mujoco.mj_stateSize(model, STATE))
        mujoco.mj_getState(model, data, simulation, STATE)
        numbers = np.concatenate([simulation, self._places[index], self._observations[index]])
        return self._original.save(self._generators[index]).encode() + b"\n" + numbers.tobytes()

    def _load(self, index: int, state: bytes) -> None:
        model, data = self._original.model, self.data[index]
        generator, _, content = state.partition(b"\n")
        numbers = np.frombuffer(content)
        size = mujoco.mj_stateSize(model, STATE)
        mujoco.mj_setState(model, data, numbers[:size].copy(), STATE)
        self._places[index], self._observations[index] = numbers[size : size + 2], numbers[size + 2 :]
        self._original.load(data, self._generators[index], generator.decode())

    def close(self) -> None:
        """Release the simulations."""
        if self._resetting is not None:
            self._resetting.shutdown()
        for original in self._originals:
            original.close()
        if self._drawing is not None:
            self._drawing.close()
            self._drawing = None
        self.data.clear()
