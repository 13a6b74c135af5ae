"""Worker processes of a pool, as their parent sees them."""

from typing import Any

from pufferlib.buffers import ArraySpecs, Buffers
from pufferlib.envpool.workers._queues import EnvQueues
from pufferlib.envpool.workers.options import WorkerOptions, env_places
from pufferlib.envpool.workers.worker import PoolWorker
from pufferlib.machine.pickling import pickled
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

    def read_infos(self, worker: int) -> dict[str, Any]:
        """Read the infos of an environment that have no array: the next message of ``worker``.

        Raises:
            WorkerFailed: It reports a failure.
        """
        content, _ = self._read_with_deadline(worker)
        infos: dict[str, Any] = content[0]
        return infos

    def start_drawing(self, worker: int, positions: list[int], camera_id: int) -> None:
        """Ask an idle worker for pictures of its environments; ``read_reply`` and ``take_infos`` bring them."""
        self._called = "render"
        self._send(worker, pickled((positions, camera_id)))
        self.channel.command_one(worker, CALL)
