"""``pufferlib.train(...)``: a whole run from Python, as ``puffer train`` does it."""

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, overload

from pufferlib import registry
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.registry.outside import name_of
from pufferlib.training.callbacks import Callback, CallbackFunction
from pufferlib.training.config import Config, load_config
from pufferlib.training.distributed.job import open_ranks
from pufferlib.training.loggers import JsonlLogger, Logger, check_trackers, open_tracking
from pufferlib.training.repeats import refuse_repeat
from pufferlib.training.result import Comparison, compare, finish_run
from pufferlib.training.resume import check_changes, go_on, is_evaluated, settings_of
from pufferlib.training.runs import RUNS, Run, find_run, load_policy, new_run
from pufferlib.training.seeds import SeedGroup, TrainedSeeds, find_group, new_group, parse_seeds, train_group
from pufferlib.training.status import in_training
from pufferlib.training.trainer import Trainer
from pufferlib.training.tuned import with_tuned_vec

__all__ = ["TrainedRun", "train"]

WHERE = "pufferlib.train"
EnvLike = str | PathLike[str] | Callable[..., Any]


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


@overload
def train(
    env: EnvLike | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: None = None,
    config: Path | str | None = None,
    vec: Literal["auto"] | None = None,
    runs: Path | str = RUNS,
    resume: Path | str | None = None,
    name: str = "",
    tags: Sequence[str] = (),
    track: str | Sequence[str] = (),
    again: bool = False,
    loggers: Sequence[Logger] = (),
    callbacks: Sequence[Callback | CallbackFunction] = (),
    progress: bool = False,
) -> TrainedRun: ...
@overload
def train(
    env: EnvLike | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | str | Sequence[int],
    config: Path | str | None = None,
    vec: Literal["auto"] | None = None,
    runs: Path | str = RUNS,
    resume: Path | str | None = None,
    name: str = "",
    tags: Sequence[str] = (),
    track: str | Sequence[str] = (),
    again: bool = False,
    loggers: Sequence[Logger] = (),
    callbacks: Sequence[Callback | CallbackFunction] = (),
    progress: bool = False,
) -> TrainedSeeds: ...
def train(
    env: EnvLike | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | str | Sequence[int] | None = None,
    config: Path | str | None = None,
    vec: Literal["auto"] | None = None,
    runs: Path | str = RUNS,
    resume: Path | str | None = None,
    name: str = "",
    tags: Sequence[str] = (),
    track: str | Sequence[str] = (),
    again: bool = False,
    loggers: Sequence[Logger] = (),
    callbacks: Sequence[Callback | CallbackFunction] = (),
    progress: bool = False,
) -> TrainedRun | TrainedSeeds:
    """Train an agent, evaluate it, draw its learning curve and film it: all that ``puffer train`` does.

    Everything is kept in a new folder of ``runs``, which ``puffer eval`` and ``puffer play --watch`` take. Ctrl-C and
    SIGTERM save a checkpoint and raise KeyboardInterrupt or SystemExit; ``resume`` goes on from there. With ``seeds``
    one run is trained for each seed, one after the other, in one folder with the mean and its interval.

    Args:
        env: What ``pufferlib.make`` takes, or a class or function that makes an environment. One that no module
            has, as in a script or notebook, is registered by its own name, and other processes do not know it.
        settings: Over those of the files, by dotted keys: ``{"train.total_timesteps": 100_000, "env.size": 7}``.
        seeds: How many, counted from ``train.seed`` on, or a list. With ``resume``, further ones: ``[]`` adds none.
        config: A TOML file of settings, over those of the environment.
        vec: "auto" batches the environments in the way that ``autotune`` has found to be fastest.
        runs: Folder of all runs.
        resume: A run to go on with: its folder, a checkpoint, or an environment's name for its latest run. With
            ``seeds``, the folder of several seeds: those that are finished stay as they are.
        name: Name of the run, in that of its folder and in every tracker. A run of this name and these settings that is
            there already is not made again.
        tags: Words to find the run by.
        track: Trackers that take metrics and result: "csv", "tensorboard", "wandb", a class of yours as
            "my_logger.py:MyLogger", or several of them.
        again: Make it again all the same.
        loggers: Take the metrics of each update, beside the run's own file. Closed after each seed.
        callbacks: Take part in the training, and may stop it: objects like ``Callback``, or functions of the trainer
            and the metrics, called after each update.
        progress: Show it, as ``puffer train`` does: steps, pace and score, in a notebook in lines; else nothing is
            printed.

    Raises:
        UnknownNameError: There is no such environment or setting; the nearest are suggested.
        APIUsageError: A setting is wrong, neither ``env`` nor ``resume`` was given, a run cannot go on so, is there
            already, or a tracker lacks an account.
        UsageError: ``seeds`` is neither a number nor a list of different seeds.
        BindingMissing: The package behind the environment, or a tracker, is not installed.
    """
    settings = _with_track(settings, name, tags, track)

    def train_one(own: Config, run: Run, resumed: Run | None) -> TrainedRun:
        return _train(own, run, resumed, loggers, callbacks, progress)

    if resume is not None:
        if env is not None or config is not None or vec is not None:
            raise APIUsageError(f"{WHERE}: a run goes on with what it was begun with; leave out env, config and vec")
        if seeds is not None:
            return train_group(*_resumed_seeds(Path(resume), settings, seeds), train_one)
        return _resume(find_run(WHERE, str(resume), Path(runs), shipped=False), settings, train_one)
    chosen = _chosen(env, settings, config, vec)
    several = () if seeds is None else parse_seeds(_listed(seeds), chosen.train.seed)
    if not again:
        refuse_repeat(WHERE, "again=True", chosen, Path(runs), several)
    check_trackers(chosen)
    if several:
        with new_group(Path(runs), chosen, several) as group:
            return train_group(group, chosen, train_one)
    with new_run(Path(runs), chosen.env_name, chosen.track.name) as run:
        return train_one(chosen, run, None)


