"""Start of the other ranks, and of the training that they run with this process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from pufferlib import registry
from pufferlib.runs.folder import Run
from pufferlib.training.build import pick_device
from pufferlib.training.config import Config
from pufferlib.training.distributed.follow import Job
from pufferlib.training.distributed.local import join, start_ranks
from pufferlib.training.distributed.place import place_of_this_process
from pufferlib.training.distributed.ranks import ALONE, JoinedRanks, Ranks
from pufferlib.training.ppo import Loss, ppo_loss

__all__ = ["open_ranks"]


@contextlib.contextmanager
def open_ranks(config: Config, run_dir: Path, resumed: Run | None = None, loss: Loss = ppo_loss) -> Iterator[Ranks]:
    """Return a context in which the other ranks make a ``Trainer``, restore it and train, as this process must do.

    The other ranks were started by ``torchrun`` or another launcher, or are started now, on this machine or on a Ray
    cluster.

    Args:
        config: Settings. With ``train.processes`` 1 there are no other ranks.
        run_dir: Folder of the run.
        resumed: Run whose checkpoint this rank will restore.
        loss: Loss that this rank will minimize.

    Yields:
        Ranks, for ``Trainer``.

    Raises:
        PufferError: Not all ranks have connected in time.
    """
    place, settings = place_of_this_process(), config.train
    if place is None and settings.processes == 1:
        yield ALONE
        return
    own = {name: found for name, found in registry.registrations().items() if name == config.env_name}
    job = Job(config, run_dir.absolute(), resumed.checkpoint.absolute() if resumed else None, own, loss).pack()
    with _start_ranks(config) if place is None else join(place, settings.processes_timeout) as ranks:
        ranks.share(job)
        yield ranks


def _start_ranks(config: Config) -> contextlib.AbstractContextManager[JoinedRanks]:
    """Start the ranks as ``train.launcher`` asks."""
    settings = config.train
    if settings.launcher == "ray":
        from pufferlib.training.distributed.ray import start_ranks_on_ray  # imports Ray

        return start_ranks_on_ray(settings, needs_gpu=pick_device(settings.device).type == "cuda")
    return start_ranks(settings.processes, settings.processes_timeout)
