"""Time of PPO per step of one agent, acting and learning, beside its peers.

    python benchmarks/train.py                       # ours, and the matrix products alone as a limit
    python benchmarks/train.py --peer-python PATH    # and PufferLib 3.0.0, Stable-Baselines3; see requirements.txt
    python benchmarks/train.py --only LSTM           # some rows
    python benchmarks/train.py --quick               # to see that it works

Network, agents, horizon, minibatch and epochs are the same for all contestants of a row. All have one thread of the
CPU, and they take turns, as in engine.py. Also writes benchmarks/results/train.json.
"""

import argparse
import functools
import os
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from engine import PUFFER, Measure, measure
from report import LIMIT, OURS, RESULTS, Row, machine, write
from sides import Side
from trainers import settings

SCRIPT = str(Path(__file__).with_name("trainers.py"))
SB3 = "Stable-Baselines3"
PRODUCTS = "its matrix products alone"
GOALS = {"MLP": 2.5, "LSTM": 1.3}  # times as fast as PufferLib 3.0.0


def rows(us: Side, peer: Side | None, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Every row, and how its contestants are measured."""
    for network in GOALS:
        overrides = {"policy.memory": "LSTM" if network == "LSTM" else "none"}
        calls: dict[str, Measure] = {
            OURS: functools.partial(us.ask, "ours", "breakout", overrides, seconds),
            LIMIT: functools.partial(us.ask, "products", "breakout", overrides, seconds / 4),
        }
        yield Row(f"breakout with its own settings, {network}", "us", limit=PRODUCTS), calls
    for env, frameskip in (("breakout", 4), ("pong", 8)):
        for network, least in GOALS.items():
            same = settings(env, frameskip, network == "LSTM")
            calls = {OURS: functools.partial(us.ask, "ours", env, same, seconds)}
            if peer:
                calls[PUFFER] = functools.partial(peer.ask, "puffer", env, frameskip, network == "LSTM", seconds)
            calls[LIMIT] = functools.partial(us.ask, "products", env, same, seconds / 4)
            yield Row(f"{env}, 1024 agents, {network}", "us", ratios={PUFFER: least}, limit=PRODUCTS), calls
    calls = {OURS: functools.partial(us.ask, "ours_cartpole", seconds)}
    if peer:
        calls[SB3] = functools.partial(peer.ask, "sb3_cartpole", seconds)
    yield Row("CartPole-v1, 8 environments, one process", "us", ratios={SB3: 3}), calls


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer-python", help="interpreter of an environment that has PufferLib 3.0.0")
    parser.add_argument("--minutes", type=float, default=4, help="for all rows together, about")
    parser.add_argument("--rounds", type=int, default=7, help="of a row, at most")
    parser.add_argument("--seconds", type=float, default=2.0, help="of one measurement")
    parser.add_argument("--json", type=Path, default=RESULTS / "train.json", help="file to write the figures to")
    parser.add_argument("--only", nargs="+", default=[""], metavar="ROW", help="parts of the names of rows")
    parser.add_argument("--quick", action="store_true", help="two short rounds: only to see that it works")
    options = parser.parse_args()
    rounds, seconds = (2, 0.01) if options.quick else (options.rounds, options.seconds)
    before = machine()
    us, peer = Side(sys.executable, SCRIPT), Side(options.peer_python, SCRIPT) if options.peer_python else None
    try:
        done = measure(rows(us, peer, seconds), options.only, rounds, options.minutes)
    finally:
        for side in (us, peer):
            if side:
                side.close()
    print(f"load {before['load_1min']:.1f} before, {os.getloadavg()[0]:.1f} after, {before['cpus']} CPUs")
    kept = {"minutes": options.minutes, "rounds": rounds, "seconds": seconds}
    write(options.json, {"machine": before, "settings": kept, "rows": [row.as_dict() for row in done]})


if __name__ == "__main__":
    main()