def _listed(seeds: int | str | Sequence[int]) -> int | str:
    return seeds if isinstance(seeds, int | str) else ",".join(map(str, seeds)) + ","


def _with_track(
    settings: Mapping[str, Any] | None, name: str, tags: Sequence[str], track: str | Sequence[str]
) -> dict[str, Any]:
    given = {"track.name": name, "track.tags": tags, "track.loggers": track}
    return {**(settings or {}), **{key: value for key, value in given.items() if value}}


def _chosen(
    env: EnvLike | None, settings: Mapping[str, Any], config: Path | str | None, vec: Literal["auto"] | None
) -> Config:
    if env is None:
        raise APIUsageError(f"{WHERE}: expected an environment, its name or what makes it, got None")
    if vec not in (None, "auto"):
        raise APIUsageError(
            f'{WHERE}: vec must be "auto" or None, got {vec!r}; give a layout of your own as settings: '
            '{"vec.backend": "Serial", "vec.num_envs": 4}'
        )
    name = fspath(env) if isinstance(env, str | PathLike) else name_of(env, WHERE)
    registry.env_creator(name, WHERE)
    chosen = load_config(name, settings, config)
    return with_tuned_vec(chosen) if vec == "auto" else chosen


def _resume(
    run: Run, settings: Mapping[str, Any], train_one: Callable[[Config, Run, Run | None], TrainedRun]
) -> TrainedRun:
    before, now = run.settings(), settings_of(run, settings)
    check_changes(WHERE, before, now)
    if not is_evaluated(now, run):
        check_trackers(now)
        return train_one(now, Run.at(run.folder), run)
    policy = load_policy(now, run)
    return TrainedRun(run, now, policy, compare(now, policy))


def _resumed_seeds(
    folder: Path, settings: Mapping[str, Any], further: int | str | Sequence[int]
) -> tuple[SeedGroup, Config]:
    group = find_group(folder)
    if group is None:
        raise APIUsageError(f"{WHERE}: {folder} has no seeds.json; expected the folder of several seeds")
    now = group.settings(settings)
    check_changes(WHERE, group.settings(), now)
    check_trackers(now)
    if isinstance(further, int | str) or further:
        group = group.with_seeds(parse_seeds(_listed(further), now.train.seed))
    group.save(now)
    return group, now


def _train(
    config: Config,
    run: Run,
    resumed: Run | None,
    loggers: Sequence[Logger],
    callbacks: Sequence[Callback | CallbackFunction],
    progress: bool,
) -> TrainedRun:
    here = Run.at(run.folder.absolute())  # environments may change the working directory
    with contextlib.ExitStack() as opened:
        with (
            contextlib.chdir("."),  # which is the same one again for the evaluation
            open_ranks(config, run.folder, resumed) as ranks,
            contextlib.closing(Trainer(config, run.folder, callbacks=callbacks, ranks=ranks)) as trainer,
        ):
            if resumed:
                go_on(trainer, resumed)
            opened.enter_context(in_training(here))
            tracking = opened.enter_context(open_tracking(trainer.config, here))
            trainer.config.save(here.config)
            trainer.loggers = [JsonlLogger(here.metrics), tracking, *loggers]
            if progress:
                from pufferlib.training.dashboard import (
                    progress_logger,
                )  # takes time to import, and most look elsewhere

                trainer.loggers = [*trainer.loggers, progress_logger(trainer)]
            trainer.train()
        comparison = finish_run(run, trainer, tracking)
    return TrainedRun(run, trainer.config, trainer.policy, comparison)
