"""Ranks of a training: their start on this machine or on a Ray cluster, and the training that all but the first run."""

import contextlib
import importlib
import os
import pickle
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.errors import BindingMissing, PufferError
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.models.devices import pick_device
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config, TrainConfig
from pufferlib.training.callbacks import Callback, CallbackFunction, for_other_ranks
from pufferlib.training.distributed.local import host_store, join, start_ranks
from pufferlib.training.distributed.place import Place, place_of_this_process
from pufferlib.training.distributed.ranks import ALONE, JoinedRanks, Ranks
from pufferlib.training.ppo import Loss, ppo_loss
from pufferlib.training.trainer import Trainer
from pufferlib.vector.ray.cluster import ADDRESS, connect

__all__ = ["Job", "follow", "follow_on_ray", "open_ranks", "reserve_gpu", "start_ranks_on_ray"]


END_S = 20.0  # seconds to wait for the ranks to end
START_LIMIT = "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S"  # after which Ray Train gives up, if nothing may fail
LATER_S = 1.0  # Ray Train gives up later than rank 0, whose error names the ranks that did not come


@contextlib.contextmanager
def open_ranks(
    config: Config,
    run_dir: Path,
    resumed: Run | None = None,
    loss: Loss = ppo_loss,
    callbacks: Sequence[Callback | CallbackFunction] = (),
) -> Iterator[Ranks]:
    """Return a context in which the other ranks make a ``Trainer``, restore it and train, as this process must do.

    The other ranks were started by ``torchrun`` or another launcher, or are started now, on this machine or on a Ray
    cluster.

    Args:
        config: Settings. With ``train.processes`` 1 there are no other ranks.
        run_dir: Folder of the run.
        resumed: Run whose checkpoint this rank will restore.
        loss: Loss that this rank will minimize.
        callbacks: Callbacks of this rank. The other ranks get those with ``every_rank``.

    Yields:
        Ranks, for ``Trainer``.

    Raises:
        APIUsageError: A callback wraps the environments of this rank only, or something cannot be sent.
        PufferError: Not all ranks have connected in time.
    """
    place, settings = place_of_this_process(), config.train
    if place is None and settings.processes == 1:
        yield ALONE
        return
    own = {name: found for name, found in registry.registrations().items() if name == config.env_name}
    checkpoint, shared = resumed.checkpoint.absolute() if resumed else None, for_other_ranks(callbacks)
    job = Job(config, run_dir.absolute(), checkpoint, own, loss, shared).pack()
    with _start_ranks(config) if place is None else join(place, settings.processes_timeout) as ranks:
        ranks.share(job)
        yield ranks


def _start_ranks(config: Config) -> contextlib.AbstractContextManager[JoinedRanks]:
    """Start the ranks as ``train.launcher`` asks."""
    settings = config.train
    if settings.launcher == "ray":
        return start_ranks_on_ray(settings, needs_gpu=pick_device(settings.device).type == "cuda")
    return start_ranks(settings.processes, settings.processes_timeout)


@contextlib.contextmanager
def start_ranks_on_ray(settings: TrainConfig, needs_gpu: bool) -> Iterator[JoinedRanks]:
    """Return a context in which Ray Train runs all ranks except the first, which is this process.

    Args:
        settings: Settings, of which ``processes``, ``processes_timeout``, ``ray_address`` and ``ray_cpus`` are read.
        needs_gpu: Whether each rank reserves a GPU.

    Yields:
        Ranks, joined.

    Raises:
        BindingMissing: Ray Train is not installed.
        APIUsageError: No cluster answers.
        PufferError: The cluster has no room for the ranks in time, or one of them ended.
    """
    train = _ray_train()
    with _variable(ADDRESS, settings.ray_address):
        ray = connect()
    here = ray.util.get_node_ip_address()
    timeout_s, size = settings.processes_timeout, settings.processes
    store = host_store(here, size, timeout_s)
    with reserve_gpu(ray, here, timeout_s) if needs_gpu else contextlib.nullcontext(0) as gpu:
        place = Place(0, size, gpu, 1, here, store.port)
        with (
            contextlib.closing(_RayRanks(ray, train, place, settings, needs_gpu)) as others,
            join(place, timeout_s, store, others.check) as ranks,
        ):
            others.watch(ranks)
            yield ranks


