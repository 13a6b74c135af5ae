"""Search for settings from Python: ``pufferlib.sweep(...)``."""

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
from pufferlib.settings.config import load_config, load_sources, setting_names
from pufferlib.sweeps.progress import ConsoleDisplay, SweepDisplay
from pufferlib.sweeps.report import write_report
from pufferlib.sweeps.result import SWEEPS, SweepResult, curve_interval, run_folder
from pufferlib.sweeps.spaces import POLICY, Search, load_search, setting_value, trial_config
from pufferlib.sweeps.study import (
    SETTINGS,
    OthersRunning,
    TrialQueue,
    create_study,
    flush_database,
    quiet_optuna,
    storage_errors,
)
from pufferlib.sweeps.workers import (
    ProbeRequest,
    ProbeResult,
    PruneRequest,
    TrialCurvePoint,
    TrialFailure,
    TrialPace,
    TrialProcess,
    TrialRequest,
    TrialScore,
    WorkerSetup,
    split_cores,
    stop_all,
    wait_for_messages,
)
from pufferlib.text import plural

if TYPE_CHECKING:
    from optuna.trial import Trial

__all__ = ["sweep"]

WHERE = "pufferlib.sweep"
SECTION = "sweep."
_FIRST = 3  # if this many trials fail and none succeeds, the settings are not the cause
_MAX_KILLS = 3  # after so many kills, another attempt of the same trial is unlikely to succeed
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
    progress: bool = False,
    **options: Any,
) -> SweepResult:
    """Search for the settings with the best score, with Optuna and worker processes.

    The folder ``sweeps/<name>`` holds the study, the run of each trial, and at the end ``best.toml`` and
    ``report.html``. If you call the function again, it continues until the study has ``trials`` trials. Finished
    trials are kept even if the process is killed, and interrupted trials resume from their latest checkpoint.

    Args:
        env: Environment, as for ``pufferlib.make``, or a class or function that makes one.
        settings: Settings of all trials by dotted name. They override the files and are not searched. Names such as
            "sweep.trials" are options of the search.
        config: TOML file with settings. They override the environment's defaults. ``[sweep]`` configures the search.
        spaces: Search spaces by dotted name, such as ``{"train.gamma": {"min": 0.9}}``. They override the files. The
            keys are those of a table ``[sweep.train.gamma]``: ``distribution``, ``min``, ``max`` and ``choices``.
        sweeps: Folder of all sweeps.
        display: Object that shows the progress. None shows nothing.
        progress: Show each trial on standard output, as ``puffer sweep`` does, if no ``display`` is given.
        options: Fields of ``SweepConfig``, such as ``trials``, ``workers``, ``name`` and ``objective``.

    Returns:
        Result of the search.

    Raises:
        UnknownNameError: The environment, a setting, an option or a distribution does not exist. The message suggests
            similar names.
        APIUsageError: A space is invalid, or the sweep of this name belongs to another environment or search.
        PufferError: The first three trials of this call all failed.
        BindingMissing: Optuna or the package of the environment is not installed.
    """
    env = fspath(env) if isinstance(env, str | PathLike) else name_of(env, WHERE)
    with quiet_optuna():
        search = _load(env, settings or {}, config, spaces or {}, options)
    name = search.sweep.name or _folder_name(search.base.env_name)
    if Path(name).name != name or name == "..":
        raise APIUsageError(
            f"sweep.name must be the name of a folder in {sweeps}, got {name!r}; --sweeps has the others"
        )
    folder = user_path(sweeps) / name
    is_new = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with quiet_optuna(), storage_errors(folder):
            study = create_study(folder, name, search)
            study.set_user_attr("fixed", _plain_settings(_not_own(search)))
            display = display or (_console_display() if progress else SweepDisplay())
            queue = TrialQueue(study, search, folder, display.note)
            with contextlib.closing(_SearchLoop(search, folder, queue, display)) as loop, signals_exit():
                loop.run()
            flush_database(folder)
    except BaseException:
        if is_new and not list(folder.glob("runs/*")):  # no trial has started
            shutil.rmtree(folder, ignore_errors=True)
        raise
    result = SweepResult(folder, study)
    if any(trial.state == "finished" for trial in result.trials):
        result.save_best()
        write_report(result)
    return result


