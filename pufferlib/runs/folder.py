"""Folders of runs: ``runs/<YYYYmmdd-HHMMSS>-<environment>[-<name>]/``.

The runs of several seeds are in one such folder, as ``seed-<seed>/``.
"""

import dataclasses
import errno
import fcntl
import json
import math
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
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.render.html import facts, media
from pufferlib.settings.config import Config
from pufferlib.settings.sections import own_names
from pufferlib.settings.sources import env_name_in
from pufferlib.settings.toml import read_toml

if TYPE_CHECKING:
    from pufferlib.runs.checkpoint import About

__all__ = [
    "RUNS",
    "Run",
    "all_runs",
    "find_run",
    "new_folder",
    "new_run",
    "removed_if_empty",
    "shipped_agent",
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


def find_run(where: str, target: str, runs: Path, best: bool = False, shipped: bool = True) -> Run:
    """Find the run that ``target`` names: its folder, one of its checkpoints, or the latest run of an environment.

    If there is no run of an environment, the agent that ships with it is used, if there is one.

    Args:
        where: Start of error messages.
        target: Folder, checkpoint, environment, name of a run, or path of a shared policy file. If it means several
            seeds, the seed with the best evaluation is used.
        runs: Folder of all runs.
        best: Use the checkpoint with the best score instead of the latest.
        shipped: Whether to use agents that ship with environments.

    Raises:
        UsageError: ``target`` is none of these.
        APIUsageError: The run has no checkpoint, or ``best`` is set and no checkpoint has a score.
    """
    runs = user_path(runs)
    folder = user_path(target)
    of_seeds = [Run.at(path.parent) for path in folder.glob(f"{SEED}*/{CHECKPOINTS}")]
    run = _best_seed(of_seeds) or _run_at(where, folder, runs) or _latest_run(where, target, runs, shipped)
    return _with_best(where, run) if best else run


def _run_at(where: str, path: Path, runs: Path) -> Run | None:
    """Return the run, checkpoint or policy at ``path``, or None."""
    is_env = registry.full_name(str(path)) in registry.list_envs()  # such as a program named breakout
    if path.is_file() and path.suffix not in (".py", ".c") and not is_env:  # Python and C files are environments
        if path.name != POLICY:
            return Run(path.parent, path)
        path = path.parent
    elif path.is_dir():
        folder = Path(os.path.normpath(path / "..")) if path.absolute().name == CHECKPOINTS else path
        if (run := Run.at(folder)).has_checkpoint:  # before POLICY: a resumed checkpoint is also a run
            return run
    else:
        return None
    if (path / POLICY).is_file():
        in_run = path.absolute().parent.name == CHECKPOINTS
        return Run(Path(os.path.normpath(path / ".." / "..")) if in_run else path, path)
    if (path / "checkpoint.pt").is_file():
        raise APIUsageError(
            f"{where}: {path} is a run of an earlier version, whose checkpoint.pt may contain code and is not read; "
            "train again"
        )
    if is_env:
        return None
    raise APIUsageError(f"{where}: {path} has no {CHECKPOINTS}; expected the folder of a run, as in {runs}/")


def _best_seed(runs: list[Run]) -> Run | None:
    """Return the run with the best evaluation among several seeds. Without evaluations it is the first, or None."""
    runs = sorted((run for run in runs if run.has_checkpoint), key=lambda run: run.folder.name)
    return max(runs, key=_score_of, default=None)


def _score_of(run: Run) -> float:
    score = run.result().get("score")
    return float(score) if isinstance(score, int | float) else -math.inf


def _with_best(where: str, run: Run) -> Run:
    from pufferlib.runs import checkpoint

    found = checkpoint.best(run.checkpoints) if run.chosen is None else None
    if found is None:
        raise APIUsageError(
            f"{where}: best needs a run with a checkpoint that has a score, got {run.chosen or run.folder}; "
            "leave out best"
        )
    return dataclasses.replace(run, chosen=found)


def _latest_run(where: str, target: str, runs: Path, shipped: bool) -> Run:
    env_name = registry.full_name(target.removeprefix("puffer_"))
    names = registry.names_of_file(env_name)
    of_env = [run for run in _all_runs(runs) if any(_is_of(run, name) for name in names)] or [
        run for run in _all_runs(runs) if _has_name(run, target)
    ]
    known = registry.list_envs()
    if not of_env and env_name not in known and not _is_known(env_name):
        close = nearest(target, [*known, *(str(run.folder) for run in _all_runs(runs))])
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else as_typed("puffer list shows the environments")
        )
        raise UsageError(f"{where}: {target!r} is not a run, a checkpoint or an environment; {hint}")
    if not of_env and shipped and (agent := _shipped(env_name)):
        return agent
    if not of_env:
        raise APIUsageError(f"{where}: no run of {env_name} in {runs}; train one: {as_typed('puffer train', env_name)}")
    latest = max(of_env, key=lambda run: run.checkpoints.stat().st_mtime)
    seeds = [run for run in of_env if run.is_seed and run.folder.parent == latest.folder.parent]
    return (_best_seed(seeds) if latest.is_seed else None) or latest