@contextlib.contextmanager
def reserve_gpu(ray: Any, here: str, timeout_s: float) -> Iterator[int]:
    """Return a context in which no task or actor of the Ray cluster gets the GPU that this process uses.

    Rank 0 is no task of Ray. Without a reservation, Ray would place another rank on its GPU.

    Args:
        ray: Module ``ray``, connected.
        here: Address of this machine's node.
        timeout_s: Maximum seconds to wait for a free GPU.

    Yields:
        Index of the GPU among those that this process sees.

    Raises:
        PufferError: No GPU of this machine was free in time.
    """

    class Reservation:  # local, so that it is sent by value, as in _follow_function
        def gpu(self) -> str:
            return str(ray.get_runtime_context().get_accelerator_ids()["GPU"][0])

    reservation = ray.remote(num_cpus=0, num_gpus=1, resources={f"node:{here}": 0.001})(Reservation).remote()
    try:
        try:
            gpu = ray.get(reservation.gpu.remote(), timeout=timeout_s)
        except ray.exceptions.GetTimeoutError:
            raise PufferError(
                f"train: rank 0 needs a GPU of this machine ({here}), and Ray had none free here in {timeout_s:g} s; "
                "stop what uses it, start the command on a node with a free GPU, or choose train.device cpu"
            ) from None
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
        yield visible.index(gpu) if gpu in visible else int(gpu)
    finally:
        ray.kill(reservation)


