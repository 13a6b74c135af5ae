"""Output of ``puffer check`` for defects in a C file."""

import textwrap

from pufferlib.cli.console import note, say, style
from pufferlib.machine.commands import as_typed
from pufferlib.ocean.fuzz import CLASSES, Defect, fuzz_file

__all__ = ["print_defects"]

WIDTH = 100


def print_defects(path: str, steps: int, seed: int) -> tuple[Defect, ...]:
    """Play the environment in a C file under sanitizers, and print each defect with its class.

    Args:
        path: Path of the file.
        steps: Number of steps with hostile actions.
        seed: Seed of the play.

    Returns:
        Defects that were found.
    """
    note(f"playing {steps} steps with hostile actions and extreme parameters, then comparing seeds and batches ...")
    report = fuzz_file(path, steps, seed)
    for defect in report.defects:
        say(_text(defect))
    if "address" not in report.sanitizers:
        lacks = "the address sanitizer" if report.sanitizers else "the address and undefined-behaviour sanitizers"
        note(f"the C compiler has no library for {lacks}, which find most defects; Debian's gcc has them: CC=gcc "
             f"{as_typed('puffer check')} {path}")  # fmt: skip
    count = len(report.defects)
    say(
        f"{path}, {steps} steps in C with seed {seed}: "
        + (f"defects found: {count}" if count else "no defects found")
        + "\n"
    )
    return report.defects


def _text(defect: Defect) -> str:
    place = f"{defect.place}: " if defect.place else ""
    lines = [f"{style('✗', 'bad')} {style(defect.kind, 'bold')}  {place}{defect.message}"]
    lines += [f"    {defect.context}"] if defect.context else []
    return "\n".join([*lines, textwrap.indent(textwrap.fill(f"That is, {CLASSES[defect.kind]}.", WIDTH - 4), "    ")])
