"""The job of a training: what rank 0 tells the others, and what these do with it."""

import contextlib
import os
import pickle
import sys
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.training.build import pick_device
from pufferlib.training.config import Config
from pufferlib.training.distributed.join import join
from pufferlib.training.distributed.local import start_ranks
from pufferlib.training.distributed.place import Place, place_of_this_process
from pufferlib.training.distributed.ranks import ALONE, JoinedRanks, Ranks
from pufferlib.training.runs import Run

__all__ = ["Job", "follow", "open_ranks"]


@dataclass(frozen=True)
class Job:
    """A training, as all of its ranks are to do it.

    Attributes:
        config: The settings.
        run_dir: Folder of the run, which may be on another machine.
        checkpoint: To go on from; None begins anew.
        registered: The environment, by its name, where the caller has registered it.
    """

    config: Config
    run_dir: Path
    checkpoint: Path | None
    registered: Mapping[str, Any] = field(default_factory=dict)

    def pack(self) -> bytes:
        """Bytes from which ``unpack`` makes it in another process, also what only this one has.

        Raises:
            APIUsageError: An environment of the caller's cannot be sent.
        """
        return pickle.dumps((list(sys.path), os.getcwd(), pickle_by_value(self)))

    @staticmethod
    def unpack(data: bytes) -> "Job":
        """Make the job that ``pack`` packed, and let this process find what the caller finds."""
        path, folder, packed = pickle.loads(data)
        sys.path.extend(entry for entry in path if entry not in sys.path)
        with contextlib.suppress(OSError):
            os.chdir(folder)
        job: Job = pickle.loads(packed)
        for name, registration in job.registered.items():
            registry.register(name, registration.creator, registration.settings)
        return job


@contextlib.contextmanager
def open_ranks(config: Config, run_dir: Path, resumed: Run | None = None) -> Iterator[Ranks]:
    """Context in which the other ranks of a training do as this one does: make a ``Trainer``, restore it, and train.

    They are those that ``torchrun`` or another launcher has started, or else are started now, on this machine or on a
    Ray cluster.

    Args:
        config: The settings; with ``train.processes`` 1 there are no others.
        run_dir: Folder of the run.
        resumed: Run whose checkpoint this rank will restore.

    Yields:
        The ranks, for ``Trainer``.

    Raises:
        PufferError: Not all ranks have come in time.
    """
    place, settings = place_of_this_process(), config.train
    if place is None and settings.processes == 1:
        yield ALONE
        return
    own = {name: found for name, found in registry.registrations().items() if name == config.env_name}
    job = Job(config, run_dir.absolute(), resumed.checkpoint.absolute() if resumed else None, own).pack()
    with _started(config) if place is None else join(place, settings.processes_timeout) as ranks:
        ranks.share(job)
        yield ranks


def _started(config: Config) -> contextlib.AbstractContextManager[JoinedRanks]:
    """The ranks, as ``train.launcher`` starts them."""
    settings = config.train
    if settings.launcher == "ray":
        from pufferlib.training.distributed.on_ray import start_ranks_on_ray

        return start_ranks_on_ray(settings, needs_gpu=pick_device(settings.device).type == "cuda")
    return start_ranks(settings.processes, settings.processes_timeout)


def follow(place: Place, timeout_s: float) -> int:
    """Train as rank 0 says, without a word; returns the exit code.

    Raises:
        PufferError: Rank 0 did not come in time, or something failed here.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # rank 0 has the same
        with join(place, timeout_s) as ranks:
            return _train(Job.unpack(ranks.share(b"")), ranks)


def _train(job: Job, ranks: JoinedRanks) -> int:
    from pufferlib.training.trainer import Trainer

    with contextlib.closing(Trainer(job.config, job.run_dir, ranks=ranks)) as trainer:
        if job.checkpoint:
            trainer.restore(job.checkpoint, allow_pickle=job.config.train.save_games == "pickle")
        try:
            trainer.train()
        except KeyboardInterrupt:
            return 130
        except SystemExit as ended:
            return int(ended.code or 0)
    return 0
