"""``puffer train``: the whole way from an environment's name to an agent, its score, curve and film."""

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING

from pufferlib import registry
from pufferlib.cli.console import highlight, note, say, style
from pufferlib.cli.options import Parser, parse_config
from pufferlib.errors import PufferError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.crashes import crash_explained
from pufferlib.train.config import Config, env_name_in, load_config
from pufferlib.train.early_stop import StopConfig
from pufferlib.train.resume import check_changes, go_on, is_finished, settings_of, stop_reason_of
from pufferlib.train.runs import RUNS, Run, find_run, new_run
from pufferlib.train.text import flag, plural, short
from pufferlib.train.tuned import with_tuned_vec

if TYPE_CHECKING:
    from pufferlib.train.trainer import Trainer

__all__ = ["run"]

PROG = "puffer train"
ABOUT = """Train an agent, evaluate it, draw its learning curve and film it.

  --resume RUN     go on with a run: its folder, a checkpoint, or an environment's name for its latest; it may become
                   longer (--train.total-timesteps) and be judged otherwise, but keeps what it learns from
  --init RUN       begin with the weights of a run, a checkpoint or the file of a policy, and with nothing else of it
  --runs FOLDER    keep the run in a new folder there (default: runs)
  --config FILE    settings over those of the environment, under the flags: a TOML file like a run's config.toml
  --vec auto       run the environment as puffer autotune has found it to be fastest

ENV is a name of puffer list, or an environment of your own: my_env.py:Class, module:Class, or an id of Gymnasium's."""


def run(argv: list[str]) -> int:
    """Train as ``argv`` says: an environment first, then flags."""
    name, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = Parser(PROG, add_help=False)
    parser.add_argument("--resume")
    parser.add_argument("--init")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--vec", choices=["auto"])
    options, flags = parser.parse_known_args(argv)
    resumed = find_run(PROG, options.resume, options.runs, shipped=False) if options.resume else None
    wants_help = "--help" in flags or "-h" in flags
    if options.config and not name and not resumed:
        name = env_name_in(options.config) or ""
    base = _base(name, resumed, wants_help, options.config)
    if options.init:
        flags = [*flags, "--train.init", str(find_run(PROG, options.init, options.runs).checkpoint)]
    config = parse_config(PROG, base, flags, ABOUT, parser.flags).with_full_names()
    if options.vec:
        config = with_tuned_vec(config)
    if resumed:
        before = resumed.settings()
        check_changes(PROG, before, config)
        if config.eval == before.eval and is_finished(config, resumed):
            return _report_finished(config, resumed)
        with _crash_of_c_file(config):
            return _train(config, Run.at(resumed.folder), resumed)
    with new_run(options.runs, config.env_name) as started, _crash_of_c_file(config):
        return _train(config, started, None)


def _crash_of_c_file(config: Config) -> contextlib.AbstractContextManager[None]:
    """Context in which a crash of a C file of somebody's own is told in a sentence."""
    source = registry.c_file(config.env_name)
    if source is None:
        return contextlib.nullcontext()
    check = as_typed("puffer check", source)
    return crash_explained(f"error: {PROG}: the process crashed, most likely in {source}; find the line: {check}")


def _base(name: str, resumed: Run | None, wants_help: bool, file: Path | None) -> Config:
    """The settings that the flags change: of the run that goes on, or of the environment and the file."""
    if resumed:
        base = settings_of(resumed)
        if file:
            raise UsageError(f"{PROG}: a run goes on with the settings that it was begun with; leave out --config")
        if name and registry.full_name(name) != base.env_name:
            raise UsageError(f"{PROG}: {resumed.folder} is a run of {base.env_name}, not of {name}; leave out {name}")
        return base
    if not name and wants_help:
        return load_config("ENV")
    if not name:
        raise UsageError(
            f"{PROG}: name an environment first, for example: {as_typed('puffer train breakout')}; "
            f"{as_typed('puffer list')} shows all"
        )
    registry.env_creator(name, PROG)  # knows short names too
    if same := registry.same_game(name):
        note(f"{name} is taken as Gymnasium has it; {same[0]} is the same game with settings made for it")
    return load_config(name, file=file)


