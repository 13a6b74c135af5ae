"""``pufferlib.train(...)``: a whole run from Python, as ``puffer train`` does it."""

import contextlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal

from pufferlib import registry
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.train.callbacks import Callback, CallbackFunction
from pufferlib.train.config import Config, load_config
from pufferlib.train.loggers import JsonlLogger, Logger
from pufferlib.train.result import Comparison, compare, finish_run
from pufferlib.train.resume import check_changes, go_on, is_finished, settings_of
from pufferlib.train.runs import RUNS, Run, find_run, load_policy, new_run
from pufferlib.train.trainer import Trainer
from pufferlib.train.tuned import with_tuned_vec

__all__ = ["TrainedRun", "train"]

WHERE = "pufferlib.train"


@dataclass(frozen=True)
class TrainedRun:
    """A run that is done.

    Attributes:
        run: Its folder, and the paths of all its files.
        config: Its settings, with numbers in place of 0 for those that follow from the number of agents.
        policy: The trained network.
        comparison: Its evaluation, beside random play's.
    """

    run: Run
    config: Config
    policy: Policy
    comparison: Comparison


def train(
    env: str | PathLike[str] | Callable[..., Any] | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    config: Path | str | None = None,
    vec: Literal["auto"] | None = None,
    runs: Path | str = RUNS,
    resume: Path | str | None = None,
    loggers: Sequence[Logger] = (),
    callbacks: Sequence[Callback | CallbackFunction] = (),
) -> TrainedRun:
    """Train an agent, evaluate it, draw its learning curve and film it: all that ``puffer train`` does, but print.

    Everything is kept in a new folder of ``runs``, which ``puffer eval`` and ``puffer play --watch`` take. Ctrl-C and
    SIGTERM save a checkpoint and raise KeyboardInterrupt or SystemExit; ``resume`` goes on from there.

    Args:
        env: What ``pufferlib.make`` takes, or a class or function that makes an environment. One that no module
            has, as in a script or notebook, is registered by its own name, and other processes do not know it.
        settings: Over those of the files, by dotted keys: ``{"train.total_timesteps": 100_000, "env.size": 7}``.
        config: A TOML file of settings, over those of the environment.
        vec: "auto" batches the environments in the way that ``autotune`` has found to be fastest.
        runs: Folder of all runs.
        resume: A run to go on with: its folder, a checkpoint, or an environment's name for its latest run.
        loggers: Take the metrics of each update, beside the run's own file.
        callbacks: Take part in the training, and may stop it: objects like ``Callback``, or functions of the trainer
            and the metrics, called after each update.

    Raises:
        UnknownNameError: There is no such environment or setting; the nearest are suggested.
        APIUsageError: A setting is wrong, neither ``env`` nor ``resume`` was given, or a run cannot go on so.
        BindingMissing: The package behind the environment is not installed.
    """
    if resume is not None:
        if env is not None or config is not None or vec is not None:
            raise APIUsageError(f"{WHERE}: a run goes on with what it was begun with; leave out env, config and vec")
        return _resume(find_run(WHERE, str(resume), Path(runs), shipped=False), settings, loggers, callbacks)
    if env is None:
        raise APIUsageError(f"{WHERE}: expected an environment, its name or what makes it, got None")
    if vec not in (None, "auto"):
        raise APIUsageError(
            f'{WHERE}: vec must be "auto" or None, got {vec!r}; give a layout of your own as settings: '
            '{"vec.backend": "Serial", "vec.num_envs": 4}'
        )
    name = fspath(env) if isinstance(env, str | PathLike) else _name_of(env)
    registry.env_creator(name, WHERE)
    chosen = load_config(name, settings, config)
    chosen = with_tuned_vec(chosen) if vec == "auto" else chosen
    with new_run(Path(runs), chosen.env_name) as run:
        return _train(chosen, run, None, loggers, callbacks)


def _resume(
    run: Run,
    settings: Mapping[str, Any] | None,
    loggers: Sequence[Logger],
    callbacks: Sequence[Callback | CallbackFunction],
) -> TrainedRun:
    before, now = run.settings(), settings_of(run, settings)
    check_changes(WHERE, before, now)
    if now.eval != before.eval or not is_finished(now, run):
        return _train(now, Run.at(run.folder), run, loggers, callbacks)
    policy = load_policy(now, run)
    return TrainedRun(run, now, policy, compare(now, policy))


def _train(
    config: Config,
    run: Run,
    resumed: Run | None,
    loggers: Sequence[Logger],
    callbacks: Sequence[Callback | CallbackFunction],
) -> TrainedRun:
    with contextlib.closing(Trainer(config, run.folder, callbacks=callbacks)) as trainer:
        if resumed:
            go_on(trainer, resumed)
        trainer.config.save(run.config)
        trainer.loggers = [JsonlLogger(run.metrics), *loggers]
        trainer.train()
    return TrainedRun(run, trainer.config, trainer.policy, finish_run(run, trainer))


def _name_of(env: Callable[..., Any]) -> str:
    """The name of a class or function in its module; one of a script or notebook is registered by its own."""
    module, own = getattr(env, "__module__", "__main__"), getattr(env, "__qualname__", "")
    if not callable(env) or not own:
        raise APIUsageError(
            f"{WHERE}: env must be a name, a class or a function, got {env!r}; "
            "anything else that makes one gets a name by pufferlib.register(name, env)"
        )
    if module != "__main__" and own.isidentifier() and inspect.getmodule(env) is not None:
        return f"{module}:{own}"
    name = own.rpartition(".")[2].strip("<>")
    registry.register(name, env)
    return name
