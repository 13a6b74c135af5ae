"""Folders of runs: ``runs/<YYYYmmdd-HHMMSS>-<environment>[-<name>]/``.

The runs of several seeds are in one such folder, as ``seed-<seed>/``.
"""

import errno
import fcntl
import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib import registry
from pufferlib.errors import APIUsageError
from pufferlib.machine.paths import user_path
from pufferlib.render.html import facts, media
from pufferlib.settings.config import Config
from pufferlib.settings.sources import env_name_in

if TYPE_CHECKING:
    from pufferlib.runs.checkpoint import About

__all__ = [
    "CHECKPOINTS",
    "POLICY",
    "RUNS",
    "SEED",
    "STAMP",
    "STAMP_WIDTH",
    "Run",
    "all_runs",
    "new_folder",
    "new_run",
    "plain_name",
    "plain_text",
    "removed_if_empty",
]


#: Default folder of all runs.
RUNS: Path = Path("runs")
CHECKPOINTS = "checkpoints"
POLICY = "policy.safetensors"  # in each checkpoint
STAMP = "%Y%m%d-%H%M%S"
STAMP_WIDTH = len("20260101-000000-")
SEED = "seed-"  # prefix of the folder of a run that is one of several seeds


@dataclass(frozen=True)
class Run:
    """Paths of everything that belongs to one run.

    Attributes:
        folder: Folder of the run.
        chosen: Checkpoint of the run, or path of a shared policy file. None uses the latest checkpoint.
    """

    folder: Path
    chosen: Path | None = None

    @classmethod
    def at(cls, folder: Path) -> "Run":
        """Return the run in ``folder``."""
        return cls(folder)

    @property
    def is_seed(self) -> bool:
        """True if the run is one of several seeds, inside their common folder."""
        return self.folder.name.startswith(SEED)

    @property
    def is_locked(self) -> bool:
        """True if a process is training the run."""
        try:
            with self.status.open() as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @property
    def argument(self) -> str:
        """Folder or chosen checkpoint as a shell argument, quoted if necessary."""
        return shlex.quote(str(self.chosen or self.folder))

    @property
    def checkpoints(self) -> Path:
        """Folder of the checkpoints."""
        return self.folder / CHECKPOINTS

    @property
    def has_checkpoint(self) -> bool:
        """True if there is a checkpoint, which may be damaged."""
        return any(self.checkpoints.glob(f"[!.]*/{POLICY}"))

    @property
    def checkpoint(self) -> Path:
        """Chosen checkpoint, or else the latest.

        Raises:
            APIUsageError: There is no checkpoint, or none is complete.
        """
        from pufferlib.runs import checkpoint

        found = self.chosen or checkpoint.latest(self.checkpoints)
        if found is None:
            lacks = "no complete checkpoint" if self.has_checkpoint else "no checkpoint yet"
            raise APIUsageError(f"{self.folder}: has {lacks}; expected one in {self.checkpoints}")
        return found

    def about(self) -> "About":
        """Return the facts of the checkpoint."""
        from pufferlib.runs import checkpoint

        return checkpoint.read_about(self.checkpoint)

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Return the settings of ``config.toml``, or of the policy file if there is none.

        Files of the environment and the policy that were moved with the run are found (``Config.located``).

        Args:
            overrides: Settings to change, by dotted name.

        Raises:
            APIUsageError: There are no settings, or a value has the wrong type.
            UnknownNameError: A setting does not exist.
        """
        if self.config.is_file() or self.chosen is None:
            return Config.load(self.config, overrides).located(self.folder)
        return Config.parse(str(self.chosen), self.about().config, overrides).located(self.chosen.parent)

    def result(self) -> dict[str, Any]:
        """Return the contents of ``summary.json``, or an empty dict if it is missing or damaged."""
        try:
            result = json.loads(self.summary.read_text("utf-8"))
        except (OSError, ValueError):
            return {}
        return result if isinstance(result, dict) else {}

    def _repr_html_(self) -> str:
        """Show environment, score, learning curve and video in a notebook."""
        result = self.result()
        values = {
            "environment": env_name_in(self.config) if self.config.is_file() else None,
            **{name.replace("_", " "): result.get(name) for name in ("score", "random_score", "agent_steps")},
        }
        shown = facts(str(self.folder), values)
        return shown + media(self.curve, "learning curve") + media(self.video, "an episode of the evaluation")

    @property
    def config(self) -> Path:
        """Path of the merged settings."""
        return self.folder / "config.toml"

    @property
    def metrics(self) -> Path:
        """Path of the metrics of each update."""
        return self.folder / "metrics.jsonl"

    @property
    def table(self) -> Path:
        """Path of the metrics as a table, which exists if the run has the logger "csv"."""
        return self.folder / "metrics.csv"

    @property
    def status(self) -> Path:
        """Path of the state of a run that is not finished."""
        return self.folder / "status.json"

    @property
    def curve(self) -> Path:
        """Path of the learning curve."""
        return self.folder / "learning_curve.png"

    @property
    def video(self) -> Path:
        """Path of the video of an evaluation episode."""
        return self.folder / "evaluation.mp4"

    @property
    def inspection(self) -> Path:
        """Path of the tensors of an update with NaN or infinity."""
        return self.folder / "nan.safetensors"

    @property
    def summary(self) -> Path:
        """Path of the result."""
        return self.folder / "summary.json"


@contextmanager
def new_run(runs: Path, env_name: str, name: str = "") -> Iterator[Run]:
    """Return a context with a new folder for a run. The folder is removed if the run fails before its first update."""
    with removed_if_empty(Run.at(new_folder(runs, env_name, name))) as run:
        yield run


@contextmanager
def removed_if_empty(run: Run) -> Iterator[Run]:
    """Return a context that removes the folder of ``run`` if it fails before its first update."""
    owner = os.getpid()  # an environment may fork a child that leaves this context with sys.exit
    try:
        yield run
    except BaseException:
        has_metrics = run.metrics.exists() and run.metrics.stat().st_size
        is_used = run.is_locked or run.has_checkpoint or has_metrics or run.inspection.exists()
        if os.getpid() == owner and not is_used:
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def new_folder(runs: Path, env_name: str, name: str = "") -> Path:
    """Create a new folder in ``runs``, named after the current second.

    Raises:
        APIUsageError: The folder cannot be created.
    """
    runs = user_path(runs)
    place = runs.absolute()  # fails if the working directory was deleted
    start = datetime.now()
    try:
        runs.mkdir(parents=True, exist_ok=True)
        while True:
            folder = runs / f"{start.strftime(STAMP)}-{_titled(env_name, name)}"
            try:
                folder.mkdir()
            except FileExistsError:  # another run started in the same second
                start += timedelta(seconds=1)
            else:
                return folder
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise APIUsageError(
                f"puffer train: the names of the environment and the run must make a folder name of at most 255 "
                f"bytes, got {_titled(env_name, name)!r:.80}; choose a shorter --track.name"
            ) from error
        raise APIUsageError(
            f"puffer train: --runs must be a folder that can be created and written to, got {place} "
            f"({error.strerror}); choose another, for example --runs ~/runs"
        ) from error


def all_runs(runs: Path, file: str = "config.toml") -> list[Run]:
    """Return the runs in a folder that contain ``file``. Each of several seeds is a run."""
    runs = user_path(runs)
    found = [*runs.glob(f"*/{file}"), *runs.glob(f"*/{SEED}*/{file}")]
    groups = {path.parents[1] for path in found if path.parent.name.startswith(SEED)}
    return [Run.at(path.parent) for path in found if path.parent not in groups]


def _titled(env_name: str, name: str) -> str:
    return f"{plain_name(env_name)}-{plain_text(name)}" if name else plain_name(env_name)


def plain_name(env_name: str) -> str:
    """Return the part of a folder name that names the environment, such as "atari-pong" or "my_env-Forage"."""
    return plain_text(registry.short_name(env_name).replace(".py", ""))


def plain_text(text: str) -> str:
    """Replace every character that does not belong in a folder name by a dash."""
    return re.sub(r"[^\w.-]", "-", text)
