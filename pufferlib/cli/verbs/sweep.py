"""``puffer sweep``: search for the settings with the best score."""

import dataclasses
import math
import textwrap
from argparse import Namespace
from pathlib import Path
from typing import Any

from pufferlib import registry
from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser, parse_settings, split_flags, tracker_flags, with_switch_values
from pufferlib.cli.values import literal
from pufferlib.errors import UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.settings.config import Config, docs_of, load_config
from pufferlib.settings.sources import env_name_in
from pufferlib.sweeps.report import write_report
from pufferlib.sweeps.result import SWEEPS, SweepResult, load_sweep
from pufferlib.sweeps.spaces import DISTRIBUTIONS, FIXED, KEYS, SECTIONS, SweepConfig
from pufferlib.text import short

__all__ = ["run"]

PROG = "puffer sweep"
PREFIX = "--sweep."
ABOUT = """Search for the settings with the best score, with Optuna. Trials run in worker processes.

  puffer sweep breakout --sweep.trials 50 --sweep.workers 2
  puffer sweep breakout --train.gamma 0.99 --sweep.train.learning-rate.max 1e-2
  puffer sweep breakout --report

  To continue a stopped search, start the same command again. To share the work, start it on another machine with the
  same --sweep.storage. Settings with a value (--train.gamma 0.99) are the same in all trials. Search spaces of others:

  --sweep.SECTION.NAME.distribution   {distributions}, or {fixed}
  --sweep.SECTION.NAME.min, .max      bounds; 0.1x is a tenth of the environment's default
  --sweep.SECTION.NAME.choices        values of the distribution choice, such as adam,muon

{settings}
  --sweeps FOLDER       folder of all sweeps (default: sweeps)
  --config FILE         settings that override the environment's defaults; [sweep] in the file configures the search
  --track LIST          send metrics and result of each trial to csv, tensorboard, wandb or a class of your own
                        (my_logger.py:Class); separate several by commas
  --report              write report.html of the sweep named by ENV or --sweep.name, also while it runs"""


def run(argv: list[str]) -> int:
    """Run the search that ``argv`` describes: an environment, then flags."""
    name, argv = (argv[0], argv[1:]) if argv and not argv[0].startswith("-") else ("", argv)
    typed = [name, *argv]
    _refuse_resume(typed)
    parser = Parser(PROG, add_help=False)
    parser.add_argument("--sweeps", type=Path, default=SWEEPS)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--report", action="store_true")
    parser.add_argument("--track")
    options, argv = parser.parse_known_args(argv)
    argv = [*argv, *tracker_flags(options.track)]
    overrides, flags = split_flags(PROG, with_switch_values(PROG, argv), PREFIX)
    if options.report:
        name = str(overrides.get("name", name))
        if not name:
            raise UsageError(f"{PROG}: name a sweep first, for example: {as_typed('puffer sweep breakout --report')}")
        return _report(load_sweep(name, options.sweeps))
    wants_help = "--help" in flags or "-h" in flags
    if options.config and not name:
        name = env_name_in(options.config) or ""
    base = _base_config(name, wants_help, options.config)
    sweep_flags = [PREFIX + field.name.replace("_", "-") for field in dataclasses.fields(SweepConfig)]
    given = parse_settings(PROG, base, flags, _about(), [*parser.flags, *sweep_flags])
    return _search(base.env_name, given, _parse_overrides(overrides, sweep_flags), options, typed)


def _refuse_resume(typed: list[str]) -> None:
    """Raise UsageError for ``--resume``: the same command continues a sweep."""
    for place, token in enumerate(typed):
        flag, equals, value = token.partition("=")
        if flag != "--resume":
            continue
        rest = typed[place + 1 :]
        value = value if equals else next((word for word in rest[:1] if not word.startswith("-")), "NAME")
        env = typed[0] if typed[0] and not typed[0].startswith("-") else "ENV"
        command = as_typed(f"{PROG} {env} --sweep.name {Path(value).name}")
        raise UsageError(
            f"{PROG}: --resume is a flag of puffer train; a sweep continues if you start it again under the same "
            f"name with the same settings: {command}"
        )