def _train(config: Config, run: Run, resumed: Run | None) -> int:
    from rich.console import Console

    from pufferlib.train.build import describe_device, pick_device
    from pufferlib.train.dashboard import progress_logger
    from pufferlib.train.loggers import JsonlLogger
    from pufferlib.train.trainer import Trainer

    device = pick_device(config.train.device)
    say(f"{style(registry.short_name(config.env_name), 'bold')} on {describe_device(device)}")
    with contextlib.closing(Trainer(config, run.folder)) as trainer:
        if resumed:
            say(f"its games {'go on where they were saved' if go_on(trainer, resumed) else 'begin new episodes'}")
        trainer.config.save(run.config)  # not before: flags that do not fit the checkpoint must not stay in the run
        say(f"the run is kept in {run.folder}")
        title = f"{registry.short_name(config.env_name)}, seed {config.train.seed}"
        trainer.loggers = [JsonlLogger(run.metrics), progress_logger(Console(), title, device.type)]
        try:
            trainer.train()
        except KeyboardInterrupt:
            _stopped(run)
            return 130
        except (SystemExit, OSError):  # SIGTERM, or the window of an environment was closed; or a full disk
            _stopped(run)
            raise
    if trainer.stop_reason:
        say(f"stopped after {trainer.agent_steps} steps: {trainer.stop_reason}")
    try:
        _finish(config, run, trainer)
    except KeyboardInterrupt:
        note(f"stopped before the evaluation ended; the agent is kept: {as_typed(f'puffer eval {run.argument}')}")
        return 130
    except PufferError:
        note(f"the agent was trained, but not evaluated; it is kept: {as_typed(f'puffer eval {run.argument}')}")
        raise
    return 0


def _report_finished(config: Config, run: Run) -> int:
    total, reason = config.train.total_timesteps, stop_reason_of(run)
    flags = _flags_to_go_on(config) if reason else ""
    flags = flags or flag("train.total_timesteps", 2 * total)
    train_on = as_typed(f"puffer train --resume {run.argument} {flags}")
    evaluate = as_typed(f"puffer eval {run.argument}")
    done = (
        f"it was stopped after {run.about().agent_steps} steps: {reason}" if reason else f"its {total} steps are done"
    )
    say(f"{run.folder}: nothing is left to train, {done}; to train on: {train_on}; to evaluate it again: {evaluate}")
    return 0


def _flags_to_go_on(config: Config) -> str:
    """Flags without which the run would stop again; empty where its settings do not stop it."""
    limits = {"score": config.stop.score < math.inf, "patience": config.stop.patience, "seconds": config.stop.seconds}
    never = StopConfig()
    return " ".join(flag(f"stop.{name}", getattr(never, name)) for name, is_set in limits.items() if is_set)


def _stopped(run: Run) -> None:
    if run.has_checkpoint:
        command = as_typed(f"puffer train --resume {run.argument}")
        note(f"stopped; the checkpoint is {run.checkpoint}; to go on: {command}")
    else:
        note("stopped before the first checkpoint")


def _finish(config: Config, run: Run, trainer: "Trainer") -> None:
    """Evaluate, film and report; then say where everything is."""
    from pufferlib.train.report import last_score, read_metrics
    from pufferlib.train.result import finish_run

    say(f"playing {plural(config.eval.episodes, 'episode')} with it, and as many at random ...")
    comparison = finish_run(run, trainer)
    say(highlight(str(comparison), comparison.score))
    if comparison.greedy and (last := last_score(read_metrics(run.metrics))) is not None:
        say(f"while it trained, with sampled actions, the score came to {short(last)}")
    say(f"\n{style(str(run.folder), 'bold')}")
    for path, about in _contents(run, comparison.film.about() if comparison.film else ""):
        if path.exists():
            say(f"  {style(f'{path.name:<20}', 'accent')}{about}")
    say(f"\nPlay again: {style(as_typed(f'puffer eval {run.argument}'), 'accent')}")
    if run.video.exists():
        say(f"Watch it:   {style(as_typed(f'puffer play --watch {run.argument}'), 'accent')}")


def _contents(run: Run, film: str) -> list[tuple[Path, str]]:
    return [
        (run.config, "all settings of this run"),
        (run.metrics, "the figures of each update, one JSON object per line"),
        (run.curve, "the learning curve"),
        (run.checkpoints, "the agents: the latest, from which --resume goes on, and the best one"),
        (run.video, film),
        (run.summary, "the result"),
    ]
