"""Defects of a C file, as ``puffer check`` prints them."""

import textwrap

from pufferlib.cli.console import note, say, style
from pufferlib.machine.commands import as_typed
from pufferlib.ocean.fuzz import CLASSES, Defect, fuzz_file

__all__ = ["print_defects"]

WIDTH = 100


def print_defects(path: str, steps: int, seed: int) -> tuple[Defect, ...]:
    """Play the environment of a C file under the sanitizers, and print each defect with its class.

    Args:
        path: Of the file.
        steps: Of the hostile play.
        seed: Decides all choices.

    Returns:
        What was printed.
    """
    note(f"playing {steps} steps with hostile actions and extreme parameters, then comparing seeds and batches ...")
    report = fuzz_file(path, steps, seed)
    for defect in report.defects:
        say(_text(defect))
    if "address" not in report.sanitizers:
        lacks = "the address sanitizer" if report.sanitizers else "the address and undefined-behaviour sanitizers"
        note(f"the C compiler has no library for {lacks}, which find most defects; gcc of Debian has: CC=gcc "
             f"{as_typed('puffer check')} {path}")  # fmt: skip
    count = len(report.defects)
    say(f"{path}, {steps} steps in C with seed {seed}: " + (f"{count} to mend" if count else "nothing to mend") + "\n")
    return report.defects


def _text(defect: Defect) -> str:
    place = f"{defect.place}: " if defect.place else ""
    lines = [f"{style('✗', 'bad')} {style(defect.kind, 'bold')}  {place}{defect.message}"]
    lines += [f"    {defect.context}"] if defect.context else []
    return "\n".join([*lines, textwrap.indent(textwrap.fill(f"That is, {CLASSES[defect.kind]}.", WIDTH - 4), "    ")])
