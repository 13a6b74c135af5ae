"""Life of a run: open it, train, evaluate and report. The command line, ``pufferlib.train`` and sweeps all use it."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pufferlib import registry
from pufferlib.machine.commands import as_typed
from pufferlib.machine.signals import crash_explained
from pufferlib.models import Policy
from pufferlib.render.html import facts, media
from pufferlib.runs.folder import Run, new_run
from pufferlib.runs.resume import check_changes, is_evaluated, is_finished, stop_reason_of
from pufferlib.runs.seeds import SeedGroup, TrainedSeeds, new_group, train_group
from pufferlib.runs.status import in_training
from pufferlib.runs.versions import warn_of_missing
from pufferlib.settings.config import Config
from pufferlib.training.callbacks import Callback, CallbackFunction, names_of
from pufferlib.training.distributed.launch import open_ranks
from pufferlib.training.loggers import JsonlLogger, Logger, Tracking, check_trackers, open_tracking
from pufferlib.training.ppo import Loss, ppo_loss
from pufferlib.training.result import Comparison, finish_run
from pufferlib.training.trainer import Trainer

__all__ = ["Display", "Hooks", "TrainedRun", "resume", "start", "train_run", "trained"]


@dataclass(frozen=True)
class TrainedRun:
    """A finished run.

    Attributes:
        run: Folder of the run, with the paths of all its files.
        config: Settings of the run. Automatic settings are replaced by their values.
        policy: Trained network.
        comparison: Evaluation of the policy, compared with random play.
    """

    run: Run
    config: Config = field(repr=False)
    policy: Policy = field(repr=False)
    comparison: Comparison

    def _repr_html_(self) -> str:
        """Show the score, the learning curve and the video in a notebook."""
        values = {
            "folder": self.run.folder,
            "to evaluate it": as_typed(f"puffer eval {self.run.argument}"),
            "to watch it": as_typed(f"puffer play --watch {self.run.argument}"),
        }
        shown = facts(str(self.comparison), values) + media(self.run.curve, "learning curve")
        return shown + media(self.run.video, "an episode of the evaluation")


class Display:
    """Observer of the life of a run. Every method does nothing. A subclass overrides the ones that it needs."""

    def on_start(self, config: Config) -> None:
        """Run before the environments are made."""

    def on_seed(self, seed: int, number: int, count: int) -> None:
        """Run before each of several seeds is trained, ``number`` counting from 1."""

    def on_seeds_failure(self, group: SeedGroup) -> None:
        """Run if one of several seeds ends with an exception, which is raised after that."""

    def on_seeds_result(self, trained: TrainedSeeds) -> None:
        """Run after all of several seeds are trained and evaluated."""

    def on_restore(self, are_episodes_continued: bool) -> None:
        """Run after a resumed run restored its checkpoint."""

    def on_training_start(self, run: Run, trainer: Trainer) -> Sequence[Logger]:
        """Return loggers that show the progress."""
        return ()

    def on_training_failure(self, run: Run, trainer: Trainer, error: BaseException) -> None:
        """Run if the training ends with an exception, which is raised after that."""

    def on_training_end(self, trainer: Trainer) -> None:
        """Run after a training that ended without an exception."""

    def evaluating(self, run: Run, trainer: Trainer) -> contextlib.AbstractContextManager[None]:
        """Return a context for the evaluation."""
        return contextlib.nullcontext()

    def on_result(self, run: Run, comparison: Comparison, tracking: Tracking) -> None:
        """Run after the evaluation, while the trackers are open."""


@dataclass(frozen=True)
class Hooks:
    """Everything a caller adds to a run.

    Attributes:
        where: Start of error messages, such as "puffer train".
        callbacks: Function that makes the callbacks of one run.
        loggers: Loggers in addition to the trackers of the settings.
        display: Observer of the run.
        loss: Loss to minimize.
    """

    where: str
    callbacks: Callable[[], Sequence[Callback | CallbackFunction]] = tuple
    loggers: Sequence[Logger] = ()
    display: Display = field(default_factory=Display)
    loss: Loss = ppo_loss


def start(config: Config, runs: Path, seeds: tuple[int, ...], hooks: Hooks) -> TrainedRun | TrainedSeeds:
    """Train a new run in a new folder of ``runs``, or one run for each of ``seeds``.

    Raises:
        APIUsageError: A tracker lacks an account, or something does not fit ``config``.
        BindingMissing: The package behind the environment, or a tracker, is not installed.
    """
    check_trackers(config)
    with _crash_explained(hooks.where, config.env_name):
        if seeds:
            with new_group(runs, config, seeds) as group:
                return _train_group(group, config, hooks)
        with new_run(runs, config.env_name, config.track.name) as run:
            return train_run(config, run, None, hooks)


def resume(target: Run | SeedGroup, config: Config, hooks: Hooks) -> TrainedRun | TrainedSeeds | None:
    """Continue a run, or the runs of several seeds, with the settings ``config``.

    Returns:
        The result, or None if the run is finished and evaluated with these settings already.

    Raises:
        UsageError: A setting differs that a resumed run must keep.
        APIUsageError: The checkpoint is missing, damaged, or does not fit ``config``.
    """
    check_changes(hooks.where, target.settings(), config)
    if isinstance(target, Run) and is_evaluated(config, target):
        return None
    check_trackers(config)
    with _crash_explained(hooks.where, config.env_name):
        if isinstance(target, Run):
            return train_run(config, Run.at(target.folder), target, hooks)
        target.save(config)
        _warn_of_new_seeds(target, config, hooks)
        return _train_group(target, config, hooks)


def _warn_of_new_seeds(group: SeedGroup, config: Config, hooks: Hooks) -> None:
    """Warn if seeds start without the loss and callbacks of those before. A run that is restored warns itself."""
    before = [run for run in group.runs if run.has_checkpoint]
    if before and len(before) < len(group.runs) and is_finished(config, before[-1]):
        warn_of_missing(before[-1].checkpoint, before[-1].about().given, names_of(hooks.loss, hooks.callbacks()))


def _train_group(group: SeedGroup, config: Config, hooks: Hooks) -> TrainedSeeds:
    def train_one(own: Config, run: Run, resumed: Run | None) -> TrainedRun:
        seed = own.train.seed
        hooks.display.on_seed(seed, group.seeds.index(seed) + 1, len(group.seeds))
        return train_run(own, run, resumed, hooks)

    try:
        trained_seeds = train_group(group, config, train_one)
    except BaseException:
        hooks.display.on_seeds_failure(group)
        raise
    hooks.display.on_seeds_result(trained_seeds)
    return trained_seeds


def train_run(config: Config, run: Run, resumed: Run | None, hooks: Hooks) -> TrainedRun:
    """Train and evaluate one run, whose folder exists.

    Args:
        config: Settings of the run.
        run: Folder of the run.
        resumed: Run whose checkpoint is restored first, or None.
        hooks: Callbacks, loggers and display of the caller.
    """
    with trained(config, run, resumed, hooks) as (trainer, tracking):
        hooks.display.on_training_end(trainer)
        with hooks.display.evaluating(run, trainer):
            comparison = finish_run(run, trainer, tracking)
        hooks.display.on_result(run, comparison, tracking)
    return TrainedRun(run, trainer.config, trainer.policy, comparison)


@contextlib.contextmanager
def trained(config: Config, run: Run, resumed: Run | None, hooks: Hooks) -> Iterator[tuple[Trainer, Tracking]]:
    """Train one run to its end. Yield its closed trainer and its trackers.

    The folder is marked as in training, and the trackers are open, until the context ends.
    """
    here, folder = Run.at(run.folder.absolute()), Path.cwd()  # environments may change the working directory
    if resumed:
        resumed = Run(resumed.folder.absolute(), resumed.chosen and resumed.chosen.absolute())
    with contextlib.ExitStack() as opened:
        hooks.display.on_start(config)
        callbacks = hooks.callbacks()
        with (
            contextlib.chdir("."),  # restored for the evaluation
            open_ranks(config, run.folder, resumed, hooks.loss, callbacks) as ranks,
            contextlib.closing(
                Trainer(config, run.folder, callbacks=callbacks, ranks=ranks, loss=hooks.loss)
            ) as trainer,
        ):
            if resumed:
                hooks.display.on_restore(_restore(trainer, resumed))
            opened.enter_context(in_training(here))  # after the checkpoint was accepted, else the run stays as it is
            with contextlib.chdir(folder):
                tracking = opened.enter_context(open_tracking(trainer.config, here))
            trainer.config.save(here.config)
            shown = hooks.display.on_training_start(run, trainer)
            trainer.loggers = [JsonlLogger(here.metrics), tracking, *hooks.loggers, *shown]
            try:
                trainer.train()
            except BaseException as error:
                hooks.display.on_training_failure(run, trainer, error)
                raise
        yield trainer, tracking


def _restore(trainer: Trainer, run: Run) -> bool:
    """Restore the checkpoint of a run. A run that was stopped early, and would be again, takes no further steps.

    Returns:
        True if the episodes continue where they were saved, False if new ones start.
    """
    are_continued = trainer.restore(run.checkpoint, allow_pickle=trainer.config.train.save_games == "pickle")
    if is_finished(trainer.config, run) and (reason := stop_reason_of(run)):
        trainer.stop(reason)
    return are_continued


def _crash_explained(where: str, env_name: str) -> contextlib.AbstractContextManager[None]:
    """Return a context in which a crash of a user's own C file is explained in a sentence."""
    source = registry.c_file(env_name)
    if source is None:
        return contextlib.nullcontext()
    check = as_typed("puffer check", source)
    return crash_explained(f"error: {where}: the process crashed, most likely in {source}; find the line: {check}")
