"""The study of a search: where it is stored, and whether it is the one that is meant."""

import contextlib
import fcntl
import functools
import json
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import as_typed, way_to_install
from pufferlib.runs.resume import FREE
from pufferlib.sweeps.settings import Search

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from optuna.study import Study

__all__ = [
    "DATABASE",
    "SWEEPS",
    "create_study",
    "describe",
    "find_sweep",
    "open_study",
    "quiet_optuna",
    "speaks_of_errors",
    "tidy",
]

#: Default folder of all sweeps.
SWEEPS: Path = Path("sweeps")
DATABASE = "study.db"
PLACE = "storage.txt"  # where the study is, if not in DATABASE
LOCK = "study.lock"
_STUDY = "sweep"
LOCKED_S = 60.0  # a write waits so long for others


def create_study(folder: Path, name: str, search: Search) -> "Study":
    """The study in the folder of a sweep, which is made where there is none.

    Raises:
        APIUsageError: It is of another environment or of other spaces, or its storage cannot be used.
        BindingMissing: Optuna is not installed.
    """
    with quiet_optuna(), speaks_of_errors(folder), _alone(folder):
        import optuna

        storage = _open_storage(folder, search.sweep.storage)
        directions = [search.sweep.direction, *(["minimize"] if search.is_pareto else [])]
        study: Study = optuna.create_study(
            storage=storage,
            study_name=_study_name(name, search.sweep.storage),
            directions=directions,
            load_if_exists=True,
        )
        kept = study.user_attrs.get("search")
        if kept is None:
            study.set_user_attr("search", describe(search))
        else:
            _check_same(name, kept, describe(search))
    if search.sweep.storage:
        (folder / PLACE).write_text(f"{search.sweep.storage}\n{_study_name(name, search.sweep.storage)}\n", "utf-8")
    return study


def open_study(folder: Path) -> "Study":
    """The study of a sweep that was begun before.

    Raises:
        APIUsageError: There is none, or its storage cannot be used.
        BindingMissing: Optuna is not installed.
    """
    place = folder / PLACE
    url, name = place.read_text("utf-8").splitlines() if place.is_file() else ("", _STUDY)
    # Opening a database makes the tables that it lacks, as creating the study does.
    with quiet_optuna(), speaks_of_errors(folder), _alone(folder):
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


def find_sweep(where: str, name: str, sweeps: Path) -> Path:
    """The folder of a sweep, by its name or its path.

    Raises:
        APIUsageError: There is no such sweep.
    """
    for folder in (sweeps / name, Path(name)):
        if (folder / DATABASE).is_file() or (folder / PLACE).is_file():
            return folder
    others = sorted(path.parent.name for path in [*sweeps.glob(f"*/{DATABASE}"), *sweeps.glob(f"*/{PLACE}")])
    there = f"there are {', '.join(others)}" if others else "there is none yet"
    raise APIUsageError(f"{where}: no sweep {name!r} in {sweeps}; {there}; begin it: {as_typed('puffer sweep', name)}")


def tidy(folder: Path) -> None:
    """Bring all of the study into its one file, so that a copy of that is whole."""
    if (folder / DATABASE).is_file():
        with contextlib.closing(sqlite3.connect(folder / DATABASE, timeout=LOCKED_S)) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def describe(search: Search) -> dict[str, Any]:
    """All that trials of one study have in common."""
    base = search.base
    sections = base.as_dict()
    del sections["env_name"], sections["track"]  # trackers change nothing in what is learned
    settings = {f"{section}.{key}": value for section, values in sections.items() for key, value in values.items()}
    others = {key: value for key, value in settings.items() if key not in search.spaces and key not in FREE}
    return {
        "env_name": base.env_name,
        "objective": search.sweep.objective,
        "cost": search.sweep.cost,
        "metric": search.sweep.metric,
        "spaces": {key: space.as_dict() for key, space in search.spaces.items()},
        "settings": json.loads(json.dumps(others, default=repr)),
        "longest": search.longest,
        **({"direction": "minimize"} if search.sweep.direction == "minimize" else {}),  # studies of before have none
    }


