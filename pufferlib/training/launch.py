"""``pufferlib.train(...)``: a whole run from Python, as ``puffer train`` does it."""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack, overload

from typing_extensions import override

from pufferlib import registry
from pufferlib.errors import APIUsageError
from pufferlib.registry.outside import name_of
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS, Run
from pufferlib.runs.resume import settings_of
from pufferlib.runs.seeds import TrainedSeeds, find_group, parse_seeds
from pufferlib.settings.config import Config, load_config
from pufferlib.training import lifecycle
from pufferlib.training.agent import load_policy
from pufferlib.training.build import with_tuned_vec
from pufferlib.training.callbacks import Callback, CallbackFunction, checked_callbacks
from pufferlib.training.distributed.place import place_of_this_process
from pufferlib.training.lifecycle import Display, Hooks, TrainedRun
from pufferlib.training.loggers import Logger
from pufferlib.training.loggers.base import check_loggers
from pufferlib.training.ppo import Loss, ppo_loss
from pufferlib.training.result import compare
from pufferlib.training.trainer import Trainer

__all__ = ["train"]

WHERE = "pufferlib.train"


class _Options(TypedDict, total=False):
    """Keyword arguments of ``train`` that do not decide what it returns."""

    config: Path | str | None
    vec: Literal["auto"] | None
    runs: Path | str
    resume: Path | str | None
    name: str
    tags: Sequence[str]
    track: str | Sequence[str]
    loggers: Sequence[Logger]
    callbacks: Sequence[Callback | CallbackFunction]
    loss: Loss
    progress: bool


@overload
def train(
    env: registry.EnvName | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: None = None,
    **options: Unpack[_Options],
) -> TrainedRun: ...
@overload
def train(
    env: registry.EnvName | None = None,
    settings: Mapping[str, Any] | None = None,
    *,
    seeds: int | str | Sequence[int],
    **options: Unpack[_Options],
) -> TrainedSeeds: ...
def train(
    env: registry.EnvName | None = None,
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
    loggers: Sequence[Logger] = (),
    callbacks: Sequence[Callback | CallbackFunction] = (),
    loss: Loss = ppo_loss,
    progress: bool = False,
) -> TrainedRun | TrainedSeeds:
    """Train an agent, evaluate it, plot its learning curve and record a video, as ``puffer train`` does.

    All files of the run are in a new folder of ``runs``, which ``puffer eval`` and ``puffer play --watch`` accept.
    Ctrl-C and SIGTERM save a checkpoint and raise KeyboardInterrupt or SystemExit. Pass ``resume`` to continue. With
    ``seeds``, one run is trained for each seed, one after the other, in one folder with the mean and its interval.

    Args:
        env: Environment: anything that ``pufferlib.make`` takes, or a class or function that makes an environment. A
            class of a script or notebook is registered by its own name, which other processes do not know.
        settings: Settings by dotted name, which override the files:
            ``{"train.total_timesteps": 100_000, "env.size": 7}``.
        seeds: Number of seeds, counted from ``train.seed``, or different seeds as a list or as text ("1,2,3"). With
            ``resume``, further seeds. ``[]`` adds none.
        config: TOML file of settings, which override the settings of the environment.
        vec: "auto" batches the environments in the best way for training that ``autotune`` found.
        runs: Folder of all runs.
        resume: Run to continue: its folder, a checkpoint, or the name of an environment for its latest run. With
            ``seeds``, the folder of several seeds. Without ``seeds``, such a folder means the seed with the best
            evaluation. A finished run is loaded and evaluated again.
        name: Name of the run. It is part of the folder's name and is shown in every tracker.
        tags: Words to find the run by.
        track: Trackers that get metrics and result: "csv", "tensorboard", "wandb", a class of your own such as
            "my_logger.py:MyLogger", or several of them.
        loggers: Loggers that get the metrics of each update. They are closed after each seed.
        callbacks: Objects like ``Callback``, or functions of the trainer and the metrics, called after each update.
            All ``seeds`` use the same objects, so reset what must not continue from one seed to the next. With
            ``train.processes``, they are called in rank 0 only, unless their ``every_rank`` is True.
        loss: Loss to minimize, as in ``Trainer``. It is not stored in the run, so pass it again with ``resume``.
        progress: Show steps, pace and score on standard output. By default nothing is printed.

    Raises:
        UnknownNameError: There is no such environment or setting. The error suggests the nearest names.
        APIUsageError: A setting is wrong, neither ``env`` nor ``resume`` was given, a run cannot be resumed with these
            settings, a tracker lacks an account, or a launcher such as ``torchrun`` started several processes.
        UsageError: ``seeds`` is neither a number nor a list of different seeds.
        BindingMissing: The package behind the environment, or a tracker, is not installed.
    """
    _check_is_alone()
    if not isinstance(settings, Mapping | None):
        raise APIUsageError(f'{WHERE}: settings must be a dict such as {{"train.seed": 7}}, got {settings!r:.80}')
    if not isinstance(runs, str | PathLike):
        raise APIUsageError(f"{WHERE}: runs must be the path of a folder, got {runs!r:.80}")
    check_loggers(WHERE, loggers)
    checked_callbacks(callbacks, WHERE)
    settings = _with_track(settings, name, tags, track)
    display = _Progress() if progress else Display()
    hooks = Hooks(WHERE, callbacks=lambda: callbacks, loggers=loggers, display=display, loss=loss)
    if resume is not None:
        if env is not None or config is not None or vec is not None:
            raise APIUsageError(
                f"{WHERE}: a resumed run keeps its environment and settings; leave out env, config and vec"
            )
        if seeds is not None:
            return _resume_seeds(Path(resume), settings, seeds, hooks)
        return _resume_run(find_run(WHERE, str(resume), Path(runs), shipped=False), settings, hooks)
    chosen = _chosen(env, settings, config, vec)
    several = () if seeds is None else parse_seeds(_listed(seeds), chosen.train.seed)
    return lifecycle.start(chosen, Path(runs), several, hooks)


