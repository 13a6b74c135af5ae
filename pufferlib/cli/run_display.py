"""Display of a run for ``puffer train``: everything that it prints, from the device to the result."""

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from typing_extensions import override

from pufferlib import registry
from pufferlib.cli.console import highlight, note, say, style
from pufferlib.machine.commands import as_typed
from pufferlib.models.devices import describe_device, pick_device, ready_device
from pufferlib.runs.folder import Run
from pufferlib.runs.report import last_score, read_metrics
from pufferlib.runs.seeds import SeedGroup, TrainedSeeds
from pufferlib.settings.config import Config
from pufferlib.text import plural, short
from pufferlib.training.dashboard import progress_logger
from pufferlib.training.distributed.ranks import RankLostError
from pufferlib.training.lifecycle import Display
from pufferlib.training.loggers import Logger, Tracking
from pufferlib.training.result import Comparison
from pufferlib.training.trainer import Trainer

__all__ = ["RunDisplay"]

NVIDIA = Path("/dev/nvidiactl")  # exists if there is a driver, and, in a container, access to a GPU


class RunDisplay(Display):
    """Display on standard output, with notes on standard error."""

    @override
    def on_start(self, config: Config) -> None:
        name = style(registry.short_name(config.env_name), "bold")
        device = ready_device(pick_device(config.train.device))
        say(f"{name} on {describe_device(device)}")
        if config.train.device == "auto" and device.type == "cpu" and NVIDIA.exists():
            note(f"torch cannot use the NVIDIA GPU of this machine; to see why: {as_typed('puffer doctor --gpu')}")

    @override
    def on_seed(self, seed: int, number: int, count: int) -> None:
        say(style(f"seed {seed}, {number} of {count}", "bold"))

    @override
    def on_seeds_failure(self, group: SeedGroup) -> None:
        note(f"to train the remaining seeds: {as_typed(f'puffer train --resume {group.argument}')}")

    @override
    def on_seeds_result(self, trained: TrainedSeeds) -> None:
        group = trained.group
        say(f"\n{highlight(str(trained), trained.score)}")
        contents = [(group.curve, "learning curve of all seeds"), (group.summary, "result of all seeds")]
        _list(group.folder, [*contents, (group.runs[0].folder, "and others: the run of each seed")])
        say(f"Play again: {style(as_typed(f'puffer eval {group.runs[0].argument}'), 'accent')}")

    @override
    def on_restore(self, are_episodes_continued: bool) -> None:
        say("episodes continue where they were saved" if are_episodes_continued else "new episodes start")

    @override
    def on_training_start(self, run: Run, trainer: Trainer) -> Sequence[Logger]:
        say(f"files of the run: {run.folder}")
        if not registry.is_inside(trainer.config.env_name):
            say(_choices(trainer))
        settings = trainer.config.train
        steps = trainer.vecenv.num_agents * settings.horizon * trainer.ranks.size
        if steps > settings.total_timesteps:
            note(
                f"one update takes {steps} steps, more than train.total_timesteps ({settings.total_timesteps}); for a "
                "shorter training, lower the number of environments or train.horizon"
            )
        trainer.on_signal = _announce_stop
        return [progress_logger(trainer)]

    @override
    def on_training_failure(self, run: Run, trainer: Trainer, error: BaseException) -> None:
        # OSError: a full disk, for example. SystemExit: a closed terminal, for example.
        if not isinstance(error, KeyboardInterrupt | SystemExit | OSError | RankLostError):
            return
        if not run.has_checkpoint:
            note("stopped before the first checkpoint")
            return
        lost = trainer.updates - run.about().updates
        without = f", without the last {plural(lost, 'update')}" if lost else ""
        command = as_typed(f"puffer train --resume {run.argument}")
        note(f"stopped; the checkpoint is {run.checkpoint}{without}; to resume: {command}")

    @override
    def on_training_end(self, trainer: Trainer) -> None:
        if trainer.stop_reason:
            say(f"stopped after {trainer.agent_steps} steps: {trainer.stop_reason}")

    @override
    @contextlib.contextmanager
    def evaluating(self, run: Run, trainer: Trainer) -> Iterator[None]:
        say(f"evaluating: {plural(trainer.config.eval.episodes, 'episode')}, and as many with random actions ...")
        try:
            yield
        except (KeyboardInterrupt, SystemExit):
            note(f"stopped during the evaluation; the agent is kept: {as_typed(f'puffer eval {run.argument}')}")
            raise
        except Exception:
            note(f"the agent is trained, but not evaluated; evaluate it: {as_typed(f'puffer eval {run.argument}')}")
            raise

    @override
    def on_result(self, run: Run, comparison: Comparison, tracking: Tracking) -> None:
        say(highlight(str(comparison), comparison.score))
        if comparison.greedy and (last := last_score(read_metrics(run.metrics))) is not None:
            say(f"score at the end of training, with sampled actions: {short(last)}")
        if run.is_seed:
            return
        _list(
            run.folder,
            _contents(run, comparison.video.about() if comparison.video else "the first episode of the evaluation"),
        )
        for place in tracking.places:
            say(place)
        say(f"Play again: {style(as_typed(f'puffer eval {run.argument}'), 'accent')}")
        if run.video.exists():
            say(f"Watch it:   {style(as_typed(f'puffer play --watch {run.argument}'), 'accent')}")


def _choices(trainer: Trainer) -> str:
    """Return three lines with the settings that are chosen for an environment where they are not set."""
    settings, policy = trainer.config.train, trainer.policy
    size = sum(parameter.numel() for parameter in policy.parameters())
    kinds = {"observations": settings.normalize_observations, "rewards": settings.normalize_rewards}
    return (
        f"network: {type(policy).__name__}, {size:,} parameters\n"
        f"normalized: {' and '.join(kind for kind, is_on in kinds.items() if is_on) or 'nothing'}\n"
        f"update: {plural(trainer.vecenv.num_agents, 'agent')}, {plural(settings.horizon, 'step')} each, "
        f"minibatches of {settings.minibatch_size}, {plural(settings.update_epochs, 'epoch')}"
    )


def _contents(run: Run, video: str) -> list[tuple[Path, str]]:
    return [
        (run.config, "all settings of this run"),
        (run.metrics, "metrics of each update, one JSON object per line"),
        (run.table, "metrics as a table"),
        (run.curve, "learning curve"),
        (run.checkpoints, "checkpoints: the latest, which --resume continues, and the best"),
        (run.video, video),
        (run.summary, "result"),
    ]


def _list(folder: Path, contents: list[tuple[Path, str]]) -> None:
    """Print the files of a folder that exist, each with a description."""
    say(f"\n{style(str(folder), 'bold')}")
    for path, about in contents:
        if path.exists():
            say(f"  {style(f'{path.name:<20}', 'accent')}{about}")
    say()


def _announce_stop() -> None:
    """Print that the training stops, since an update of a slow environment may take minutes."""
    with contextlib.suppress(OSError, RuntimeError):  # a closed terminal, or a signal in the middle of a print
        note("stopping after this update, with a checkpoint; press Ctrl-C again to stop at once")
