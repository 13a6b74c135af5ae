"""Worker processes of a pool, and the object that controls them from the parent process."""

import dataclasses
import os
import pickle
from typing import Any

import numpy as np
from typing_extensions import override

from pufferlib.buffers import ArraySpecs, Buffers, slice_rows
from pufferlib.env import AutoresetMode
from pufferlib.envpool.pool import Ids
from pufferlib.envpool.workers._episodes import Episodes
from pufferlib.envpool.workers._queues import EnvQueues, QueueEnd
from pufferlib.envpool.workers.arrays import FinalInfo, InfoWriter, array_space, merge_infos
from pufferlib.envpool.workers.envs import checked_frame, inner_env, time_limit
from pufferlib.envpool.workers.options import INFO, PLAYERS, Frame, PoolDescription, WorkerOptions, first_env_indices
from pufferlib.errors import PufferError
from pufferlib.machine.pickling import pickled
from pufferlib.replays.failures import leave_bundles
from pufferlib.vector.calls import Raised
from pufferlib.vector.env_runner import EnvRunner
from pufferlib.vector.failures import Failed, FailureContext, WorkerFailed
from pufferlib.vector.multiprocessing.worker import CALL, CHECK_S, CLOSE, FAILURE, REPLY, Parent, Worker, reply_message
from pufferlib.vector.multiprocessing.workers import WorkerProcesses
from pufferlib.vector.specs import PHASES, RESET, EnvDescription, RowSpec, VectorSpec

__all__ = ["PoolWorker", "PoolWorkers"]


class PoolWorker(Worker):
    """Program of a worker process. It steps, resets and renders single environments as commands arrive.

    ``setup.options`` are ``WorkerOptions``.
    """

    def _more_arrays(self, row_spec: RowSpec) -> ArraySpecs:
        return self._options.arrays(row_spec, self._setup.num_envs, self._setup.num_workers)

    @property
    def _options(self) -> WorkerOptions:
        options: WorkerOptions = self._setup.options
        return options

    def _describe(self, runner: EnvRunner) -> EnvDescription:
        env, base = runner.envs[0], runner.describe()
        layout = env.observation_layout if env.emulated else None
        spec = getattr(inner_env(env), "spec", None)
        return PoolDescription(
            **vars(base),
            observations=base.single_observation_space if layout is None else array_space(layout.space, layout.dtype),
            row_dtype=base.obs_dtype if layout is None else layout.dtype,
            limit=time_limit(env),
            reward_threshold=getattr(spec, "reward_threshold", None),
            frame=self._frame(runner) if self._options.is_probe and self._options.renders else None,
        )

    def _frame(self, runner: EnvRunner) -> Frame | None:
        """Return height, width and frame rate of the first environment. It is reset first, so that it can render."""
        env = runner.envs[0]
        runner.reset([None], None, [0])
        frame = self._options.draw(env, -1, *self._options.size)
        if frame is None:
            return None
        height, width, _ = checked_frame(env, frame).shape
        rate = (getattr(env, "metadata", None) or {}).get("render_fps") or 15.0
        return height, width, float(rate)

    def serve(self, parent: Parent) -> bool:
        """Execute commands until the parent process stops the worker. Return False if an environment failed."""
        self._pin_to_core()
        end, episodes, writer = self._prepare()
        calls, drops = {RESET: episodes.reset}, self._options.declared_only
        while True:
            operation = end.wait(CHECK_S)
            if not operation:
                if parent.is_gone():
                    return True
                continue
            if operation == CLOSE:
                return True
            if operation == CALL:
                end.finish_call(REPLY)
                self._conn.send_bytes(self._render())
                continue
            try:
                infos = calls.get(operation, episodes.step)(end.position)
                other = writer.write(end.position, merge_infos(infos)) if infos or writer.has_arrays else {}
                final = None if episodes.ended is None else _pop_final_info(episodes, writer, end.position, drops)
                is_empty = final is None and (drops or not other)
                message = None if is_empty else reply_message(operation, [{} if drops else other, final], [])
            except BaseException as error:
                report = Failed.of(PHASES[operation], self._progress()[0], error)
                end.finish(FAILURE)
                self._conn.send(report)
                return False
            if message is None:
                end.finish(0)
            else:
                end.finish(REPLY)
                self._conn.send_bytes(message)

    def _pin_to_core(self) -> None:
        first = self._options.affinity
        if first >= 0:
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {cores[(first + self._setup.worker) % len(cores)]})

    def _prepare(self) -> tuple[QueueEnd, Episodes, InfoWriter]:
        assert self._memory is not None
        assert self._runner is not None
        assert self._row_spec is not None
        setup, memory, options, envs = self._setup, self._memory, self._options, self._runner.envs
        agents, mine = self._row_spec.num_agents, slice(self._first, self._first + len(self._runner.envs))
        more = {name: array[mine] for name, array in memory.more.items()}
        queue = memory.more["entries"][setup.worker]
        end = QueueEnd(
            memory.memory, setup.num_workers, setup.worker, setup.fits, queue, more["outcomes"], more["finished_ns"]
        )
        own = ["disabled" if env.emulated else env.autoreset for env in envs]
        rows = slice_rows(memory.buffers, mine.start * agents, mine.stop * agents)
        states = {name: more[name] for name in ("terminated", "truncated", "elapsed_step")}
        states["seeds"] = memory.seeds[mine]
        episodes = Episodes(self._runner, own, options.autoreset, options.limit, rows, states)
        arrays = {}
        for name, array in memory.more.items():
            if name.startswith(INFO):
                width = agents if name.startswith(INFO + PLAYERS) else 1
                arrays[name] = array[mine.start * width : mine.stop * width]
        return (
            end,
            episodes,
            InfoWriter(arrays, options.info_sources, [getattr(env, "possible_agents", ()) for env in envs]),
        )

    def _render(self) -> bytes:
        """Render the environments that the parent process asks for, and return frames or exceptions as a message."""
        assert self._runner is not None
        positions, camera_id = pickle.loads(self._conn.recv_bytes())
        results: list[Any] = []
        for position in positions:
            env = self._runner.envs[position]
            try:
                results.append(checked_frame(env, self._options.draw(env, camera_id, *self._options.size)))
            except Exception as error:
                results.append(Raised(error))
        return reply_message(CALL, results, [])


