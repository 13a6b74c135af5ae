"""``pufferlib.sweep(...)``: search for settings from Python, as ``puffer sweep`` does it."""

import contextlib
import json
import math
import re
import shutil
import time
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pufferlib import errors, registry
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.machine.paths import user_path
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.machine.signals import signals_exit
from pufferlib.registry.outside import name_of, registrations
from pufferlib.sweeps.claims import Claims, OthersInProgress
from pufferlib.sweeps.messages import (
    Description,
    Stop,
    Surrounding,
    TrialCurvePoint,
    TrialFailure,
    TrialOrder,
    TrialPace,
    TrialScore,
)
from pufferlib.sweeps.pool import TrialProcess, end_all, shares_of_cores, wait_for_messages
from pufferlib.sweeps.progress import SweepDisplay
from pufferlib.sweeps.result import SweepResult, curve_interval, run_folder
from pufferlib.sweeps.settings import Search, load_search, own_value, with_settings
from pufferlib.sweeps.storage import SWEEPS, create_study, quiet_optuna, speaks_of_errors, tidy
from pufferlib.text import plural
from pufferlib.training.config import load_config
from pufferlib.training.settings import settings_files

if TYPE_CHECKING:
    from optuna.trial import Trial

__all__ = ["sweep"]

WHERE = "pufferlib.sweep"
_FIRST = 3  # trials: when all of these fail, the fault is not in the settings that were drawn
_KILLS = 3  # of one trial's process; once more would hardly end otherwise
_TICK_S = 1.0
_OTHERS_S = 2.0  # between two looks at the trials of other machines


def sweep(
    env: str | PathLike[str] | Callable[..., Any],
    settings: Mapping[str, Any] | None = None,
    *,
    config: Path | str | None = None,
    spaces: Mapping[str, Mapping[str, Any]] | None = None,
    sweeps: Path | str = SWEEPS,
    display: SweepDisplay | None = None,
    **options: Any,
) -> SweepResult:
    """Search for settings with which an environment is learned best: trials in worker processes, by Optuna.

    All is kept in ``sweeps/<name>``: the study, the run of each trial, and at the end ``best.toml`` and
    ``report.html``. Called again, it goes on until there are so many trials. Whatever is killed, finished trials stay,
    and those that were in progress go on from their latest checkpoint.

    Args:
        env: What ``pufferlib.make`` takes, or a class or function that makes an environment.
        settings: Dotted keys that are the same in all trials, over those of the files; not searched then.
        config: A TOML file of settings, over those of the environment; ``[sweep]`` in it is of the search.
        spaces: What to search, over the spaces of the files: ``{"train.gamma": {"min": 0.9}}``; the keys are those of
            a table ``[sweep.train.gamma]``: ``distribution``, ``min``, ``max``, ``choices``.
        sweeps: Folder of all sweeps.
        display: Shows how it goes; None shows nothing.
        options: Of ``SweepConfig``: ``trials``, ``workers``, ``name``, ``objective`` and so on.

    Raises:
        UnknownNameError: There is no such environment, setting, option or distribution; the nearest are suggested.
        APIUsageError: A space is wrong, or the sweep of that name is of another environment or search.
        PufferError: The first three trials all failed.
        BindingMissing: Optuna, or the package behind the environment, is not installed.
    """
    env = fspath(env) if isinstance(env, str | PathLike) else name_of(env, WHERE)
    search = _load(env, settings or {}, config, spaces or {}, options)
    name = search.sweep.name or _plain(search.base.env_name)
    if Path(name).name != name:
        raise APIUsageError(
            f"sweep.name must be the name of a folder in {sweeps}, got {name!r}; --sweeps has the others"
        )
    folder = user_path(sweeps) / name
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with quiet_optuna(), speaks_of_errors(folder):
            study = create_study(folder, name, search)
            study.set_user_attr("fixed", _learned(search.fixed))
            display = display or SweepDisplay()
            claims = Claims(study, search, folder, display.note)
            with contextlib.closing(_Sweep(search, folder, claims, display)) as running, signals_exit():
                running.run()
            tidy(folder)
    except BaseException:
        if is_new and not list(folder.glob("runs/*")):  # a search that never began leaves nothing
            shutil.rmtree(folder, ignore_errors=True)
        raise
    result = SweepResult(folder, study)
    if any(trial.state == "finished" for trial in result.trials):
        result.save_best()
        result.report()
    return result


