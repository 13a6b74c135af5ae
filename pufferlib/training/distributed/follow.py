"""Ranks other than the first: they receive the job from rank 0 and train with it."""

import contextlib
import importlib
import os
import pickle
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.settings.config import Config
from pufferlib.training.distributed.local import join
from pufferlib.training.distributed.place import Place
from pufferlib.training.distributed.ranks import JoinedRanks
from pufferlib.training.ppo import Loss, ppo_loss
from pufferlib.training.trainer import Trainer

__all__ = ["Job", "follow", "follow_on_ray"]

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
    """

    config: Config
    run_dir: Path
    checkpoint: Path | None
    registered: Mapping[str, Any] = field(default_factory=dict)
    loss: Loss = ppo_loss

    def pack(self) -> bytes:
        """Return bytes for ``unpack`` in another process. They include objects that only this process has.

        Raises:
            APIUsageError: An environment or a loss of the caller cannot be sent.
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
    with contextlib.closing(Trainer(job.config, job.run_dir, ranks=ranks, loss=job.loss)) as trainer:
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