def _console_display() -> ConsoleDisplay:
    from rich.console import Console

    return ConsoleDisplay(Console())


class _SearchLoop:
    """Loop that gives trials to workers and stores their results."""

    def __init__(self, search: Search, folder: Path, queue: TrialQueue, display: SweepDisplay) -> None:
        self._search, self._folder, self._queue, self._display = search, folder, queue, display
        count, cores = search.sweep.workers, usable_cpus()
        if count > cores:
            display.note(f"{count} workers share {plural(cores, 'core')}; more than {cores} seldom finish sooner")
        self._cores = split_cores(count, cores)
        self._processes: dict[int, TrialProcess] = {}
        self._trials: dict[int, Trial] = {}  # running trials, by index of the worker
        self._num_agents: int | None = None
        self._failures = 0
        self._has_succeeded = False
        (folder / "logs").mkdir(exist_ok=True)

    def run(self) -> None:
        """Train trials until the study has as many as requested."""
        finished = self._queue.count_finished()
        self._display.begin(self._search, self._folder, finished, self._queue.best_score())
        if finished >= self._search.sweep.trials:
            return
        self._queue.enqueue_defaults(self._probe())
        while self._start_trials():
            ready = wait_for_messages([self._processes[index] for index in self._trials], _TICK_S)
            for index in [index for index in self._trials if self._processes[index] in ready]:
                self._receive(index)
            self._queue.command.send_heartbeat()
            self._display.tick()

    def close(self) -> None:
        """Stop all workers. Running trials save a checkpoint, from which the next command resumes."""
        stop_all(list(self._processes.values()))
        self._display.close()

    def _probe(self) -> dict[str, Any]:
        """Build the environments and the policy once and return the default of each searched setting.

        Raises:
            PufferError: They cannot be built.
        """
        worker, folder = self._worker(0), self._folder / "probe"
        worker.send(ProbeRequest(folder.absolute()))  # environments may change the working directory
        answer = worker.receive()
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(answer, TrialFailure):
            raise getattr(errors, answer.kind, PufferError)(answer.reason)
        if not isinstance(answer, ProbeResult):
            raise PufferError(
                f"{WHERE}: the environment could not be built: its process ended ({worker.wait()}); see {worker.log}"
            )
        spaces = self._search.spaces
        if not any(key.startswith(("env.", "vec.")) for key in spaces):  # else it may differ between trials
            self._num_agents = answer.num_agents
        own = {key: setting_value(answer.config, key) for key in spaces}
        # A setting without a default starts at the lower bound or the first choice.
        return {key: spaces[key].decode(spaces[key].encode(0)) if own[key] is None else own[key] for key in own}

    def _start_trials(self) -> bool:
        """Start a trial in every idle worker and return False if all trials are finished."""
        for index in range(self._search.sweep.workers):
            if index in self._trials:
                continue
            try:
                trial = self._queue.claim()
            except OthersRunning as waiting:
                if not self._trials:
                    self._display.wait_for(waiting.hosts)
                    time.sleep(_OTHERS_S)
                return True
            if trial is None:
                break
            self._start(index, trial)
        return bool(self._trials)

    def _start(self, index: int, trial: "Trial") -> None:
        settings, folder = trial.user_attrs[SETTINGS], run_folder(self._folder, trial.number)
        self._trials[index] = trial
        self._worker(index).send(TrialRequest(trial.number, settings, folder.absolute(), self._num_agents))
        self._display.start(index, trial.number, settings)

    def _receive(self, index: int) -> None:
        """Handle the next message of a worker."""
        trial, worker = self._trials[index], self._processes[index]
        match worker.receive():
            case None:
                self._handle_exit(index)
            case TrialPace() as pace:
                self._display.show_pace(index, pace)
            case TrialCurvePoint(step, score):
                if self._queue.report(trial, step, score):
                    worker.send(PruneRequest(trial.number))
            case TrialScore(score, seconds, steps, is_pruned=False):
                self._queue.finish(trial, score, seconds, steps)
                self._finish(index, "finished", score, seconds)
            case TrialScore(score, seconds, steps):
                self._queue.prune(trial, seconds, steps)
                self._finish(index, "pruned", score, seconds)
            case TrialFailure(_, reason, has_stack):
                self._fail(index, f"{reason} (its stack is in {worker.log})" if has_stack else reason)

    def _handle_exit(self, index: int) -> None:
        """Restart the trial if its worker was killed, and fail it if the worker crashed."""
        trial, worker = self._trials[index], self._processes.pop(index)
        ending = worker.wait()
        was_killed = ending in ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP", "exit code 143", "exit code 129")
        if not was_killed:
            self._fail(index, f"its process crashed ({ending}); its stack is in {worker.log}")
        elif self._queue.count_kill(trial) < _MAX_KILLS:
            self._display.note(f"trial {trial.number}: its process was killed ({ending}); it continues in another one")
            self._start(index, trial)
        else:
            self._fail(
                index,
                f"its process was killed {_MAX_KILLS} times ({ending}), as happens where the memory is too small",
            )

    def _fail(self, index: int, reason: str) -> None:
        self._queue.fail(self._trials[index], reason)
        self._finish(index, "failed", reason=reason)
        self._failures += 1
        if self._failures >= _FIRST and not self._has_succeeded:
            raise PufferError(
                f"{WHERE}: the first {_FIRST} trials of this call all failed, so the search ends; the last: {reason}; "
                "fix this, and run the command again to continue the search"
            )

    def _finish(
        self, index: int, state: str, score: float = math.nan, seconds: float = math.nan, reason: str = ""
    ) -> None:
        del self._trials[index]
        self._has_succeeded |= state != "failed"
        self._display.finish(index, state, score, seconds, reason)

    def _worker(self, index: int) -> TrialProcess:
        """Return a worker, started if necessary."""
        if index not in self._processes:
            search = self._search
            known = {name: each for name, each in registrations().items() if name == search.base.env_name}
            setup = WorkerSetup(
                search.base, search.bases, known, search.sweep.metric, curve_interval(search.longest), index
            )
            log = self._folder / "logs" / f"worker-{index}.log"
            self._processes[index] = TrialProcess(self._cores[index], pickle_by_value(setup), log)
        return self._processes[index]


