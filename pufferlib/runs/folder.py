"""The folders that runs are kept in: ``runs/<YYYYmmdd-HHMMSS>-<environment>[-<name>]/``.

The runs of several seeds are in one folder of that kind, as ``seed-<seed>/``.
"""

import dataclasses
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

from pufferlib import ocean, registry
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.training.config import Config
from pufferlib.training.settings import env_name_in
from pufferlib.training.toml import read_toml

if TYPE_CHECKING:
    from pufferlib.runs.checkpoint import About

__all__ = [
    "RUNS",
    "Run",
    "all_runs",
    "begun",
    "find_run",
    "new_folder",
    "new_run",
]


#: Default folder of all runs.
RUNS: Path = Path("runs")
CHECKPOINTS = "checkpoints"
POLICY = "policy.safetensors"  # in each of them
STAMP = "%Y%m%d-%H%M%S"
STAMP_WIDTH = len("20260101-000000-")
SEED = "seed-"  # begins the folder of a run that is one of several seeds


@dataclass(frozen=True)
class Run:
    """Paths of everything that belongs to one run.

    Attributes:
        folder: All files of the run are in it.
        chosen: One of its checkpoints, or the file of a policy that somebody handed on; None is the latest checkpoint.
    """

    folder: Path
    chosen: Path | None = None

    @classmethod
    def at(cls, folder: Path) -> "Run":
        """The run in ``folder``."""
        return cls(folder)

    @property
    def is_seed(self) -> bool:
        """True for one of several seeds, which is in the folder of all of them."""
        return self.folder.name.startswith(SEED)

    @property
    def argument(self) -> str:
        """The folder, or the checkpoint that was chosen, as a shell takes it, in quotes where it has a space."""
        return shlex.quote(str(self.chosen or self.folder))

    @property
    def checkpoints(self) -> Path:
        """The folder of its checkpoints."""
        return self.folder / CHECKPOINTS

    @property
    def has_checkpoint(self) -> bool:
        """True where there is one, damaged or not."""
        return any(self.checkpoints.glob(f"[!.]*/{POLICY}"))

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that was chosen, or else the latest.

        Raises:
            APIUsageError: There is none, or none that is whole.
        """
        from pufferlib.runs import checkpoint

        found = self.chosen or checkpoint.latest(self.checkpoints)
        if found is None:
            lacks = "no checkpoint that is whole" if self.has_checkpoint else "no checkpoint yet"
            raise APIUsageError(f"{self.folder}: has {lacks}; expected one in {self.checkpoints}")
        return found

    def about(self) -> "About":
        """The facts of its checkpoint."""
        from pufferlib.runs import checkpoint

        return checkpoint.read_about(self.checkpoint)

    def settings(self, overrides: Mapping[str, Any] | None = None) -> Config:
        """Its settings, with dotted keys laid over them: of ``config.toml``, or of a policy that has none beside it.

        Files of the environment and the policy that were moved with the run are found (``Config.located``).

        Raises:
            APIUsageError: There are none, or a value has the wrong type.
            UnknownNameError: A key that does not exist.
        """
        if self.config.is_file() or self.chosen is None:
            return Config.load(self.config, overrides).located(self.folder)
        return Config.parse(str(self.chosen), self.about().config, overrides).located(self.chosen.parent)

    @property
    def config(self) -> Path:
        """The merged settings."""
        return self.folder / "config.toml"

    @property
    def metrics(self) -> Path:
        """The figures of each update."""
        return self.folder / "metrics.jsonl"

    @property
    def table(self) -> Path:
        """The same as a table, where the run has the logger "csv"."""
        return self.folder / "metrics.csv"

    @property
    def status(self) -> Path:
        """The state of a run that is not finished."""
        return self.folder / "status.json"

    @property
    def curve(self) -> Path:
        """The learning curve."""
        return self.folder / "learning_curve.png"

    @property
    def video(self) -> Path:
        """An episode of the evaluation."""
        return self.folder / "evaluation.mp4"

    @property
    def inspection(self) -> Path:
        """The tensors of an update that came to NaN."""
        return self.folder / "nan.safetensors"

    @property
    def summary(self) -> Path:
        """The result."""
        return self.folder / "summary.json"


@contextmanager
def new_run(runs: Path, env_name: str, name: str = "") -> Iterator[Run]:
    """A new folder for a run that starts now; it goes again if the run fails before its first update."""
    with begun(Run.at(new_folder(runs, env_name, name))) as run:
        yield run


@contextmanager
def begun(run: Run) -> Iterator[Run]:
    """``run``, whose folder goes again if it fails before its first update."""
    try:
        yield run
    except BaseException:
        has_metrics = run.metrics.exists() and run.metrics.stat().st_size
        if not (run.has_checkpoint or has_metrics or run.inspection.exists()):
            shutil.rmtree(run.folder, ignore_errors=True)
        raise


def find_run(where: str, target: str, runs: Path, best: bool = False, shipped: bool = True) -> Run:
    """The run that ``target`` means: its folder, one of its checkpoints, or an environment's latest run.

    Of an environment that was not trained here it is the agent that ships with it, where one does.

    Args:
        where: Begins the message of an error.
        target: Also the name of a run, or the file of a policy that somebody handed on. Of several seeds, by their
            folder or the environment's name, it is the one of the best evaluation.
        runs: Folder of all runs.
        best: Choose the checkpoint of the best score, not the latest.
        shipped: Agents that ship count.

    Raises:
        UsageError: ``target`` is none of these.
        APIUsageError: It has no checkpoint, or none with a score where the best is asked for.
    """
    runs = user_path(runs)
    folder = user_path(target)
    of_seeds = [Run.at(path.parent) for path in folder.glob(f"{SEED}*/{CHECKPOINTS}")]
    run = _best_seed(of_seeds) or _run_at(where, folder, runs) or _latest_run(where, target, runs, shipped)
    return _with_best(where, run) if best else run


def _run_at(where: str, path: Path, runs: Path) -> Run | None:
    """The run, checkpoint or policy at ``path``; None where there is none."""
    if path.is_file() and path.suffix not in (".py", ".c"):  # those are environments
        if path.name != POLICY:
            return Run(path.parent, path)
        path = path.parent
    elif path.is_dir():
        folder = Path(os.path.normpath(path / "..")) if path.absolute().name == CHECKPOINTS else path
        if (run := Run.at(folder)).has_checkpoint:  # before POLICY: a checkpoint that was gone on with is a run too
            return run
    else:
        return None
    if (path / POLICY).is_file():
        in_run = path.absolute().parent.name == CHECKPOINTS
        return Run(Path(os.path.normpath(path / ".." / "..")) if in_run else path, path)
    if (path / "checkpoint.pt").is_file():
        raise APIUsageError(
            f"{where}: {path} is a run of an earlier version, whose checkpoint.pt may hold code and is not read; "
            "train again"
        )
    raise APIUsageError(f"{where}: {path} has no {CHECKPOINTS}; expected the folder of a run, as in {runs}/")


def _best_seed(runs: list[Run]) -> Run | None:
    """Return the run of the best evaluation among several seeds, or the first one; None if there is none."""
    runs = sorted((run for run in runs if run.has_checkpoint), key=lambda run: run.folder.name)
    return max(runs, key=_score_of, default=None)


def _score_of(run: Run) -> float:
    try:
        score = json.loads(run.summary.read_text("utf-8"))["score"]
    except (OSError, ValueError, LookupError, TypeError):
        return -math.inf
    return float(score) if isinstance(score, int | float) else -math.inf


def _with_best(where: str, run: Run) -> Run:
    from pufferlib.runs import checkpoint

    found = checkpoint.best(run.checkpoints) if run.chosen is None else None
    if found is None:
        raise APIUsageError(
            f"{where}: --best needs a run one of whose checkpoints has a score, got {run.chosen or run.folder}; "
            "leave out --best"
        )
    return dataclasses.replace(run, chosen=found)


def _latest_run(where: str, target: str, runs: Path, shipped: bool) -> Run:
    env_name = registry.full_name(target.removeprefix("puffer_"))
    of_env = [run for run in _all_runs(runs) if _is_of(run, env_name)] or [
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
        raise UsageError(f"{where}: {target!r} is no run, no checkpoint and no environment; {hint}")
    if not of_env and shipped and (file := ocean.agent_file(env_name)).is_file():
        return Run(file.parent, file)
    if not of_env:
        raise APIUsageError(f"{where}: no run of {env_name} in {runs}; train one: {as_typed('puffer train', env_name)}")
    latest = max(of_env, key=lambda run: run.checkpoints.stat().st_mtime)
    seeds = [run for run in of_env if run.is_seed and run.folder.parent == latest.folder.parent]
    return (_best_seed(seeds) if latest.is_seed else None) or latest


def new_folder(runs: Path, env_name: str, name: str = "") -> Path:
    """A folder of ``runs`` that nobody has, named after this second.

    Raises:
        APIUsageError: It cannot be made.
    """
    runs = user_path(runs)
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
        folder = runs / f"{start.strftime(STAMP)}-{_titled(env_name, name)}"
        try:
            folder.mkdir()
        except FileExistsError:  # another run began in the same second
            start += timedelta(seconds=1)
        else:
            return folder


def all_runs(runs: Path, file: str = "config.toml") -> list[Run]:
    """The runs in a folder that have a file or folder of that name, those of several seeds one by one."""
    runs = user_path(runs)
    found = [*runs.glob(f"*/{file}"), *runs.glob(f"*/{SEED}*/{file}")]
    groups = {path.parents[1] for path in found if path.parent.name.startswith(SEED)}
    return [Run.at(path.parent) for path in found if path.parent not in groups]


def _all_runs(runs: Path) -> list[Run]:
    return [run for run in all_runs(runs, CHECKPOINTS) if run.has_checkpoint]


def _title(run: Run) -> str:
    """The part of its folder's name that tells the environment, and its name."""
    folder = run.folder.parent if run.is_seed else run.folder
    return folder.name[STAMP_WIDTH:]


def _is_of(run: Run, env_name: str) -> bool:
    """True for a run of that environment; two files of one name in two folders are two."""
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
    """The part of a folder's name that tells the environment: "atari-pong", "my_env-Forage"."""
    return _plain_text(registry.short_name(env_name).replace(".py", ""))


def _plain_text(text: str) -> str:
    """``text`` with a dash for everything that does not belong into the name of a folder."""
    return re.sub(r"[^\w.-]", "-", text)
