"""``puffer train``: the whole way from an environment's name to an agent, its score, curve and film."""

import contextlib
import dataclasses
import itertools
import math
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pufferlib import registry
from pufferlib.cli.console import highlight, note, outliving_readers, say, style
from pufferlib.cli.options import Parser, parse_config
from pufferlib.errors import PufferError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.crashes import crash_explained
from pufferlib.machine.paths import user_path
from pufferlib.training.callbacks import Callback, CallbackFunction, find_callback
from pufferlib.training.config import Config, env_name_in, load_config
from pufferlib.training.early_stop import StopConfig
from pufferlib.training.repeats import about_earlier, refuse_repeat
from pufferlib.training.resume import check_changes, go_on, is_evaluated, settings_of, stop_reason_of
from pufferlib.training.runs import RUNS, Run, find_run, new_run
from pufferlib.training.seeds import SeedGroup, find_group, new_group, parse_seeds, train_group
from pufferlib.training.signals import signals_exit
from pufferlib.training.status import in_training
from pufferlib.training.text import flag, plural, short
from pufferlib.training.track_config import TRACKERS
from pufferlib.training.tuned import with_tuned_vec

if TYPE_CHECKING:
    from pufferlib.training.loggers import Tracking
    from pufferlib.training.result import Comparison
    from pufferlib.training.trainer import Trainer

__all__ = ["run"]

PROG = "puffer train"
Callbacks = Sequence[Callable[[], Callback | CallbackFunction]]
ABOUT = """Train an agent, evaluate it, draw its learning curve and film it.

  --resume RUN     go on with a run: its folder, a checkpoint, or an environment's name for its latest; it may become
                   longer (--train.total-timesteps) and be judged otherwise, but keeps what it learns from
  --init RUN       begin with the weights of a run, a checkpoint or the file of a policy, and with nothing else of it
  --name NAME      name of the run, in that of its folder and in every tracker; one that is there is not made again
  --tag TAG        a word to find the run by; may be given several times
  --callback NAME  a callback of yours: my_callbacks.py:Class, module:function; may be given several times
  --again          make a run again that is there under this name, with these settings
  --track LIST     send metrics and result there too: csv, tensorboard, wandb, a class of yours (my_logger.py:Class), or
                   several with commas between them
  --train.seeds N  train N seeds one after the other, from train.seed on, or a list of seeds: 1,2,3; report their mean
  --runs FOLDER    keep the run in a new folder there (default: runs)
  --config FILE    settings over those of the environment, under the flags: a TOML file like a run's config.toml
  --vec auto       run the environment as puffer autotune has found it to be fastest

ENV is a name of puffer list, or an environment of your own: my_env.py:Class, module:Class, or an id of Gymnasium's."""


def run(argv: list[str]) -> int:
    """Train as ``argv`` says: an environment first, then flags."""
    name, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = _parser()
    _refuse_separate_trackers(argv)
    options, flags = parser.parse_known_args(argv)
    group = find_group(Path(options.resume)) if options.resume else None
    resumed = find_run(PROG, options.resume, options.runs, shipped=False) if options.resume and not group else None
    if resumed and resumed.is_seed and not user_path(options.resume).exists():  # a name means all of its seeds
        group, resumed = find_group(resumed.folder.parent), None
    wants_help = "--help" in flags or "-h" in flags
    if options.config and not name and not (resumed or group):
        name = env_name_in(options.config) or ""
    base = _base(name, resumed or group, wants_help, options.config)
    if options.init:
        flags = [*flags, "--train.init", str(find_run(PROG, options.init, options.runs).checkpoint)]
    known = [flag for flag in parser.flags if "." not in flag]  # settings are suggested before --train.seeds
    config = parse_config(PROG, base, [*flags, *_tracking_flags(options)], ABOUT, known).with_full_names()
    if options.vec:
        config = with_tuned_vec(config)
    seeds = parse_seeds(options.seeds, config.train.seed) if options.seeds else ()
    callbacks = [find_callback(f"{PROG}: --callback", name) for name in options.callback]
    if resumed and seeds:
        raise UsageError(f"{PROG}: {resumed.folder} is the run of one seed; leave out --train.seeds")
    with signals_exit(), outliving_readers():
        if group:
            return _resume_group(group.with_seeds(seeds), group.settings(), config, callbacks)
        if resumed:
            return _resume(resumed, config, callbacks)
        return _begin(config, seeds, options, callbacks)


def _parser() -> Parser:
    parser = Parser(PROG, add_help=False)
    parser.add_argument("--resume")
    parser.add_argument("--init")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--vec", choices=["auto"])
    parser.add_argument("--name")
    parser.add_argument("--tag", action="append", default=[])
    parser.add_argument("--track")
    parser.add_argument("--callback", action="append", default=[])
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--train.seeds", dest="seeds")
    return parser