def _base_config(name: str, wants_help: bool, file: Path | None) -> Config:
    if name:
        registry.env_creator(name, PROG)
        return load_config(name, file=file)
    if wants_help:
        return load_config("ENV")
    raise UsageError(
        f"{PROG}: name an environment first, for example: {as_typed('puffer sweep breakout --sweep.trials 20')}; "
        f"{as_typed('puffer list')} shows all"
    )


def _parse_overrides(typed: dict[str, str], sweep_flags: list[str]) -> dict[str, Any]:
    """Return the values of the flags ``--sweep...`` as options of ``pufferlib.sweep``."""
    overrides: dict[str, Any] = {}
    texts = [field.name for field in dataclasses.fields(SweepConfig) if field.type is str]
    for key, text in typed.items():
        section, _, rest = key.partition(".")
        flag = PREFIX + key.replace("_", "-")
        if not rest and flag not in sweep_flags:
            raise UnknownNameError.of(PROG, "flag", flag, sweep_flags)
        if rest and (section not in SECTIONS or rest.rpartition(".")[2] not in KEYS):
            ways = ", ".join(KEYS)
            raise UsageError(
                f"{PROG}: unknown flag {flag!r}; a space is --sweep.SECTION.NAME.KEY, with one of the sections "
                f"{', '.join(SECTIONS)}, and one of the keys {ways}: --sweep.train.gamma.min 0.9"
            )
        value = text if key in texts else literal(text)
        if key.endswith(".choices") and not isinstance(value, list):
            value = [_choice(word.strip()) for word in text.split(",")]
        overrides[key] = value
    return overrides


def _choice(word: str) -> Any:
    value = literal(word)
    return word if isinstance(value, float) and not math.isfinite(value) else value


def _search(
    env_name: str, given: dict[str, Any], overrides: dict[str, Any], options: Namespace, typed: list[str]
) -> int:
    from rich.console import Console

    from pufferlib.sweeps.launch import sweep
    from pufferlib.sweeps.progress import ConsoleDisplay

    display = ConsoleDisplay(Console())
    try:
        result = sweep(env_name, given, config=options.config, sweeps=options.sweeps, display=display, **overrides)
    except (KeyboardInterrupt, SystemExit) as ended:
        display.close()
        note(f"stopped; finished trials are kept, and those in progress; to continue: {as_typed(PROG, *typed)}")
        return 130 if isinstance(ended, KeyboardInterrupt) else int(ended.code or 0)
    return _report(result)


def _report(result: SweepResult) -> int:
    """Print the result of a search, and write ``best.toml`` and ``report.html``."""
    counts = [trial.state for trial in result.trials]
    about = ", ".join(f"{counts.count(state)} {state}" for state in dict.fromkeys(counts))
    say(f"{style(str(result.folder), 'bold')}: {about}")
    best = result.best
    equal = sum(trial.state == "finished" and trial.score == best.score for trial in result.trials)
    cheapest = f", the cheapest of {equal} with this score" if equal > 1 else ""
    say(f"the best is trial {best.number}, score {style(short(best.score), 'good')}{cheapest}:")
    say(f"  {style(as_typed('puffer train', result.about['env_name']), 'accent')} {result.flags(best)}")
    if result.about["objective"] != "score":
        say("the best score for each cost:")
        for trial in result.front:
            cost = f"{short(trial.seconds)} s, {short(trial.steps)} steps"
            say(f"  trial {trial.number:<5} score {short(trial.score):<8} {cost}")
    say(f"the same as a file:  {as_typed('puffer train --config', result.save_best())}")
    say(f"what was found:      {write_report(result)}")
    return 0


def _about() -> str:
    defaults = {field.name: field.default for field in dataclasses.fields(SweepConfig)}
    lines = [
        f"{PREFIX}{name.replace('_', '-')}: {text} (default: {defaults[name]!r})"
        for name, text in docs_of(SweepConfig).items()
    ]
    settings = "\n".join(textwrap.fill(line, 118, initial_indent=" " * 2, subsequent_indent=" " * 6) for line in lines)
    return ABOUT.format(distributions=", ".join(DISTRIBUTIONS), fixed=FIXED, settings=settings)