@contextlib.contextmanager
def speaks_of_errors(folder: Path) -> Iterator[None]:
    """Tell in a sentence what a database refuses.

    Raises:
        APIUsageError: Instead of the errors of the storage.
    """
    from optuna.exceptions import StorageInternalError
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (StorageInternalError, SQLAlchemyError, sqlite3.Error) as error:
        below = error.__cause__ if isinstance(error, StorageInternalError) else error
        cause = str(getattr(below, "orig", None) or below)
        if "locked" in cause:
            advice = f"another program has held it for {LOCKED_S:g} s; end that, and run this again: no trial is lost"
        elif "malformed" in cause or "not a database" in cause:
            advice = "it is damaged, or no database; move it away, or take another --sweep.name; the runs stay"
        else:
            advice = "look at --sweep.storage, and whether the folder can be written to"
        raise APIUsageError(f"{folder / DATABASE}: the study cannot be used ({cause}); {advice}") from error


@contextlib.contextmanager
def quiet_optuna() -> Iterator[None]:
    """While this holds, Optuna tells only of errors, not of each trial.

    Raises:
        BindingMissing: It is not installed.
    """
    try:
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


def _open_storage(folder: Path, place: str) -> "BaseStorage":
    """SQLite in ``folder``, a journal, or the database of a URL."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    if place.endswith(".log") and "://" not in place:
        path = Path(place).absolute()
        path.parent.mkdir(parents=True, exist_ok=True)
        # The lock of file systems that lack symbolic links too, as those of networks.
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
        database.execute("PRAGMA journal_mode=WAL")  # whoever reads does not wait for whoever writes
    # Not by its path in the URL, where %, ? and braces mean something else.
    connect = functools.partial(sqlite3.connect, path, timeout=LOCKED_S, check_same_thread=False)
    return RDBStorage(f"sqlite:///{DATABASE}", engine_kwargs={"creator": connect})


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other process begin or open the study meanwhile: both would make its tables."""
    try:
        lock = (folder / LOCK).open("w")
    except OSError as error:
        raise APIUsageError(
            f"{folder / LOCK}: cannot be written ({error.strerror}), as whoever opens a study must; copy the folder"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _study_name(name: str, storage: str) -> str:
    """A shared database holds many studies, a file of our own one."""
    return name if "://" in storage else _STUDY


def _check_same(name: str, before: dict[str, Any], now: dict[str, Any]) -> None:
    """Raise unless two descriptions are of one search."""
    new = "to search anew, take another --sweep.name"
    where = f"sweep {name!r}"
    if before["env_name"] != now["env_name"]:
        raise APIUsageError(f"{where}: is of {before['env_name']}, got {now['env_name']}; {new}")
    for key in ("objective", "cost", "metric"):
        if before[key] != now[key]:
            raise APIUsageError(f"{where}: was begun with sweep.{key} {before[key]}, got {now[key]}; {new}")
    for kind, title in (("spaces", "sweep."), ("settings", "")):
        changed = [key for key in {**before[kind], **now[kind]} if _differs(kind, key, before, now)]
        if changed:
            texts = [
                f"{title}{key} ({_text(before[kind].get(key))} before, {_text(now[kind].get(key))} now)"
                for key in changed
            ]
            more = f" and {len(texts) - 3} more" if len(texts) > 3 else ""
            raise APIUsageError(
                f"{where}: was begun with other {kind}: {', '.join(texts[:3])}{more}; type what it was begun with, or "
                + new
            )


def _differs(kind: str, key: str, before: dict[str, Any], now: dict[str, Any]) -> bool:
    """True if two searches differ in a space, or in a setting that both have; other versions may have more of these."""
    if kind == "spaces":
        return bool(before[kind].get(key) != now[kind].get(key))
    if key in before["spaces"] or key in now["spaces"]:  # told as a space
        return False
    in_both = key in before[kind] and key in now[kind]
    return (in_both or key.startswith("env.")) and bool(before[kind].get(key) != now[kind].get(key))


def _text(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, dict):
        return ", ".join(f"{key} {each}" for key, each in value.items())
    return str(value)
