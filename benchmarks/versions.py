"""Speed of this version of the project, compared with another checkout of it.

    git worktree add ../before v0.2.0
    (cd ../before && ./scripts/test --local tests/test_spaces.py)    # makes its .venv and compiles it
    python benchmarks/versions.py ../before engine                   # every row of engine.py
    python benchmarks/versions.py ../before train --only LSTM --turns 6

Each checkout runs its own benchmark, this one with the interpreter of this command and the other one with its .venv.
The runs take turns: this version, the other one, and this version again. The first ratio is that of the medians of all
runs. The second one compares the two equal runs, and shows the noise.

Compiled modules are copied before each run. Their place in physical memory alone can change a step by a tenth, and it
would otherwise be the same in every run.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
NAMES = ("engine", "ocean", "train")

Figures = dict[str, list[float]]  # by name of the row


def copy_modules(python: Path, checkout: Path) -> None:
    """Replace the compiled modules of a checkout by copies, unless they belong to another user."""
    code = "import pufferlib.ocean._ocean as module; print(module.__file__)"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=checkout, check=True)
    for module in Path(done.stdout.strip()).parents[1].rglob("*.so"):
        if os.access(module.parent, os.W_OK):
            copy = module.with_suffix(".copy")
            shutil.copy(module, copy)
            copy.replace(module)


def measured(python: Path, checkout: Path, name: str, only: Sequence[str], seconds: float) -> Figures:
    """Run a benchmark of a checkout and return our figures.

    Raises:
        SystemExit: The benchmark fails.
    """
    copy_modules(python, checkout)
    with tempfile.TemporaryDirectory() as folder:
        options = ["--ours", "--rounds", "3", "--seconds", str(seconds), "--results", folder, "--only", *only]
        command = [python, "-W", "ignore", checkout / "benchmarks" / f"{name}.py", *options]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, cwd=checkout, check=False)
        if done.returncode:
            raise SystemExit(f"{checkout}: {name}.py failed; the error is above")
        rows = json.loads((Path(folder) / f"{name}.json").read_text())["rows"]
    return {row["what"]: row["figures"]["ours"] for row in rows if "ours" in row["figures"]}


def main() -> None:
    """Parse the command line, measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="other checkout of this project, with a .venv")
    parser.add_argument("name", choices=NAMES, help="benchmark")
    parser.add_argument("--only", nargs="+", default=[""], metavar="ROW", help="only rows whose name contains this")
    parser.add_argument("--turns", type=int, default=4, help="runs of each side")
    parser.add_argument("--seconds", type=float, default=0.1, help="duration of a short measurement")
    options = parser.parse_args()
    other = options.other.resolve()
    this, python = (Path(sys.executable), HERE), other / ".venv" / "bin" / "python"
    if not python.exists():
        parser.error(f"{other} has no .venv; run there: ./scripts/test --local tests/test_spaces.py")
    sides = {"this": this, "other": (python, other), "again": this}
    found: dict[str, Figures] = {side: {} for side in sides}
    for turn in range(options.turns):
        for side in sides if turn % 2 == 0 else reversed(sides):
            for what, figures in measured(*sides[side], options.name, options.only, options.seconds).items():
                found[side].setdefault(what, []).extend(figures)
    print("| what | this / other | this / this again |\n|---|---|---|")
    for what in found["this"]:
        if what in found["other"]:
            ours, theirs, again = (statistics.median(found[side][what]) for side in sides)
            print(f"| {what} | {(ours + again) / 2 / theirs:.3f} | {ours / again:.3f} |")


if __name__ == "__main__":
    main()
