"""Study of a search in Optuna: its storage, and the trials that several commands take from it."""

import contextlib
import fcntl
import functools
import hashlib
import json
import math
import os
import socket
import sqlite3
import time
import uuid
import warnings
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.paths import user_path
from pufferlib.runs.resume import FREE
from pufferlib.sweeps.spaces import Search

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.storages import BaseStorage
    from optuna.study import Study
    from optuna.trial import FrozenTrial, Trial

__all__ = [
    "DATABASE",
    "LOCATION",
    "OthersRunning",
    "TrialQueue",
    "create_study",
    "flush_database",
    "open_study",
    "quiet_optuna",
    "storage_errors",
]

DATABASE = "study.db"
#: File with the URL and the name of a study that is not in ``DATABASE``.
LOCATION = "storage.txt"
#: Seconds that a write waits for other writers.
LOCKED_S = 60.0
# User attributes of a trial.
SETTINGS, OWNER, SECONDS, STEPS, REASON, INTERRUPTED, KILLS = (
    "settings", "owner", "seconds", "steps", "reason", "interrupted", "kills",
)  # fmt: skip
_STUDY = "sweep"
_HEARTBEAT_S = 20.0
_DEAD_S = 180.0  # age of the last heartbeat of a dead command: many heartbeats, since clocks of machines differ
_CLAIM_S = 60.0  # time for another machine to write its name into a trial that it has created
_STARTUP_TRIALS = 5  # finished trials before any trial is pruned


def create_study(folder: Path, name: str, search: Search) -> "Study":
    """Open the study in the folder of a sweep, or create it.

    Raises:
        APIUsageError: The study belongs to another search, or its storage cannot be used.
        BindingMissing: Optuna is not installed.
    """
    storage, study_name = _place(search.sweep.storage), _STUDY
    if "://" in storage:  # a database holds many studies
        study_name = name
    _check_place(folder, storage)
    # Two processes that create the tables at the same time would fail.
    with quiet_optuna(), storage_errors(folder), _locked(folder / "study.lock"):
        import optuna

        study: Study = optuna.create_study(
            storage=_open_storage(folder, storage),
            study_name=study_name,
            directions=[search.sweep.direction, *(["minimize"] if search.is_pareto else [])],
            load_if_exists=True,
        )
        existing = study.user_attrs.get("search")
        if existing is None:
            study.set_user_attr("search", _describe(search))
        else:
            _check_same(name, existing, _describe(search))
    if storage:
        (folder / LOCATION).write_text(f"{storage}\n{study_name}\n", "utf-8")
    return study


def _check_place(folder: Path, storage: str) -> None:
    """Raise APIUsageError if ``folder`` has runs of a study in another place.

    Trials of this study with the same numbers would continue them, with settings that they were not trained with.
    """
    if not any(folder.glob("runs/*")):
        return
    before = "" if (folder / DATABASE).is_file() else "a study that was removed"
    if (folder / LOCATION).is_file():
        before = _place((folder / LOCATION).read_text("utf-8").splitlines()[0])
    if before != storage:
        raise APIUsageError(
            f"{folder}: has runs of a study in {before or DATABASE}, got {storage or DATABASE}; set --sweep.storage as "
            "before, or choose another --sweep.name"
        )


def open_study(folder: Path) -> "Study":
    """Open the existing study of a sweep.

    Raises:
        APIUsageError: There is no study, or its storage cannot be used.
        BindingMissing: Optuna is not installed.
    """
    location = folder / LOCATION
    url, name = location.read_text("utf-8").splitlines() if location.is_file() else ("", _STUDY)
    # Opening a database also creates missing tables.
    with quiet_optuna(), storage_errors(folder), _locked(folder / "study.lock"):
        import optuna

        storage = _open_storage(folder, url)
        try:
            study: Study = optuna.load_study(storage=storage, study_name=name)
        except KeyError as error:
            raise APIUsageError(
                f"{url or folder / DATABASE}: holds no study {name!r} (yet); its sweep may have ended while it began: "
                "type the same command again"
            ) from error
        return study


