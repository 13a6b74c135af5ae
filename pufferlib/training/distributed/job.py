"""The job of a training: what rank 0 tells the others, and what these do with it."""

import contextlib
import os
import pickle
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.runs.folder import Run
from pufferlib.training.build import pick_device
from pufferlib.training.config import Config
from pufferlib.training.distributed.local import join, start_ranks
from pufferlib.training.distributed.place import place_of_this_process
from pufferlib.training.distributed.ranks import ALONE, JoinedRanks, Ranks

__all__ = ["Job", "open_ranks"]


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
        from pufferlib.training.distributed.ray import start_ranks_on_ray  # imports Ray

        return start_ranks_on_ray(settings, needs_gpu=pick_device(settings.device).type == "cuda")
    return start_ranks(settings.processes, settings.processes_timeout)