class _RayRanks:
    """Run of Ray Train in a task of Ray. Its workers are the ranks from 1 on.

    The run is in another process because only a process can be stopped at any time: Ray Train waits for room without
    asking anybody, and ``ray.shutdown`` ends a process in which a thread waits for Ray.

    Args:
        ray: Module ``ray``, connected.
        train: Module ``ray.train``.
        first: Rank and address of rank 0.
        settings: Settings, as in ``start_ranks_on_ray``.
        needs_gpu: Whether each rank reserves a GPU.
    """

    def __init__(self, ray: Any, train: Any, first: Place, settings: TrainConfig, needs_gpu: bool) -> None:
        self._failure, self._ranks, self._ray = "", list[JoinedRanks](), ray
        resources = {"CPU": settings.ray_cpus, **({"GPU": 1} if needs_gpu else {})}
        scaling = train.ScalingConfig(num_workers=first.size - 1, use_gpu=needs_gpu, resources_per_worker=resources)
        given = {"place": tuple(first), "timeout_s": settings.processes_timeout}
        options = {
            "num_cpus": 0,
            "max_retries": 0,
            "resources": {f"node:{first.address}": 0.001},
            "runtime_env": {"env_vars": {START_LIMIT: str(settings.processes_timeout + LATER_S)}},
        }
        self._run = ray.remote(**options)(_fit_function()).remote(_follow_function(), given, scaling)
        self._thread = threading.Thread(target=self._wait, name="ray-train", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        try:
            failures = self._ray.get(self._run)
        except Exception as error:
            failures = {0: str(error).strip() or type(error).__name__}
        self._failure = "; ".join(
            f"rank {rank + 1} on Ray ended: {cause.strip().splitlines()[-1]}" for rank, cause in failures.items()
        )
        if self._failure:
            for ranks in self._ranks:
                ranks.report_failure(self._failure)

    def check(self) -> None:
        """Raise PufferError if Ray Train has failed."""
        if self._failure:
            raise PufferError(f"train: {self._failure}")

    def watch(self, ranks: JoinedRanks) -> None:
        """Start to report to the ranks if Ray Train fails."""
        self._ranks.append(ranks)
        if self._failure:
            ranks.report_failure(self._failure)

    def close(self) -> None:
        """Wait for the workers to end, and stop them if they don't."""
        self._thread.join(END_S)
        for force in (False, True):  # as Ctrl-C does, then by ending the process
            if self._thread.is_alive():
                self._ray.cancel(self._run, force=force)
                self._thread.join(END_S)


def _fit_function() -> Callable[..., dict[int, str]]:
    """Return the function that starts Ray Train and returns the errors of its workers.

    The function is local, so that it is sent by value. Its process needs no pufferlib.
    """

    def fit(follow: Callable[[dict[str, Any]], None], settings: dict[str, Any], scaling: Any) -> dict[int, str]:
        import importlib
        import tempfile

        train: Any = importlib.import_module("ray.train")
        train_in_parallel = importlib.import_module("ray.train.v2.api.data_parallel_trainer").DataParallelTrainer

        with tempfile.TemporaryDirectory(prefix="pufferlib-ray-") as unused:  # Ray Train requires a folder
            run = train.RunConfig(storage_path=unused, failure_config=train.FailureConfig(controller_failure_limit=0))
            try:
                train_in_parallel(follow, train_loop_config=settings, scaling_config=scaling, run_config=run).fit()
            except train.TrainingFailedError as error:
                causes = getattr(error, "worker_failures", None) or {0: error}
                return {rank: str(cause) for rank, cause in causes.items()}
        return {}

    return fit


def _follow_function() -> Callable[[dict[str, Any]], None]:
    """Return the function that Ray Train runs in each worker. It calls ``follow_on_ray``.

    The function is local, so that it is sent by value and runs before the worker imports pufferlib. Then the worker
    imports pufferlib from the same path as this process. See ``vector.ray.actor``.
    """
    folder, path = os.getcwd(), [os.path.abspath(entry) for entry in sys.path if isinstance(entry, str)]

    def run(settings: dict[str, Any]) -> None:
        import importlib
        import sys

        sys.path[:] = [*path, *(entry for entry in sys.path if entry not in (*path, folder))]
        importlib.import_module("pufferlib.training.distributed.launch").follow_on_ray(settings)

    return run


@contextlib.contextmanager
def _variable(name: str, value: str) -> Iterator[None]:
    """Return a context in which an environment variable has this value, if the value is not empty."""
    before = os.environ.get(name)
    if value:
        os.environ[name] = value
    try:
        yield
    finally:
        if value:
            del os.environ[name]
        if before is not None:
            os.environ[name] = before


def _ray_train() -> Any:
    try:
        return importlib.import_module("ray.train")
    except ImportError as error:
        raise BindingMissing(
            f"train.launcher: ray needs Ray Train, and {error.name or 'it'} is missing; "
            f"{way_to_install('rllib', image='dev')}"
        ) from error


SHARE = "LOCAL_WORLD_SIZE"


@dataclass(frozen=True)
class Job:
    """Training that all ranks run together.

    Attributes:
        config: Settings.
        run_dir: Folder of the run, which may be on another machine.
        checkpoint: Checkpoint to resume from, or None for a new training.
        registered: Environment that the caller has registered, by its name.
        loss: Loss that all ranks minimize.
        callbacks: Callbacks of the caller that all ranks call.
    """

    config: Config
    run_dir: Path
    checkpoint: Path | None
    registered: Mapping[str, Any] = field(default_factory=dict)
    loss: Loss = ppo_loss
    callbacks: Sequence[Callback | CallbackFunction] = ()

    def pack(self) -> bytes:
        """Return bytes for ``unpack`` in another process. They include objects that only this process has.

        Raises:
            APIUsageError: An environment, a loss or a callback of the caller cannot be sent.
        """
        return pickle.dumps((list(sys.path), os.getcwd(), pickle_by_value(self)))

    @staticmethod
    def unpack(data: bytes) -> "Job":
        """Restore a job from ``pack``, and let this process import the modules that the caller can import."""
        path, folder, packed = pickle.loads(data)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        job: Job = pickle.loads(packed)
        for name, registration in job.registered.items():
            registry.register(name, registration.creator, registration.settings)
        return job


def follow(place: Place, timeout_s: float) -> int:
    """Train with rank 0, without output, and return the exit code.

    Args:
        place: Rank and address of this process.
        timeout_s: Seconds to wait for rank 0.

    Raises:
        PufferError: Rank 0 did not answer in time, or this rank failed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rank 0 shows the same warnings
        with join(place, timeout_s) as ranks:
            return _train(Job.unpack(ranks.share(b"")), ranks)


def _train(job: Job, ranks: JoinedRanks) -> int:
    trainer = Trainer(job.config, job.run_dir, callbacks=job.callbacks, ranks=ranks, loss=job.loss)
    with contextlib.closing(trainer):
        if job.checkpoint:
            trainer.restore(job.checkpoint, allow_pickle=job.config.train.save_games == "pickle")
        try:
            trainer.train()
        except KeyboardInterrupt:
            return 130
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0


def follow_on_ray(settings: dict[str, Any]) -> None:
    """Follow rank 0 in a worker of Ray Train."""
    context: Any = importlib.import_module("ray.train").get_context()
    place = Place(*settings["place"])._replace(
        rank=context.get_world_rank() + 1,
        local_rank=context.get_local_rank(),
        local_size=context.get_local_world_size(),
    )
    os.environ[SHARE] = str(place.local_size)  # the ranks of a node share its cores
    code = follow(place, settings["timeout_s"])
    if code:
        raise SystemExit(code)
