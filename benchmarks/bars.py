"""Seconds of training until a score is reached, with the settings that each library has for the environment.

    python benchmarks/bars.py --peer-python PATH    # and PufferLib 3.0.0; see requirements.txt

One run each, on the CPU, in the same process as long as it takes; the score is the mean of the episodes that end
during an update, with sampled actions. A contestant that is slower than four times ours is stopped. Also writes
benchmarks/results/bars.json.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from engine import PUFFER
from report import HEADER, OURS, RESULTS, Row, line, machine, write
from sides import Side

SCRIPT = str(Path(__file__).with_name("trainers.py"))
# The score that is asked of ours and of PufferLib's, whose cart is upright for 200 steps at most instead of 500.
BARS = {"breakout": (820.0, 820.0), "pong": (20.5, 20.5), "cartpole": (490.0, 196.0)}
LIMIT_S = 900.0
PATIENCE = 4  # times our seconds


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="interpreter of an environment that has PufferLib 3.0.0")
    parser.add_argument("--only", nargs="+", default=list(BARS), choices=BARS, metavar="ENV", help="some of them")
    parser.add_argument("--json", type=Path, default=RESULTS / "bars.json", help="file to write the figures to")
    options = parser.parse_args()
    print(HEADER)
    rows = []
    for env in options.only:
        rows.append(measure(env, options.peer_python))
        print(line(rows[-1]), flush=True)
    write(options.json, {"machine": machine(), "rows": [row.as_dict() for row in rows]})


def measure(env: str, peer_python: str | None) -> Row:
    """Train with each contestant, one after the other."""
    ours, theirs = BARS[env]
    row = Row(f"{env} to a score of {ours:g}", "s", ratios={PUFFER: 1.0})
    row.figures = to_bar(sys.executable, OURS, "ours_to_bar", env, ours, LIMIT_S)
    if OURS not in row.figures:
        row.skipped = f"not reached in {LIMIT_S:.0f} s"
    elif peer_python:
        limit_s = PATIENCE * row.figures[OURS][0]
        row.figures |= to_bar(peer_python, PUFFER, "puffer_to_bar", env, theirs, limit_s)
        if PUFFER not in row.figures:
            row.figures[PUFFER] = [limit_s]
            row.what += ", which the peer did not reach in the time that is given"
    return row


def to_bar(python: str, name: str, case: str, env: str, score: float, limit_s: float) -> dict[str, list[float]]:
    """Figures of one contestant: its seconds, or none."""
    side = Side(python, SCRIPT)
    try:
        seconds = side.ask(case, env, score, limit_s)
    finally:
        side.close()
    return {} if seconds is None else {name: [seconds]}


if __name__ == "__main__":
    main()
