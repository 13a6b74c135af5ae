"""Count the instructions of a step of each hot path, and compare them with the recorded counts.

Record new counts, in ``instructions.json``, with this command:

    docker compose run --rm test python tests/speed/instructions.py

The counts include everything that the process executes: CPython, NumPy, torch and this package. Callgrind simulates one
processor model with AVX2, hash seeds are fixed and the clock is simulated, so that the same code gives the same count.
Other compilers and libraries give other counts, so that counts are only compared in the test image.
"""

import importlib.metadata
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

__all__ = ["COMMAND", "advice", "compare", "count", "merge", "read_dump", "recorded", "toolchain", "why_not_here"]

HERE = Path(__file__).parent
RECORD = HERE / "instructions.json"
COMMAND = "docker compose run --rm test python tests/speed/instructions.py"
LIMIT = 0.03


def why_not_here() -> str:
    """Return why instructions cannot be counted on this machine, or "" if they can."""
    if os.environ.get("TANK_COMMAND") != "pytest" or os.environ.get("TANK_DEVICE") != "cpu":
        return "only in the test image for the CPU, whose compiler and libraries the counts belong to"
    if "avx2" not in Path("/proc/cpuinfo").read_text().split():
        return "this processor lacks AVX2, which the counted code uses"
    return ""


def count() -> dict[str, int]:
    """Count the instructions of a step of each row.

    Raises:
        subprocess.CalledProcessError: The compiler or ``rows.py`` failed. Its output is on stderr.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(
            ["cc", "-O2", "-shared", "-fPIC", "-o", folder / "counter.so", HERE / "counter.c"],
            check=True,
            stdout=sys.stderr,
        )
        # Only these variables, because their size changes addresses in memory and with them the entries of hash tables.
        env = {
            "HOME": ".",
            "LD_PRELOAD": "./counter.so",
            "OMP_NUM_THREADS": "1",
            "PATH": os.environ["PATH"],
            "PYTHONHASHSEED": "0",
        }
        command = ["valgrind", "--quiet", "--tool=callgrind", "--instr-atstart=no", "--callgrind-out-file=dump"]
        subprocess.run([*command, sys.executable, HERE / "rows.py"], check=True, cwd=folder, env=env, stdout=sys.stderr)
        dumps = [read_dump(path.read_text()) for path in folder.glob("dump.*")]
    return dict(sorted(dump for dump in dumps if dump is not None))


def read_dump(text: str) -> tuple[str, int] | None:
    """Return the name of a row and its instructions per step, or None if a dump of callgrind is not of a row."""
    name = re.search(r"^desc: Trigger: Client Request: (\d+) (.+)$", text, re.MULTILINE)
    total = re.search(r"^summary: (\d+)$", text, re.MULTILINE)
    return (name[2], round(int(total[1]) / int(name[1]))) if name and total else None


def compare(expected: Mapping[str, int], counted: Mapping[str, int]) -> list[str]:
    """Return a message for each row whose count is not within ``LIMIT`` of the expected one."""
    found = []
    for row in sorted({*expected, *counted}):
        if row not in expected:
            found.append(f"{row}: counted {counted[row]:,} instructions per step, and none are recorded")
        elif row not in counted:
            found.append(f"{row}: {expected[row]:,} instructions per step are recorded, and the row no longer exists")
        elif not is_near(expected[row], counted[row]):
            change = counted[row] / expected[row] - 1
            found.append(
                f"{row}: expected {expected[row]:,} instructions per step within {LIMIT:.0%}, counted "
                f"{counted[row]:,} ({change:+.1%})"
            )
    return found


def is_near(expected: int, counted: int) -> bool:
    """Return whether a count is within ``LIMIT`` of the expected one."""
    return abs(counted - expected) <= LIMIT * expected


def merge(before: Mapping[str, int], counted: Mapping[str, int]) -> dict[str, int]:
    """Return the counts to record. Rows within ``LIMIT`` keep theirs, so that small losses add up and are noticed."""
    near = {row for row in counted if row in before and is_near(before[row], counted[row])}
    return {row: before[row] if row in near else counted[row] for row in counted}


def advice(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return what to do about counts that differ, given the toolchain of the recorded ones and this one."""
    others = [
        f"{name} {expected.get(name)} is now {found[name]}" for name in found if found[name] != expected.get(name)
    ]
    why = f" The toolchain has changed: {', '.join(others)}." if others else ""
    return f"Make the step cheaper, or record the new counts if they are what you want: {COMMAND}{why}"


def toolchain() -> dict[str, str]:
    """Return the versions on which the counts depend."""
    programs = {"gcc": ("cc", "-dumpfullversion"), "valgrind": ("valgrind", "--version")}
    return {
        **{name: subprocess.check_output(command, text=True).strip() for name, command in programs.items()},
        "glibc": platform.libc_ver()[1],
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("cython", "numpy", "torch")},
    }


def recorded() -> tuple[dict[str, int], dict[str, str]]:
    """Return the recorded instructions per step, and the toolchain that they belong to."""
    content = json.loads(RECORD.read_text())
    return content["instructions"], content["toolchain"]


def main() -> int:
    """Record the counts and return the exit code."""
    if reason := why_not_here():
        print(f"instructions.py: {reason}; run: {COMMAND}", file=sys.stderr)
        return 2
    counted = count()
    before = recorded()[0] if RECORD.exists() else {}
    RECORD.write_text(json.dumps({"toolchain": toolchain(), "instructions": merge(before, counted)}, indent=2) + "\n")
    print("\n".join(compare(before, counted) or [f"no count has changed by more than {LIMIT:.0%}"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
