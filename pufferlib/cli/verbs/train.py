"""``puffer train``: train an agent, evaluate it, and write its learning curve and video."""

import dataclasses
import itertools
import math
import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.cli.console import note, outliving_readers, print_table, say
from pufferlib.cli.options import Parser, parse_settings, tracker_flags
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.machine.signals import signals_exit
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS, Run
from pufferlib.runs.resume import flat, settings_of, stop_reason_of
from pufferlib.runs.seeds import SeedGroup, find_group, parse_seeds
from pufferlib.settings.config import Config, StopConfig, load_config, load_sources
from pufferlib.settings.sources import Source, env_name_in
from pufferlib.text import flag
from pufferlib.training.build import with_tuned_vec
from pufferlib.training.callbacks import Callback, CallbackFunction, find_callback
from pufferlib.training.loggers.tracking import TRACKERS

__all__ = ["run"]


PROG = "puffer train"
DEFAULT = "default.toml"  # file of the default settings, as a source
Callbacks = Sequence[Callable[[], Callback | CallbackFunction]]
ABOUT = """Train an agent, evaluate it, plot its learning curve and record a video.

  --resume RUN     continue a run: its folder, a checkpoint, or the name of an environment for its latest run; you can
                   make it longer (--train.total-timesteps), and change where it runs and how it is evaluated
  --init RUN       start a new run with the weights of a run, a checkpoint or a policy file
  --name NAME      name of the run: part of its folder name, and shown in every tracker
  --tag TAG        word to find the run by; can be given several times
  --callback NAME  callback of your own: my_callbacks.py:Class or module:function; can be given several times
  --track LIST     also send metrics and result to csv, tensorboard, wandb or a class of your own (my_logger.py:Class);
                   separate several by commas
  --train.seeds N  train N seeds one after the other, starting at train.seed, or a list of seeds: 1,2,3; report the mean
  --runs FOLDER    folder in which the run's folder is created (default: runs)
  --config FILE    TOML file of settings; it overrides the environment's settings, and flags override it
  --vec auto       batch the environments in the best way for training that puffer autotune found
  --show-settings  print all settings with the source of each value, and train nothing

ENV is a name of puffer list, an environment of your own (my_env.py:Class, module:Class) or a Gymnasium id."""


def run(argv: list[str]) -> int:
    """Run ``puffer train``. ``argv`` is an environment, then flags."""
    name, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    parser = _parser()
    _refuse_separate_trackers(argv)
    options, flags = parser.parse_known_args(argv)
    group = find_group(Path(options.resume)) if options.resume else None
    resumed = find_run(PROG, options.resume, options.runs, shipped=False) if options.resume and not group else None
    if resumed and resumed.is_seed and not user_path(options.resume).exists():  # a name means all seeds of the run
        group, resumed = find_group(resumed.folder.parent), None
    wants_help = "--help" in flags or "-h" in flags
    if options.config and not name and not (resumed or group):
        name = env_name_in(options.config) or ""
    base = _base(name, resumed or group, wants_help, options.config)
    if options.init:
        flags = [*flags, "--train.init", str(find_run(PROG, options.init, options.runs).checkpoint)]
    known = [flag for flag in parser.flags if "." not in flag]  # settings are suggested instead
    given = parse_settings(PROG, base, [*flags, *_tracking_flags(options)], ABOUT, known)
    if resumed or group:
        config = base.override(given).with_full_names()
    else:  # flags decide which tables of the files apply, such as [cuda.train]
        config = load_config(base.env_name, given, options.config)
    others = dict.fromkeys(given, "flag")
    if options.vec:
        untuned, config = flat(config.as_dict()), with_tuned_vec(config, given)
        others |= {name: "autotune" for name, value in flat(config.as_dict()).items() if value != untuned.get(name)}
    if options.show_settings:
        _print_settings(config, _sources(config, given, resumed or group, options.config), others)
        return 0
    seeds = parse_seeds(options.seeds, config.train.seed) if options.seeds else ()
    if resumed and seeds:
        raise UsageError(f"{PROG}: {resumed.folder} is the run of one seed; leave out --train.seeds")
    callbacks = [find_callback(f"{PROG}: --callback", name) for name in options.callback]
    with signals_exit(), outliving_readers():
        return _train(config, resumed or (group and group.with_seeds(seeds)), options.runs, seeds, callbacks)


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
    parser.add_argument("--train.seeds", dest="seeds")
    parser.add_argument("--show-settings", action="store_true")
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
    """Return the flags of the settings that short flags stand for."""
    name = ["--track.name", options.name] if options.name is not None else []
    tags = ["--track.tags", *options.tag] if options.tag else []
    return [*name, *tags, *tracker_flags(options.track)]