def _load(
    env: str, settings: Mapping[str, Any], config: Path | str | None, spaces: Mapping[str, Any], options: dict[str, Any]
) -> Search:
    registry.env_creator(env, WHERE)
    own = {key.removeprefix(SECTION): value for key, value in settings.items() if key.startswith(SECTION)}
    settings = {key: value for key, value in settings.items() if not key.startswith(SECTION)}
    base = load_config(env, settings, config)
    if base.train.processes > 1:
        raise APIUsageError(
            f"{WHERE}: a trial trains in one process, got train.processes {base.train.processes}; leave it out, and "
            "take more sweep.workers"
        )
    overrides = {f"{key}.{name}": value for key, table in spaces.items() for name, value in table.items()}
    fixed = {key: setting_value(base, key) for key in settings}
    search = load_search(base, fixed, load_sources(base.env_name, file=config), {**own, **options, **overrides})
    policies = search.spaces[POLICY].choices if POLICY in search.spaces else ()
    search.bases.update((str(name), load_config(env, {**settings, POLICY: name}, config)) for name in policies)
    for space in search.spaces.values():  # check both ends of each space before anything is trained
        for value in space.choices or (space.low, space.high):
            trial_config(base, search.bases, {space.setting: space.decode(space.encode(value))})
    return search


def _not_own(search: Search) -> dict[str, Any]:
    """Return the settings of all trials that are not the environment's own: those of ``config`` and of the caller."""
    base, own = search.base, load_config(search.base.env_name)
    names = [*setting_names(), *(f"env.{key}" for key in base.env)]
    differing = [name for name in names if setting_value(base, name) != setting_value(own, name)]
    return {**{name: setting_value(base, name) for name in differing}, **search.fixed}


def _plain_settings(fixed: Mapping[str, Any]) -> Any:
    """Return the settings that affect learning as JSON data, without those of trackers."""
    kept = {key: value for key, value in fixed.items() if not key.startswith("track.")}
    return json.loads(json.dumps(kept, default=repr))


def _folder_name(env_name: str) -> str:
    return re.sub(r"[^\w.-]", "-", registry.short_name(env_name).replace(".py", ""))
