"""The folders that runs are kept in: ``runs/<YYYYmmdd-HHMMSS>-<environment>/``."""

import dataclasses
import re
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.train.config import Config, VecConfig, env_name_in

if TYPE_CHECKING:
    from pufferlib import models

__all__ = ["RUNS", "Run", "find_run", "load_policy", "new_run"]

#: Default folder of all runs.
RUNS: Path = Path("runs")
CHECKPOINT = "checkpoint.pt"
STAMP = "%Y%m%d-%H%M%S"
STAMP_WIDTH = len("20260101-000000-")


@dataclass(frozen=True)
class Run:
    """Paths of everything that belongs to one run.

    Attributes:
        folder: All files of the run are in it.
        checkpoint: The file that training goes on from.
    """

    folder: Path
    checkpoint: Path

    @classmethod
    def at(cls, folder: Path) -> "Run":
        """The run in ``folder``."""
        return cls(folder, folder / CHECKPOINT)

    @property
    def argument(self) -> str:
        """The folder as a shell takes it, in quotes where it has a space."""
        return shlex.quote(str(self.folder))

    @property
    def config(self) -> Path:
        """The merged settings."""
        return self.folder / "config.toml"

    @property
    def metrics(self) -> Path:
        """The figures of each update."""
        return self.folder / "metrics.jsonl"

    @property
    def curve(self) -> Path:
        """The learning curve."""
        return self.folder / "learning_curve.png"

    @property
    def video(self) -> Path:
        """An episode of the evaluation."""
        return self.folder / "evaluation.mp4"

    @property
    def summary(self) -> Path:
        """The result."""
        return self.folder / "summary.json"


@contextmanager
def new_run(runs: Path, env_name: str) -> Iterator[Run]:
    """A new folder for a run that starts now; it goes again if the run fails before its first update."""
    run = Run.at(_new_folder(runs, env_name))
    try:
        yield run
    except BaseException:
        if not run.checkpoint.exists() and not (run.metrics.exists() and run.metrics.stat().st_size):
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def find_run(where: str, target: str, runs: Path) -> Run:
    """The run that ``target`` means: a run's folder, a checkpoint, or an environment's latest run.

    Raises:
        UsageError: ``target`` is none of these.
        APIUsageError: It has no checkpoint.
    """
    path = Path(target)
    if path.is_file() and path.suffix not in (".py", ".c"):  # those are environments
        return Run(path.parent, path)
    if path.is_dir():
        run = Run.at(path)
        if not run.checkpoint.is_file():
            raise APIUsageError(f"{where}: {path} has no {CHECKPOINT}; expected the folder of a run, as in {runs}/")
        return run
    env_name = registry.full_name(target.removeprefix("puffer_"))
    of_env = [run for run in _all_runs(runs) if _is_of(run, env_name)]
    known = registry.list_envs()
    if not of_env and env_name not in known and not _is_known(env_name):
        close = nearest(target, [*known, *(str(run.folder) for run in _all_runs(runs))])
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else as_typed("puffer list shows the environments")
        )
        raise UsageError(f"{where}: {target!r} is no run, no checkpoint and no environment; {hint}")
    if not of_env:
        raise APIUsageError(f"{where}: no run of {env_name} in {runs}; train one: {as_typed('puffer train', env_name)}")
    return max(of_env, key=lambda run: run.checkpoint.stat().st_mtime)


def load_policy(config: Config, run: Run) -> "models.Policy":
    """The trained network of a run."""
    from pufferlib.train import checkpoint
    from pufferlib.train.build import build_policy, build_vecenv, pick_device

    contents = checkpoint.load(run.checkpoint, pick_device(config.train.device))
    if config.vec.backend not in ("native", "PufferEnv"):  # one environment tells as much as many workers
        config = dataclasses.replace(config, vec=VecConfig(backend="Serial"))
    vecenv = build_vecenv(config)
    try:
        policy = build_policy(config, vecenv)
    finally:
        vecenv.close()
    checkpoint.load_policy_weights(policy, contents, run.checkpoint)
    return policy


def _new_folder(runs: Path, env_name: str) -> Path:
    place = runs.absolute()  # fails where the folder that this runs in is gone, whatever --runs says
    try:
        runs.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise APIUsageError(
            f"puffer train: --runs must be a folder that can be made and written to, got {place} ({error.strerror}); "
            "choose another, for example --runs ~/runs"
        ) from error
    start = datetime.now()
    while True:
        folder = runs / f"{start.strftime(STAMP)}-{_plain(env_name)}"
        try:
            folder.mkdir()
        except FileExistsError:  # another run began in the same second
            start += timedelta(seconds=1)
        else:
            return folder


def _all_runs(runs: Path) -> list[Run]:
    return [Run.at(path.parent) for path in runs.glob(f"*/{CHECKPOINT}")]


def _is_of(run: Run, env_name: str) -> bool:
    """True for a run of that environment; two files of one name in two folders are two."""
    same_file = not env_name.startswith("/") or env_name_in(run.config) == env_name
    return run.folder.name[STAMP_WIDTH:] == _plain(env_name) and same_file


def _is_known(env_name: str) -> bool:
    try:
        registry.env_creator(env_name)
    except UnknownNameError:
        return False
    return True


def _plain(env_name: str) -> str:
    """The part of a folder's name that tells the environment: "atari-pong", "my_env-Forage"."""
    return re.sub(r"[^\w.-]", "-", registry.short_name(env_name).replace(".py", ""))