def _train(
    config: Config, target: Run | SeedGroup | None, runs: Path, seeds: tuple[int, ...], callbacks: Callbacks
) -> int:
    """Train a new run, or resume ``target``."""
    from pufferlib.cli.run_display import RunDisplay  # loads torch
    from pufferlib.training import lifecycle

    hooks = lifecycle.Hooks(PROG, callbacks=lambda: [make() for make in callbacks], display=RunDisplay())
    try:
        if target is None:
            lifecycle.start(config, runs, seeds, hooks)
        elif lifecycle.resume(target, config, hooks) is None and isinstance(target, Run):
            _report_finished(config, target)
    except KeyboardInterrupt:
        return 130
    return 0


def _base(name: str, resumed: Run | SeedGroup | None, wants_help: bool, file: Path | None) -> Config:
    """Return the settings that the flags change: those of the resumed run, or of the environment and the file."""
    if resumed:
        base = settings_of(resumed)
        if file:
            raise UsageError(f"{PROG}: a resumed run keeps its settings; leave out --config")
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
    registry.env_creator(name, PROG)
    if same := registry.same_game(name):
        versions = [re.search(r"-v\d+$", each) for each in (name, same[0])]
        is_other = all(versions) and len({match[0] for match in versions if match}) == 2
        relation = "another version of it" if is_other else "the same game"
        note(f"{name} is Gymnasium's environment; {same[0]} is {relation}, with tuned settings")
    return load_config(name, file=file)


def _sources(config: Config, given: dict[str, Any], resumed: Run | SeedGroup | None, file: Path | None) -> list[Source]:
    """Return the sources of the settings, with those in flags last."""
    if resumed:
        return [(str(resumed.folder / "config.toml"), resumed.settings().as_dict())]
    return load_sources(config.env_name, given, file)


def _is_new_place(name: str, resumed: Run | SeedGroup) -> bool:
    """Return whether the environment of a run was moved or renamed to ``name``, or ``name`` adds its class."""
    old = env_name_in(resumed.folder / "config.toml") or ""
    old_file, file = (Path(registry.split_name(each)[0]) for each in (old, name))
    is_there = file.is_file() and (old_file == file or not old_file.exists())
    return is_there and name != old and registry.is_new_name(name, old)


def _report_finished(config: Config, run: Run) -> None:
    """Print what can be done with a run that is finished and evaluated."""
    total, reason = config.train.total_timesteps, stop_reason_of(run)
    flags = _flags_to_continue(config) if reason else ""
    flags = flags or flag("train.total_timesteps", 2 * total)
    train_on = as_typed(f"puffer train --resume {run.argument} {flags}")
    evaluate = as_typed(f"puffer eval {run.argument}")
    done = (
        f"it was stopped after {run.about().agent_steps} steps: {reason}" if reason else f"its {total} steps are done"
    )
    say(f"{run.folder}: nothing is left to train, {done}; to train on: {train_on}; to evaluate it again: {evaluate}")


def _flags_to_continue(config: Config) -> str:
    """Return the flags without which the run would stop again, or "" if its settings do not stop it."""
    limits = {"score": config.stop.score < math.inf, "patience": config.stop.patience, "seconds": config.stop.seconds}
    never = StopConfig()
    return " ".join(flag(f"stop.{name}", getattr(never, name)) for name, is_set in limits.items() if is_set)


def _print_settings(config: Config, sources: Iterable[Source], others: dict[str, str]) -> None:
    """Print each setting with its value and its source.

    Args:
        config: Settings.
        sources: Sources of the settings, in the order in which they apply.
        others: Further sources by dotted name of the setting, such as ``{"train.seed": "flag"}``.
    """
    origins: dict[str, str] = {}
    for where, data in sources:
        names = flat({section: values for section, values in data.items() if section != "sweep"})
        origins |= {name: "default" if where == DEFAULT else _place(where, name) for name in names}
    origins |= others
    values = flat(config.as_dict())
    say(f"Settings of {config.env_name}")
    print_table(
        ("Setting", "Value", "Source"), [(name, _shown(values[name]), origins.get(name, "default")) for name in values]
    )


def _place(where: str, name: str) -> str:
    """Return the file and section of a setting: ``mujoco/train.toml, ["Hopper-v5".train]``."""
    section = name.rpartition(".")[0]
    return f"{where[:-1]}.{section}]" if where.endswith("]") else f"{where}, [{section}]"


def _shown(value: Any) -> str:
    if value is None:
        return "unset"
    if value in ("", ()):
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
