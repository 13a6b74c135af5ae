"""Worker processes of a pool, as their parent sees them."""

import dataclasses
from typing import Any

import numpy as np

from pufferlib.buffers import ArraySpecs, Buffers
from pufferlib.env import AutoresetMode
from pufferlib.envpool.pool import Ids
from pufferlib.envpool.workers._queues import EnvQueues
from pufferlib.envpool.workers.infos import FinalInfo
from pufferlib.envpool.workers.options import WorkerOptions, env_places
from pufferlib.envpool.workers.worker import PoolWorker
from pufferlib.errors import PufferError
from pufferlib.machine.pickling import pickled
from pufferlib.replays.failures import leave_bundles
from pufferlib.vector.failures import FailureContext, WorkerFailed
from pufferlib.vector.multiprocessing.worker import CALL, CLOSE
from pufferlib.vector.multiprocessing.workers import WorkerProcesses
from pufferlib.vector.specs import RowSpec, VectorSpec

__all__ = ["PoolWorkers"]


class PoolWorkers(WorkerProcesses):
    """Processes that take commands to single environments.

    Args:
        spec: The environments, and how many processes share them.
        options: Of the workers.

    Attributes:
        channel: Queues of commands.
    """

    WHERE = "envpool"
    SERVER = PoolWorker
    ADVICE = "use fewer environments or num_threads; otherwise make one of them by itself to see what ends it"

    channel: EnvQueues  # type: ignore[assignment]  # it has what WorkerProcesses asks of one

    def __init__(self, spec: VectorSpec, options: WorkerOptions) -> None:
        super().__init__(spec)
        self._worker_options = options
        self.first_envs = env_places(len(spec.envs), spec.num_workers)
        self._begins_with_seed = np.zeros(len(spec.envs), bool)  # with its last reset

    @property
    def more(self) -> Buffers:
        """Shared arrays that are no rows of environments."""
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

    def note_seeds(self, envs: Ids) -> None:
        """Remember the seeds with which environments are about to be reset, for what is told of a failure."""
        self._begins_with_seed[envs] = self.seeds[envs] >= 0
        for env in envs[self._begins_with_seed[envs]].tolist():
            self.last_seeds[env] = int(self.seeds[env])

    def context(self, worker: int, phase: str, position: int | None, has_acted: bool) -> FailureContext:
        """Circumstances in which ``worker`` failed; see ``Workers``."""
        context = super().context(worker, phase, position, has_acted)
        if phase == "reset":  # in which a worker forgets the seed
            starts = bool(self._begins_with_seed[[env.index for env in context.envs]].all())
            context = self.last_context = dataclasses.replace(context, starts_with_seed=starts)
        return context

    def recorded(self, failure: WorkerFailed) -> PufferError:
        """The error to raise for a failure, with bundles of the environments that may have failed."""
        leave_bundles(failure.error, self.last_context, self._replayed_autoreset())
        return failure.error

    def _replayed_autoreset(self) -> AutoresetMode | None:
        """Autoreset mode of an environment of the pool that plays alone; a native one has its own. None: unknown."""
        if not hasattr(self, "description"):
            return None
        return self._worker_options.autoreset if self.description.emulated else self.description.autoreset

    def read_infos(self, worker: int) -> tuple[dict[str, Any], FinalInfo | None]:
        """Read the next message of ``worker``: infos that have no array, and the last ones of an episode that ended.

        Raises:
            WorkerFailed: It reports a failure.
        """
        content, _ = self._read_with_deadline(worker)
        infos, final = content
        return infos, final

    def start_drawing(self, worker: int, positions: list[int], camera_id: int) -> None:
        """Ask an idle worker for pictures of its environments; ``read_reply`` and ``take_infos`` bring them."""
        self._called = "render"
        self._send(worker, pickled((positions, camera_id)))
        self.channel.command_one(worker, CALL)
