"""``puffer check-learner``: check a trainer in environments that each reveal one class of bugs."""

import json
import math
import textwrap
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pufferlib import registry
from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import PufferError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.text import plural

if TYPE_CHECKING:
    from pufferlib.testing import LearnerResult

__all__ = ["run"]

PROG = "puffer check-learner"
ABOUT = """Check a trainer in seven small environments. Each of them reveals one class of bugs, which is named if the
training fails. By default the trainer of this package is checked. Check your own with --with: a function
train(vecenv, seed, total_timesteps) that returns act(observations) -> actions. docs/check-learner.md has an example.
The exit code is 1 if a training fails."""
WIDTH = 100


def run(argv: list[str]) -> int:
    """Check the learner in ``argv``. Return 1 if an environment was not learned."""
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("--with", dest="learner", metavar="PLACE", help="my_trainer.py:train, or module:function")
    parser.add_argument("--only", nargs="+", metavar="ENV", help="environments to train in (default: all)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the environments and the learner (default: 1)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor for the steps of each training (default: 1)")
    parser.add_argument("--json", action="store_true", help="print one JSON object per environment, and nothing else")
    options = parser.parse(argv)
    if options.learner and ":" not in options.learner:
        raise UsageError(f"{PROG}: --with must be my_trainer.py:train or module:function, got {options.learner!r}")
    if options.seed < 0:
        raise UsageError(f"{PROG}: --seed must be at least 0, got {options.seed}")
    from pufferlib.testing import check_learner  # imports torch

    learner = registry.load_object(f"{PROG}: --with", options.learner) if options.learner else None
    only = ",".join(options.only).split(",") if options.only else None
    results = check_learner(learner, only, options.seed, options.scale)
    if options.json:
        return max([_print_json(result) for result in results])
    say(f"checking {style(options.learner or 'the trainer of pufferlib', 'bold')}, seed {options.seed}\n")
    say(style(f"  {'environment':<12}{'asks to':<42}{'score':>7}{'bar':>7}{'seconds':>9}", "muted"))
    given = {"--with": options.learner, "--seed": options.seed, "--scale": options.scale}
    flags = [word for flag, value in given.items() if value not in (None, 1) for word in (flag, value)]  # no defaults
    return _print_summary([_print(result) for result in results], flags)


def _print_json(result: "LearnerResult") -> int:
    """Print one result as JSON. Return 1 for a failure."""
    record = {
        "environment": result.env_name,
        "passed": result.passed,
        "score": result.score if math.isfinite(result.score) else None,
        "bar": result.bar,
        "seconds": round(result.seconds, 3),
        "bug": result.finding and result.finding.bug,
        "look_at": result.finding and result.finding.look_at,
        "error": repr(result.error) if result.error else None,
    }
    say(json.dumps(record))
    return int(not result.passed)


def _print(result: "LearnerResult") -> "LearnerResult":
    """Print one row of the table and the likely bug, if it failed."""
    mark = style("✓", "good") if result.passed else style("✗", "bad")
    score = f"{result.score:.2f}" if math.isfinite(result.score) else "–"
    say(
        f"{mark} {result.env_name:<12}{result.asks:<42}{style(f'{score:>7}', 'good' if result.passed else 'bad')}"
        f"{result.bar:>7.2f}{result.seconds:>9.1f}"
    )
    for paragraph in _findings(result):
        say(style(textwrap.indent(textwrap.fill(paragraph, WIDTH - 14), " " * 14), "warning"))
    return result


def _findings(result: "LearnerResult") -> list[str]:
    if result.finding:
        return [f"{result.finding.bug};", f"look at {result.finding.look_at}"]
    if result.error is None:
        return []
    if not isinstance(result.error, PufferError):
        note("".join(traceback.format_exception(result.error)).rstrip())
    return [f"raised {type(result.error).__name__}: {result.error}"]


def _print_summary(results: "list[LearnerResult]", flags: Sequence[object]) -> int:
    failed = [result.env_name for result in results if not result.passed]
    took = f"{plural(len(results), 'environment')} in {sum(result.seconds for result in results):.0f} s"
    if not failed:
        say(f"\n{took}: all learned")
        return 0
    again = as_typed("puffer check-learner", *flags, "--only", failed[0])
    say(
        f"\n{took}: {len(failed)} not learned. Start with {failed[0]}, because later environments build on earlier "
        f"ones.\nRun it again: {again}"
    )
    return 1