class _Sweep:
    """The loop of a search: gives trials to processes, and hears of them."""

    def __init__(self, search: Search, folder: Path, claims: Claims, display: SweepDisplay) -> None:
        self._search, self._folder, self._claims, self._display = search, folder, claims, display
        count, cores = search.sweep.workers, usable_cpus()
        if count > cores:
            display.note(f"{count} workers share {plural(cores, 'core')}; more than {cores} seldom finish sooner")
        self._shares = shares_of_cores(count, cores)
        self._processes: dict[int, TrialProcess] = {}
        self._trials: dict[int, Trial] = {}  # in progress, by the index of their process
        self._failures = 0  # of the first trials, as long as all of them fail
        self._has_succeeded = False
        (folder / "logs").mkdir(exist_ok=True)

    def run(self) -> None:
        """Train trials until there are as many as were asked for."""
        finished = self._claims.count_finished()
        self._display.begin(self._search, self._folder, finished, self._claims.best_score())
        if finished >= self._search.sweep.trials:
            return
        self._claims.begin_with_defaults(self._look())
        while self._fill():
            ready = wait_for_messages([self._processes[index] for index in self._trials], _TICK_S)
            for index in [index for index in self._trials if self._processes[index] in ready]:
                self._hear(index)
            self._claims.owner.beat()
            self._display.tick()

    def close(self) -> None:
        """End all processes; trials in progress save a checkpoint, from which the next command goes on."""
        end_all(list(self._processes.values()))
        self._display.close()

    def _look(self) -> dict[str, Any]:
        """Build the environment and the network once; return the environment's values of what is searched.

        Raises:
            PufferError: It cannot be built.
        """
        process = self._process(0)
        probe = self._folder / "probe"
        process.send(TrialOrder(-1, {}, probe, is_whole=False))
        answer = process.receive()
        shutil.rmtree(probe, ignore_errors=True)
        if answer is None:
            log, ending = process.log, process.ending()
            raise PufferError(f"{WHERE}: the environment could not be built: its process ended ({ending}); see {log}")
        if isinstance(answer, TrialFailure):
            kind = getattr(errors, answer.kind, PufferError)
            raise kind(answer.reason)
        assert isinstance(answer, Description)
        own = {key: own_value(answer.config, key) for key in self._search.spaces}
        spaces = self._search.spaces
        return {key: spaces[key].setting_of(spaces[key].drawn_of(0)) if own[key] is None else own[key] for key in own}

    def _fill(self) -> bool:
        """Give every idle process a trial; False once all are finished."""
        for index in range(self._search.sweep.workers):
            if index in self._trials:
                continue
            try:
                trial = self._claims.claim()
            except OthersInProgress as waiting:
                if not self._trials:
                    self._display.wait_for(waiting.hosts)
                    time.sleep(_OTHERS_S)
                return True
            if trial is None:
                break
            self._give(index, trial)
        return bool(self._trials)

    def _give(self, index: int, trial: "Trial") -> None:
        settings = trial.user_attrs["settings"]
        self._trials[index] = trial
        self._process(index).send(TrialOrder(trial.number, settings, run_folder(self._folder, trial.number)))
        self._display.start(index, trial.number, settings)

    def _hear(self, index: int) -> None:
        trial, process = self._trials[index], self._processes[index]
        match process.receive():
            case None:
                self._ended(index)
            case TrialPace() as pace:
                self._display.show_pace(index, pace)
            case TrialCurvePoint(step, score):
                if self._claims.report(trial, step, score):
                    process.send(Stop(trial.number))
            case TrialScore(score, seconds, steps, True):
                self._claims.finish(trial, score, seconds, steps)
                self._finish(index, "finished", score, seconds)
            case TrialScore(score, seconds, steps):
                self._claims.prune(trial, seconds, steps)
                self._finish(index, "pruned", score, seconds)
            case TrialFailure(_, reason, has_stack):
                self._fail(index, f"{reason} (its stack is in {process.log})" if has_stack else reason)

    def _ended(self, index: int) -> None:
        """Go on after the end of a process: with the same trial if somebody killed it, else with the next."""
        trial, process = self._trials[index], self._processes.pop(index)
        ending = process.ending()
        was_killed = ending in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "exit code 143", "exit code 129")
        if was_killed and self._claims.count_kill(trial) < _KILLS:
            self._display.note(f"trial {trial.number}: its process was killed ({ending}); it goes on in another one")
            self._give(index, trial)
        elif was_killed:
            self._fail(
                index, f"its process was killed {_KILLS} times ({ending}), as happens where the memory is too small"
            )
        else:
            self._fail(index, f"its process crashed ({ending}); its stack is in {process.log}")

    def _fail(self, index: int, reason: str) -> None:
        self._claims.fail(self._trials[index], reason)
        self._finish(index, "failed", reason=reason)
        self._failures += 1
        if self._failures >= _FIRST and not self._has_succeeded:
            raise PufferError(
                f"{WHERE}: the first {_FIRST} trials all failed, so the search ends; the last one: {reason}; "
                "mend that, and run this again: the search goes on"
            )

    def _finish(
        self, index: int, state: str, score: float = math.nan, seconds: float = math.nan, reason: str = ""
    ) -> None:
        del self._trials[index]
        self._has_succeeded |= state != "failed"
        self._display.finish(index, state, score, seconds, reason)

    def _process(self, index: int) -> TrialProcess:
        if index not in self._processes:
            search = self._search
            known = {name: each for name, each in registrations().items() if name == search.base.env_name}
            interval = curve_interval(search.longest)
            surrounding = Surrounding(search.base, known, search.sweep.metric, interval, index)
            log = self._folder / "logs" / f"worker-{index}.log"
            self._processes[index] = TrialProcess(self._shares[index], pickle_by_value(surrounding), log)
        return self._processes[index]