def _check_is_alone() -> None:
    if (place := place_of_this_process()) is not None:
        raise APIUsageError(
            f"{WHERE}: a launcher started this script in {place.size} processes, and each would train a run of its own "
            "(RANK and WORLD_SIZE are set); start one process, and set train.processes for several on this machine. On "
            "several machines: torchrun ... -m pufferlib.training ENV"
        )


class _Progress(Display):
    """Progress on standard output, as ``puffer train`` shows it."""

    @override
    def on_training_start(self, run: Run, trainer: Trainer) -> Sequence[Logger]:
        from pufferlib.training.dashboard import progress_logger  # slow to import, and rarely needed

        return [progress_logger(trainer)]


def _listed(seeds: int | str | Sequence[int]) -> str:
    """Return ``seeds`` as a text for ``parse_seeds``, which is empty for an empty list."""
    if isinstance(seeds, str) or not isinstance(seeds, Iterable):
        return str(seeds)
    return "".join(f"{seed}," for seed in seeds)


def _with_track(
    settings: Mapping[str, Any] | None, name: str, tags: Sequence[str], track: str | Sequence[str]
) -> dict[str, Any]:
    given = {"track.name": name, "track.tags": tags, "track.loggers": track}
    return {**(settings or {}), **{key: value for key, value in given.items() if value}}


def _chosen(
    env: registry.EnvName | None, settings: Mapping[str, Any], config: Path | str | None, vec: Literal["auto"] | None
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
    return with_tuned_vec(chosen, settings) if vec == "auto" else chosen


def _resume_run(run: Run, settings: Mapping[str, Any], hooks: Hooks) -> TrainedRun | TrainedSeeds:
    """Continue a run. A finished run is loaded and evaluated again."""
    now = settings_of(run, settings)
    if (finished := lifecycle.resume(run, now, hooks)) is not None:
        return finished
    policy = load_policy(now, run)
    return TrainedRun(run, now, policy, compare(now, policy))


def _resume_seeds(
    folder: Path, settings: Mapping[str, Any], further: int | str | Sequence[int], hooks: Hooks
) -> TrainedRun | TrainedSeeds:
    group = find_group(folder)
    if group is None:
        raise APIUsageError(f"{WHERE}: {folder} has no seeds.json; expected the folder of several seeds")
    now = settings_of(group, settings)
    if listed := _listed(further):
        group = group.with_seeds(parse_seeds(listed, now.train.seed))
    trained = lifecycle.resume(group, now, hooks)
    assert trained is not None  # only a single run can be finished
    return trained