def shipped_agent(where: str, target: str) -> Run:
    """Return the trained agent that ships with an environment, as a run.

    Args:
        where: Start of error messages.
        target: Name of the environment.

    Raises:
        UnknownNameError: There is no such environment.
        APIUsageError: No agent ships with it.
    """
    registry.env_creator(target, where)
    env_name = registry.full_name(target.removeprefix("puffer_"))
    if agent := _shipped(env_name):
        return agent
    raise APIUsageError(f"{where}: no agent ships with {env_name}; train one: {as_typed('puffer train', env_name)}")


def _shipped(env_name: str) -> Run | None:
    is_task = env_name.partition("/")[0] in registry.binding_facts()
    full = own_names(env_name)[-1] if is_task else env_name  # "classic/CartPole-v1" for "classic/CartPole"
    file = registry.agent_file(full)
    return Run(file.parent, file) if file.is_file() else None


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


def _all_runs(runs: Path) -> list[Run]:
    return [run for run in all_runs(runs, CHECKPOINTS) if run.has_checkpoint]


def _title(run: Run) -> str:
    """Return the part of the folder name with the environment and the name of the run."""
    folder = run.folder.parent if run.is_seed else run.folder
    return folder.name[STAMP_WIDTH:]


def _is_of(run: Run, env_name: str) -> bool:
    """Return whether ``run`` is a run of this environment. Equal file names in two folders are two environments."""
    if _title(run) == _plain(env_name) and not env_name.startswith("/"):
        return True
    may_be = _title(run).startswith(_plain(env_name))
    if not may_be or not run.config.is_file():
        return False
    own = env_name_in(run.config) or ""
    return own == env_name or registry.moved_name(own, (run.folder, Path.cwd())) == env_name


def _has_name(run: Run, name: str) -> bool:
    if not _title(run).endswith(f"-{_plain_text(name)}") or not run.config.is_file():
        return False
    return bool(read_toml(run.config).get("track", {}).get("name") == name)


def _is_known(env_name: str) -> bool:
    try:
        registry.env_creator(env_name)
    except UnknownNameError:
        return False
    return True


def _titled(env_name: str, name: str) -> str:
    return f"{_plain(env_name)}-{_plain_text(name)}" if name else _plain(env_name)


def _plain(env_name: str) -> str:
    """Return the part of a folder name that names the environment, such as "atari-pong" or "my_env-Forage"."""
    return _plain_text(registry.short_name(env_name).replace(".py", ""))


def _plain_text(text: str) -> str:
    """Replace every character that does not belong in a folder name by a dash."""
    return re.sub(r"[^\w.-]", "-", text)