def _pop_final_info(episodes: Episodes, writer: InfoWriter, position: int, drops: bool) -> FinalInfo:
    """Remove and return the infos of the step that ended an episode."""
    assert episodes.ended is not None
    (infos, steps), episodes.ended = episodes.ended, None
    declared, other = writer.read(position, merge_infos(infos))
    return FinalInfo(steps, declared, {} if drops else other)


class PoolWorkers(WorkerProcesses):
    """Worker processes that take commands for single environments.

    Args:
        spec: Environments and number of processes.
        options: Worker options.

    Attributes:
        channel: Queues of commands.
    """

    WHERE = "envpool"
    SERVER = PoolWorker
    ADVICE = "use fewer environments or num_threads; otherwise make one of them by itself to see what ends it"
    TIMEOUT_ADVICE = "make it faster, or use pufferlib.make, which has timeout_s"

    channel: EnvQueues  # type: ignore[assignment]  # EnvQueues has the methods that WorkerProcesses needs

    def __init__(self, spec: VectorSpec, options: WorkerOptions) -> None:
        super().__init__(spec)
        self._worker_options = options
        self.first_envs = first_env_indices(len(spec.envs), spec.num_workers)
        self._starts_with_seed = np.zeros(len(spec.envs), bool)  # whether the last reset had a seed

    @property
    def more(self) -> Buffers:
        """Shared arrays other than the rows of the environments."""
        return self._memory.more

    def _options(self) -> WorkerOptions:
        return self._worker_options

    def _more_arrays(self, row_spec: RowSpec) -> ArraySpecs:
        return self._worker_options.arrays(row_spec, len(self.spec.envs), self.spec.num_workers)

    def _make_channel(self) -> EnvQueues:
        memory = self._memory
        return EnvQueues(
            memory.memory,
            self.first_envs,
            self._fits,
            self._check_s,
            memory.more["entries"],
            memory.more["outcomes"],
            memory.more["finished_ns"],
            CALL,
            CLOSE,
        )

    def record_seeds(self, envs: Ids) -> None:
        """Record the seeds that environments are about to be reset with, for reports of failures."""
        self._starts_with_seed[envs] = self.seeds[envs] >= 0
        for env in envs[self._starts_with_seed[envs]].tolist():
            self.last_seeds[env] = int(self.seeds[env])

    @override
    def context(self, worker: int, phase: str, position: int | None) -> FailureContext:
        context = super().context(worker, phase, position)
        if phase == "reset":  # the worker drops the seed during a reset
            starts = bool(self._starts_with_seed[[env.index for env in context.envs]].all())
            context = self.last_context = dataclasses.replace(context, starts_with_seed=starts)
        return context

    def error_with_bundles(self, failure: WorkerFailed) -> PufferError:
        """Return the error of a failure, after writing replay bundles of the environments that may have failed."""
        leave_bundles(failure.error, self.last_context, self._replayed_autoreset())
        return failure.error

    def _replayed_autoreset(self) -> AutoresetMode | None:
        """Return the autoreset mode in which an environment is replayed on its own, or None if it is unknown."""
        if not hasattr(self, "description"):
            return None
        return self._worker_options.autoreset if self.description.emulated else self.description.autoreset

    def read_infos(self, worker: int) -> tuple[dict[str, Any], FinalInfo | None]:
        """Read the next message of ``worker``: infos without an array, and the last infos of an episode that ended.

        Raises:
            WorkerFailed: The worker reports a failure.
        """
        content, _ = self._read_with_deadline(worker)
        infos, final = content
        return infos, final

    def start_rendering(self, worker: int, positions: list[int], camera_id: int) -> None:
        """Ask an idle worker to render environments. ``read_reply`` and ``take_infos`` return the frames."""
        self._called = "render"
        self._send(worker, pickled((positions, camera_id)))
        self.channel.command_one(worker, CALL)