def _load(
    env: str, settings: Mapping[str, Any], config: Path | str | None, spaces: Mapping[str, Any], options: dict[str, Any]
) -> Search:
    registry.env_creator(env, WHERE)
    base = load_config(env, settings, config)
    if base.train.processes > 1:
        raise APIUsageError(
            f"{WHERE}: a trial trains in one process, got train.processes {base.train.processes}; leave it out, and "
            "take more sweep.workers"
        )
    overrides = {f"{key}.{name}": value for key, table in spaces.items() for name, value in table.items()}
    fixed = {key: own_value(base, key) for key in settings}
    search = load_search(base, fixed, settings_files(base.env_name, config), {**options, **overrides})
    for space in search.spaces.values():  # both ends, before anything is trained
        for value in space.choices or (space.low, space.high):
            with_settings(base, {space.setting: space.setting_of(space.drawn_of(value))})
    return search


def _learned(fixed: Mapping[str, Any]) -> Any:
    """The settings, as JSON has them, that matter to what is learned: without those of trackers."""
    kept = {key: value for key, value in fixed.items() if not key.startswith("track.")}
    return json.loads(json.dumps(kept, default=repr))


def _plain(env_name: str) -> str:
    """The name of an environment as that of a folder."""
    return re.sub(r"[^\w.-]", "-", registry.short_name(env_name).replace(".py", ""))
