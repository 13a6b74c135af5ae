"""``puffer doctor``: check this machine and suggest fixes."""

import dataclasses
import json
import textwrap
from pathlib import Path

from pufferlib.cli.console import say, style
from pufferlib.cli.options import Parser
from pufferlib.installation import doctor

__all__ = ["run"]

MARKS = {"ok": ("✓", "good"), "absent": ("–", "muted"), "advice": ("!", "warning"), "problem": ("✗", "bad")}
WIDTH = 100
INDENT = 22


def run(argv: list[str]) -> int:
    """Print the findings. Return 0 if the package (with ``--gpu``: the GPU) can be used here."""
    parser = Parser("puffer doctor", description="Check this machine and the installation, and suggest fixes.")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--runs", type=Path, default=Path("runs"), help="folder for runs (default: runs)")
    parser.add_argument("--gpu", action="store_true", help="only check GPUs: run a kernel on each, and draw an image")
    options = parser.parse(argv)
    findings = [doctor.gpu(), doctor.rendering()] if options.gpu else doctor.examine(options.runs)
    usable = bool(findings[0].data.get("usable")) if options.gpu else doctor.usable(findings)
    if options.json:
        say(json.dumps({"usable": usable, "findings": [dataclasses.asdict(f) for f in findings]}, indent=2))
    else:
        for finding in findings:
            _print(finding)
        say()
        missing = "no usable GPU for training" if options.gpu else "not ready: see the lines marked ✗"
        say(style("ready", "good") if usable else style(missing, "bad"))
    return 0 if usable else 1


def _print(finding: doctor.Finding) -> None:
    mark, colour = MARKS[finding.level]
    lines = textwrap.wrap(finding.value, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    say(f"{style(mark, colour)} {finding.name:<{INDENT - 3}} " + f"\n{'':{INDENT}}".join(lines or [""]))
    if finding.advice:
        say(f"{'':{INDENT}}{style('→ ' + finding.advice, colour)}")