def _refuse_separate_trackers(argv: list[str]) -> None:
    """Raise UsageError for ``--track csv tensorboard``, whose second word belongs to no flag."""
    for place, token in enumerate(argv):
        flag, equals, value = token.partition("=")
        words = [*([value] if equals else []), *argv[place + 1 :]]
        names = list(itertools.takewhile(lambda word: set(word.split(",")) <= set(TRACKERS), words))
        if flag == "--track" and len(names) > 1:
            raise UsageError(
                f"{PROG}: --track takes one list with commas, got {' '.join(names)!r}; write --track {','.join(names)}"
            )


def _tracking_flags(options: Namespace) -> list[str]:
    """Short flags as those of the settings that they stand for."""
    name = ["--track.name", options.name] if options.name is not None else []
    tags = ["--track.tags", *options.tag] if options.tag else []
    loggers = ["--track.loggers", *options.track.split(",")] if options.track is not None else []
    return [*name, *tags, *loggers]


def _begin(config: Config, seeds: tuple[int, ...], options: Namespace, callbacks: Callbacks) -> int:
    """Train a new run, or a new one of each seed."""
    if not options.again:
        refuse_repeat(PROG, "add --again", config, options.runs, seeds)
        if earlier := about_earlier(config, options.runs, seeds):
            note(earlier)
    _check_trackers(config)
    if seeds:
        with new_group(options.runs, config, seeds) as group, _crash_of_c_file(config):
            return _train_group(group, config, callbacks)
    with new_run(options.runs, config.env_name, config.track.name) as started, _crash_of_c_file(config):
        return _train(config, started, None, callbacks)


def _resume(resumed: Run, config: Config, callbacks: Callbacks) -> int:
    check_changes(PROG, resumed.settings(), config)
    if is_evaluated(config, resumed):
        return _report_finished(config, resumed)
    _check_trackers(config)
    with _crash_of_c_file(config):
        return _train(config, Run.at(resumed.folder), resumed, callbacks)


def _resume_group(group: SeedGroup, before: Config, config: Config, callbacks: Callbacks) -> int:
    check_changes(PROG, before, config)
    _check_trackers(config)
    group.save(config)
    with _crash_of_c_file(config):
        return _train_group(group, config, callbacks)


def _train_group(group: SeedGroup, config: Config, callbacks: Callbacks) -> int:
    """Train the seeds that are not finished, then report all of them."""

    def train_one(own: Config, run: Run, resumed: Run | None) -> None:
        number = group.seeds.index(own.train.seed) + 1
        say(style(f"seed {own.train.seed}, {number} of {len(group.seeds)}", "bold"))
        if _train(own, run, resumed, callbacks):
            raise KeyboardInterrupt

    command = as_typed(f"puffer train --resume {group.argument}")
    try:
        trained = train_group(group, config, train_one)
    except KeyboardInterrupt:
        note(f"the seeds that are left: {command}")
        return 130
    except (PufferError, SystemExit, OSError):
        note(f"the seeds that are left: {command}")
        raise
    say(f"\n{highlight(str(trained), trained.score)}")
    contents = [(group.curve, "the learning curves as one"), (group.summary, "the result of all seeds")]
    _list(group.folder, [*contents, (group.runs[0].folder, "and others: the run of each seed")])
    say(f"Play again: {style(as_typed(f'puffer eval {group.runs[0].argument}'), 'accent')}")
    return 0


def _list(folder: Path, contents: list[tuple[Path, str]]) -> None:
    """Say what is in a folder."""
    say(f"\n{style(str(folder), 'bold')}")
    for path, about in contents:
        if path.exists():
            say(f"  {style(f'{path.name:<20}', 'accent')}{about}")
    say()


def _check_trackers(config: Config) -> None:
    if config.track.loggers:
        from pufferlib.training.loggers import check_trackers

        check_trackers(config)


def _crash_of_c_file(config: Config) -> contextlib.AbstractContextManager[None]:
    """Context in which a crash of a C file of somebody's own is told in a sentence."""
    source = registry.c_file(config.env_name)
    if source is None:
        return contextlib.nullcontext()
    check = as_typed("puffer check", source)
    return crash_explained(f"error: {PROG}: the process crashed, most likely in {source}; find the line: {check}")


def _base(name: str, resumed: Run | SeedGroup | None, wants_help: bool, file: Path | None) -> Config:
    """The settings that the flags change: of the run that goes on, or of the environment and the file."""
    if resumed:
        base = resumed.settings() if isinstance(resumed, SeedGroup) else settings_of(resumed)
        if file:
            raise UsageError(f"{PROG}: a run goes on with the settings that it was begun with; leave out --config")
        if name and _is_new_place(registry.full_name(name), resumed):
            return dataclasses.replace(base, env_name=registry.full_name(name))
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