def flush_database(folder: Path) -> None:
    """Move SQLite's write-ahead log into the database file, so that a copy of the file is complete."""
    if (folder / DATABASE).is_file():
        with contextlib.closing(sqlite3.connect(folder / DATABASE, timeout=LOCKED_S)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def storage_errors(folder: Path) -> Iterator[None]:
    """Convert errors of the storage.

    Raises:
        APIUsageError: The storage raised an error.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError, sqlite3.Error) as error:
        below = error.__cause__ if isinstance(error, StorageInternalError) else error
        cause = str(getattr(below, "orig", None) or below)
        if "locked" in cause:
            advice = f"another program has held it for {LOCKED_S:g} s; stop that and run this again: no trial is lost"
        elif "malformed" in cause or "not a database" in cause:
            advice = "it is damaged, or no database; choose another --sweep.name; the runs stay"
        else:
            advice = "check --sweep.storage, and that the folder can be written to"
        raise APIUsageError(f"{folder / DATABASE}: the study cannot be used ({cause}); {advice}") from error


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """Suppress Optuna's messages about each trial and its warnings about experimental functions.

    Raises:
        BindingMissing: Optuna is not installed.
    """
    try:
        with warnings.catch_warnings():
            # Optuna imports tqdm, which asks for another package if this is a notebook.
            warnings.filterwarnings("ignore", "IProgress not found")
            import optuna
    except ImportError as error:
        raise BindingMissing(f"pufferlib.sweep: a search needs optuna; {way_to_install('sweep')}") from error
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield
    finally:
        optuna.logging.set_verbosity(before)


class OthersRunning(Exception):  # noqa: N818 - a state, not an error
    """No trial is left to start, but other commands still run some.

    Attributes:
        hosts: Names of their machines.
    """

    def __init__(self, hosts: set[str]) -> None:
        super().__init__(", ".join(sorted(hosts)))
        self.hosts = hosts


class TrialQueue:
    """Trials of a study, shared by all commands that work on it.

    Args:
        study: The study.
        search: Description of the search.
        folder: Folder of the sweep.
        on_note: Function that shows a message to the user.

    Attributes:
        command: This command, the owner of the trials that it claims.
    """

    def __init__(self, study: "Study", search: Search, folder: Path, on_note: Callable[[str], None]) -> None:
        self._study, self._search, self._note = study, search, on_note
        # Machines that share a journal share the lock too, or both would start a study with the default settings.
        journal = _journal(search.sweep.storage)
        self._lock = journal.with_suffix(".claim") if journal else folder / "claim.lock"
        self.command = Command(study)
        study.pruner = _make_pruner(search)

    def enqueue_defaults(self, defaults: dict[str, Any]) -> None:
        """Enqueue the environment's default settings as the first trial of a new study.

        Args:
            defaults: Default of each searched setting. The trial uses a default outside its space unchanged, and Optuna
                gets the nearest value inside.
        """
        spaces = self._search.spaces
        with _locked(self._lock):
            if self._study.get_trials(deepcopy=False):
                return
            drawn = {spaces[key].param_name: spaces[key].encode(value) for key, value in defaults.items()}
            self._study.enqueue_trial(drawn, {SETTINGS: defaults})
        for key, value in defaults.items():
            if not spaces[key].contains(value):
                about = f"{value}, which is outside of its space, {spaces[key]}"
                self._note(f"the first trial has the environment's {key}, {about}")

    def claim(self) -> "Trial | None":
        """Return a trial to train, or None if all are finished.

        Trials of commands that were killed come first, then new ones.

        Raises:
            OthersRunning: Other commands run the remaining trials.
        """
        with _locked(self._lock):
            trials = self._study.get_trials(deepcopy=False)
            running = [trial for trial in trials if trial.state.name == "RUNNING"]
            abandoned = [trial for trial in running if self._is_abandoned(trial)]
            for trial in abandoned:
                if taken := self._take_over(trial):
                    return taken
            running = [trial for trial in running if trial.number not in {each.number for each in abandoned}]
            if self.count_finished() + len(running) < self._search.sweep.trials:
                return self._start_trial(len(trials))
        if others := [trial for trial in running if trial.user_attrs.get(OWNER) != self.command.id]:
            raise OthersRunning({self.command.host_of(trial.user_attrs.get(OWNER)) for trial in others})
        return None

    def count_finished(self) -> int:
        """Return the number of finished, pruned and failed trials."""
        return sum(
            trial.state.is_finished() and not trial.user_attrs.get(INTERRUPTED)
            for trial in self._study.get_trials(deepcopy=False)
        )

    def best_score(self) -> float:
        """Return the best score so far, or NaN if no trial has finished."""
        trials = self._study.get_trials(deepcopy=False)
        best = min if self._search.sweep.direction == "minimize" else max
        return best((trial.values[0] for trial in trials if trial.state.name == "COMPLETE"), default=math.nan)

    def report(self, trial: "Trial", step: int, score: float) -> bool:
        """Store a point of the learning curve and return True if the trial should be pruned."""
        # ``trial.report`` refuses a study with two objectives, and warns about points that a resumed trial repeats.
        trial.storage.set_trial_intermediate_value(trial._trial_id, step, score)
        frozen = trial.storage.get_trial(trial._trial_id)
        return not self._search.is_pareto and self._study.pruner.prune(self._study, frozen)

    def finish(self, trial: "Trial", score: float, seconds: float, steps: int) -> None:
        """Store the result of a trial."""
        _set_cost(trial, seconds, steps)
        cost = seconds if self._search.sweep.cost == "seconds" else steps
        self._study.tell(trial.number, [score, cost] if self._search.is_pareto else score)

    def prune(self, trial: "Trial", seconds: float, steps: int) -> None:
        """Mark a trial as pruned."""
        _set_cost(trial, seconds, steps)
        self._end(trial.number, "PRUNED")

    def fail(self, trial: "Trial", reason: str) -> None:
        """Mark a trial as failed."""
        trial.set_user_attr(REASON, reason)
        self._end(trial.number, "FAIL")

    def count_kill(self, trial: "Trial") -> int:
        """Record that the process of a trial was killed, and return how often that happened."""
        kills = int(trial.user_attrs.get(KILLS, 0)) + 1
        trial.set_user_attr(KILLS, kills)
        return kills

    def _start_trial(self, count: int) -> "Trial":
        from optuna.samplers import TPESampler

        # A sampler per trial: a command that continues a search must not repeat the draws of the one before.
        self._study.sampler = TPESampler(seed=self._sampler_seed(count))
        spaces = self._search.spaces.values()
        trial = self._study.ask({space.param_name: space.to_optuna() for space in spaces})
        trial.set_user_attr(OWNER, self.command.id)
        if SETTINGS not in trial.user_attrs:
            trial.set_user_attr(
                SETTINGS, {space.setting: space.decode(trial.params[space.param_name]) for space in spaces}
            )
        return trial

    def _sampler_seed(self, count: int) -> int:
        # Machines that share a storage may start a trial at the same moment, and must not draw the same settings.
        machine = self.command.id if self._search.sweep.storage else ""
        text = f"{self._search.sweep.seed} {count} {machine}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")

    def _is_abandoned(self, trial: "FrozenTrial") -> bool:
        owner = trial.user_attrs.get(OWNER)
        if owner is None and self._search.sweep.storage:
            start = trial.datetime_start or datetime.now()
            return datetime.now() - start > timedelta(seconds=_CLAIM_S)
        return self.command.is_dead(owner)

    def _take_over(self, abandoned: "FrozenTrial") -> "Trial | None":
        """Return a trial whose command was killed, or None if it had no settings yet."""
        from optuna.trial import Trial

        trial = Trial(self._study, abandoned._trial_id)
        if SETTINGS in abandoned.user_attrs:
            trial.set_user_attr(OWNER, self.command.id)
            return trial
        trial.set_user_attr(INTERRUPTED, True)
        self._end(abandoned.number, "FAIL")
        return None

    def _end(self, number: int, state: str) -> None:
        from optuna.trial import TrialState

        self._study.tell(number, state=TrialState[state])


class Command:
    """This process among all processes that work on a study.

    A dead process on this machine is detected at once, and one on another machine after three minutes without a
    heartbeat.

    Args:
        study: The study.

    Attributes:
        id: Identifier of this command.
    """

    def __init__(self, study: "Study") -> None:
        self.id = uuid.uuid4().hex[:12]
        self._study, self._heartbeat_s = study, -math.inf
        self.send_heartbeat()

    def send_heartbeat(self) -> None:
        """Store the current time in the study, at most every 20 seconds."""
        import psutil

        if time.monotonic() - self._heartbeat_s < _HEARTBEAT_S:
            return
        started = psutil.Process().create_time()  # the system may reuse the number of a process
        facts = {"host": _host(), "pid": os.getpid(), "started": started, "beat": time.time()}
        self._study.set_user_attr(f"owner:{self.id}", facts)
        self._heartbeat_s = time.monotonic()

    def is_dead(self, command: str | None) -> bool:
        """Return True if another command has ended."""
        if command == self.id:
            return False
        facts = self._study.user_attrs.get(f"owner:{command}")
        return facts is None or not _is_alive(facts)

    def host_of(self, command: str | None) -> str:
        """Return the name of the machine of a command."""
        facts = self._study.user_attrs.get(f"owner:{command}")
        return str(facts["host"]).partition(" ")[0] if facts else "another machine"


def _host() -> str:
    """Return an identifier of this machine or container that changes when it restarts."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("utf-8").strip()
    return f"{socket.gethostname()} {boot} {os.readlink('/proc/self/ns/pid')}"


def _is_alive(facts: dict[str, Any]) -> bool:
    import psutil

    if facts["host"] != _host():
        return bool(time.time() - facts["beat"] < _DEAD_S)
    try:
        process = psutil.Process(facts["pid"])
        is_same = abs(process.create_time() - float(facts["started"])) < 1.0
        return is_same and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.Error:
        return False


def _set_cost(trial: "Trial", seconds: float, steps: int) -> None:
    trial.set_user_attr(SECONDS, round(seconds, 3))
    trial.set_user_attr(STEPS, steps)


def _make_pruner(search: Search) -> "BasePruner":
    from optuna.pruners import NopPruner, PercentilePruner

    if search.is_pareto or not search.sweep.prune:
        return NopPruner()
    return PercentilePruner(
        100 * (1 - search.sweep.prune),
        n_startup_trials=_STARTUP_TRIALS,
        n_warmup_steps=math.floor(20 * search.sweep.prune_after),
        n_min_trials=_STARTUP_TRIALS - 1,
    )


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file. The system releases it if this process is killed."""
    try:
        lock = path.open("w")
    except OSError as error:
        raise APIUsageError(
            f"{path}: cannot be written ({error.strerror}); opening a study needs that, so copy the folder first"
        ) from error
    with lock:
        with contextlib.suppress(OSError):  # some network file systems have no locks
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _journal(place: str) -> Path | None:
    """Return the path of the journal that the setting ``sweep.storage`` names, or None if it names no journal."""
    return user_path(place).absolute() if place.endswith(".log") and "://" not in place else None


def _place(storage: str) -> str:
    """Return the setting ``sweep.storage`` as other folders can use it, with the absolute path of a journal."""
    return str(_journal(storage) or storage)


def _open_storage(folder: Path, place: str) -> "BaseStorage":
    """Open SQLite in ``folder`` if ``place`` is "", else the journal or database ``place``."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    if path := _journal(place):
        path.parent.mkdir(parents=True, exist_ok=True)
        # This lock also works on network file systems without symbolic links.
        return JournalStorage(JournalFileBackend(str(path), lock_obj=JournalFileOpenLock(str(path))))
    if place and "://" not in place:
        raise APIUsageError(
            f"sweep.storage must be a URL, as postgresql://user@host/name, or a file NAME.log, got {place!r}"
        )
    if place:
        try:
            return RDBStorage(place)
        except ImportError as error:
            raise APIUsageError(
                f"sweep.storage: {place!r} needs a package for this kind of database ({error.__cause__ or error}); "
                "install it, for postgresql:// by: pip install psycopg2-binary, or take a file NAME.log"
            ) from error
    path = (folder / DATABASE).absolute()
    with contextlib.closing(sqlite3.connect(path, timeout=LOCKED_S)) as database:
        database.execute("PRAGMA journal_mode=WAL")  # readers do not wait for writers
    # The path is not part of the URL, where %, ? and braces have a meaning.
    connect = functools.partial(sqlite3.connect, path, timeout=LOCKED_S, check_same_thread=False)
    return RDBStorage(f"sqlite:///{DATABASE}", engine_kwargs={"creator": connect})


def _describe(search: Search) -> dict[str, Any]:
    """Return everything that the trials of a study have in common, as plain data."""
    sections = search.base.as_dict()
    del sections["env_name"], sections["track"]  # trackers do not change the result
    settings = {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}
    others = {key: value for key, value in settings.items() if key not in search.spaces and key not in FREE}
    return {
        "env_name": search.base.env_name,
        "objective": search.sweep.objective,
        "cost": search.sweep.cost,
        "metric": search.sweep.metric,
        "spaces": {key: space.as_dict() for key, space in search.spaces.items()},
        "settings": json.loads(json.dumps(others, default=repr)),
        "longest": search.longest,
        # Studies of earlier versions have no direction.
        **({"direction": "minimize"} if search.sweep.direction == "minimize" else {}),
    }


def _check_same(name: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise APIUsageError if two descriptions are of different searches."""
    new = "for a new search, choose another --sweep.name"
    where = f"sweep {name!r}"
    if before["env_name"] != now["env_name"]:
        raise APIUsageError(f"{where}: is of {before['env_name']}, got {now['env_name']}; {new}")
    before, now = ({"direction": "maximize", **each} for each in (before, now))
    for key in ("objective", "cost", "metric", "direction"):
        if before[key] != now[key]:
            raise APIUsageError(f"{where}: was started with sweep.{key} {before[key]}, got {now[key]}; {new}")
    for kind, prefix in (("spaces", "sweep."), ("settings", "")):
        changed = [key for key in {**before[kind], **now[kind]} if _differs(kind, key, before, now)]
        if changed:
            texts = [
                f"{prefix}{key} ({_text(before[kind].get(key))} before, {_text(now[kind].get(key))} now)"
                for key in changed
            ]
            more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
            raise APIUsageError(
                f"{where}: was started with other {kind}: {', '.join(texts[:3])}{more}; use those, or " + new
            )


def _differs(kind: str, key: str, before: dict[str, Any], now: dict[str, Any]) -> bool:
    """Return True if a space or a setting differs. Settings that only one version of the library has are ignored."""
    is_changed = bool(before[kind].get(key) != now[kind].get(key))
    if kind == "spaces":
        return is_changed
    if key in before["spaces"] or key in now["spaces"]:  # reported as a space
        return False
    return is_changed and ((key in before[kind] and key in now[kind]) or key.startswith("env."))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)
