"""``puffer check``: check that an environment meets the contract."""

import functools
import textwrap
import traceback
from typing import Any

from pufferlib import registry
from pufferlib.cli.console import note, say, style
from pufferlib.cli.options import Parser, split_env, typed
from pufferlib.errors import PufferError, UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.ocean.fuzz import CLASSES, Defect, fuzz_file
from pufferlib.testing import CONTRACT, CheckResult, examine

__all__ = ["run"]

PROG = "puffer check"
ABOUT = """Check an environment by random play: puffer check breakout. Each line of the contract that training relies on
is checked. docs/contract.md explains the lines. Set arguments of the environment with flags: puffer check squared
--env.size 7. A C file is first played with invalid actions under sanitizers: puffer check corridor.c."""
WIDTH = 100
MARKS = {"kept": ("✓", "good"), "broken": ("✗", "bad"), "unknown": ("-", "muted")}


def run(argv: list[str]) -> int:
    """Check the environment in ``argv``. Return 1 if a line is broken or the environment raises an error."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", nargs="?", help="name from puffer list, my_env.py:Class, module:Class, or Gymnasium id")
    parser.add_argument(
        "--steps", type=int, default=200, help="steps of each play, enough for episodes to end (default: 200)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the environment and the actions (default: 0)")
    parser.add_argument(
        "--fuzz", type=int, default=50_000, metavar="STEPS", help="steps of a C file under sanitizers (default: 50000)"
    )
    parser.add_argument("--continuing", action="store_true", help="allow a task without an end")
    options = parser.parse(argv)
    if not options.env:
        example = as_typed("puffer check breakout")
        raise UsageError(f"{PROG}: name an environment, for example: {example}; puffer list shows all")
    for flag, steps in (("--steps", options.steps), ("--fuzz", options.fuzz)):
        if steps < 1:
            raise UsageError(f"{PROG}: {flag} must be at least 1, got {steps}")
    source = registry.c_file(options.env)
    defects = _print_defects(source, options.fuzz, options.seed) if source else ()
    if any(defect.is_fatal for defect in defects):
        note("the contract was not checked, because these defects could crash this process; fix them first")
        return 1
    try:
        creator = _creator(options.env, typed(options.env, texts))
        results = examine(creator, seed=options.seed, steps=options.steps, continuing=options.continuing)
    except PufferError:
        raise
    except Exception as error:
        note("".join(traceback.format_exception(error)).rstrip())
        say(f"{style('✗', 'bad')} {options.env} raised {type(error).__name__}; the check was stopped")
        return 1
    for number, result in enumerate(results, 1):
        say(_text(number, result))
    count = sum(result.state == "broken" for result in results)
    played = f"{options.env}, {options.steps} steps at random with seed {options.seed}"
    say(f"\n{played}: {f'{count} of {len(CONTRACT)} lines of the contract are broken' if count else 'no problems'}")
    return 1 if count or defects else 0


def _print_defects(path: str, steps: int, seed: int) -> tuple[Defect, ...]:
    """Play the environment in a C file under sanitizers, and print each defect with its class.

    Args:
        path: Path of the file.
        steps: Number of steps with invalid actions.
        seed: Seed of the play.

    Returns:
        Defects that were found.
    """
    note(f"playing {steps} steps with invalid actions and extreme parameters, then comparing seeds and batches ...")
    report = fuzz_file(path, steps, seed)
    for defect in report.defects:
        say(_defect_text(defect))
    if "address" not in report.sanitizers:
        lacks = "the address sanitizer" if report.sanitizers else "the address and undefined-behaviour sanitizers"
        note(f"the C compiler has no library for {lacks}, which find most defects; Debian's gcc has them: CC=gcc "
             f"{as_typed('puffer check', path)}")  # fmt: skip
    count = len(report.defects)
    say(
        f"{path}, {steps} steps in C with seed {seed}: "
        + (f"defects found: {count}" if count else "no defects found")
        + "\n"
    )
    return report.defects


def _defect_text(defect: Defect) -> str:
    place = f"{defect.place}: " if defect.place else ""
    lines = [f"{style('✗', 'bad')} {style(defect.kind, 'bold')}  {place}{defect.message}"]
    lines += [f"    {defect.context}"] if defect.context else []
    return "\n".join([*lines, textwrap.indent(textwrap.fill(f"That is, {CLASSES[defect.kind]}.", WIDTH - 4), "    ")])


def _creator(name: str, keywords: dict[str, Any]) -> Any:
    return functools.partial(registry.env_creator(name, PROG), **keywords)


def _text(number: int, result: CheckResult) -> str:
    """Format one line of the contract and the problem, if there is one."""
    mark, colour = MARKS[result.state]
    about = CONTRACT[result.line] + (f" ({result.message})" if result.state == "unknown" else "")
    text = f"{style(mark, colour)} {number:2}  {textwrap.fill(about, WIDTH - 6, subsequent_indent=' ' * 6)}"
    if result.state == "broken":
        problem = result.message.removesuffix(f" (line {number} of the contract)")
        text += "\n" + style(textwrap.indent(textwrap.fill(problem, WIDTH - 6), " " * 6), "warning")
    return text