def _is_new_place(name: str, resumed: Run | SeedGroup) -> bool:
    """True if ``name`` is where the file of a run's environment is now: the old one is gone."""
    old = env_name_in(resumed.folder / "config.toml") or ""
    old_file, file = Path(old.partition(":")[0]), Path(name.partition(":")[0])
    return file.is_file() and not old_file.exists() and registry.short_name(old) == registry.short_name(name)


def _train(config: Config, run: Run, resumed: Run | None, callbacks: Callbacks) -> int:
    """Train a run and evaluate it, with its state told to those who look at its folder meanwhile."""
    try:
        with contextlib.ExitStack() as opened:
            trainer, tracking = _train_to_the_end(config, run, resumed, callbacks, opened)
            if trainer.stop_reason:
                say(f"stopped after {trainer.agent_steps} steps: {trainer.stop_reason}")
            comparison = _evaluate(config, run, trainer, tracking)
    except KeyboardInterrupt:
        return 130
    if not run.is_seed:
        _show(run, comparison, tracking)
    return 0


def _train_to_the_end(
    config: Config, run: Run, resumed: Run | None, callbacks: Callbacks, opened: contextlib.ExitStack
) -> "tuple[Trainer, Tracking]":
    from pufferlib.training.build import describe_device, pick_device
    from pufferlib.training.dashboard import progress_logger
    from pufferlib.training.distributed.job import open_ranks
    from pufferlib.training.distributed.ranks import RankLostError
    from pufferlib.training.loggers import JsonlLogger, open_tracking
    from pufferlib.training.trainer import Trainer

    own = [make() for make in callbacks]
    here = Run.at(run.folder.absolute())  # environments may change the working directory
    device = pick_device(config.train.device)
    say(f"{style(registry.short_name(config.env_name), 'bold')} on {describe_device(device)}")
    with (
        contextlib.chdir("."),  # which is the same one again for the evaluation
        open_ranks(config, run.folder, resumed) as ranks,
        contextlib.closing(Trainer(config, run.folder, callbacks=own, ranks=ranks)) as trainer,
    ):
        if resumed:
            say(f"its games {'go on where they were saved' if go_on(trainer, resumed) else 'begin new episodes'}")
        opened.enter_context(in_training(here))  # not before: what does not fit the checkpoint leaves the run as it is
        tracking = opened.enter_context(open_tracking(trainer.config, run))
        trainer.config.save(here.config)
        say(f"the run is kept in {run.folder}")
        trainer.loggers = [JsonlLogger(here.metrics), tracking, progress_logger(trainer)]
        try:
            trainer.train()
        except (KeyboardInterrupt, SystemExit, OSError, RankLostError):  # also a closed window, a full disk
            _stopped(run, trainer.updates)
            raise
    return trainer, tracking


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


def _stopped(run: Run, updates: int) -> None:
    if run.has_checkpoint:
        command = as_typed(f"puffer train --resume {run.argument}")
        lost = updates - run.about().updates
        without = f", without the last {plural(lost, 'update')}" if lost else ""
        note(f"stopped; the checkpoint is {run.checkpoint}{without}; to go on: {command}")
    else:
        note("stopped before the first checkpoint")


def _evaluate(config: Config, run: Run, trainer: "Trainer", tracking: "Tracking") -> "Comparison":
    """Evaluate, film and report what was trained."""
    from pufferlib.training.report import last_score, read_metrics
    from pufferlib.training.result import finish_run

    say(f"playing {plural(config.eval.episodes, 'episode')} with it, and as many at random ...")
    try:
        comparison = finish_run(run, trainer, tracking)
    except (KeyboardInterrupt, SystemExit):
        note(f"stopped before the evaluation ended; the agent is kept: {as_typed(f'puffer eval {run.argument}')}")
        raise
    except Exception:
        note(f"the agent was trained, but not evaluated; it is kept: {as_typed(f'puffer eval {run.argument}')}")
        raise
    say(highlight(str(comparison), comparison.score))
    if comparison.greedy and (last := last_score(read_metrics(run.metrics))) is not None:
        say(f"while it trained, with sampled actions, the score came to {short(last)}")
    return comparison


def _show(run: Run, comparison: "Comparison", tracking: "Tracking") -> None:
    """Say where the result is, and how it can be seen."""
    _list(run.folder, _contents(run, comparison.film.about() if comparison.film else ""))
    for place in tracking.places:
        say(place)
    say(f"Play again: {style(as_typed(f'puffer eval {run.argument}'), 'accent')}")
    if run.video.exists():
        say(f"Watch it:   {style(as_typed(f'puffer play --watch {run.argument}'), 'accent')}")


def _contents(run: Run, film: str) -> list[tuple[Path, str]]:
    return [
        (run.config, "all settings of this run"),
        (run.metrics, "the figures of each update, one JSON object per line"),
        (run.table, "the same as a table"),
        (run.curve, "the learning curve"),
        (run.checkpoints, "the agents: the latest, from which --resume goes on, and the best one"),
        (run.video, film),
        (run.summary, "the result"),
    ]
