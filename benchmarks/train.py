"""Time of PPO per step of one agent, acting and learning, beside its peers.

    python benchmarks/train.py                       # ours, and the matrix products alone as a limit
    python benchmarks/train.py --peer-python PATH    # and PufferLib 3.0.0, Stable-Baselines3; see requirements.txt
    python benchmarks/train.py --only LSTM           # some rows
    python benchmarks/train.py --quick               # to see that it works

Network, agents, horizon, minibatch and epochs are the same for all contestants of a row. All have one thread of the
CPU, in the rows of Atari two, and they take turns, as in engine.py. Also writes benchmarks/results/train.json.
"""

import functools
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from engine import PUFFER
from report import LIMIT, OURS, Row
from sides import Side
from trainers import settings
from turns import Measure, parser, run

from pufferlib.train.config import load_config

SCRIPT = str(Path(__file__).with_name("trainers.py"))
OVERLAPPED = str(Path(__file__).with_name("overlapped.py"))
SB3 = "Stable-Baselines3"
IN_TURN = "ours, one after the other"
DEFAULT = "ours, with the network of most environments"
PRODUCTS = "its matrix products alone"
ENOUGH = 0.8  # of the limit, where a goal is beyond it
# Memory of ours, its layers, the precision, and how many times as fast as PufferLib 3.0.0, which has an LSTM or none.
NETWORKS = {
    ("none", 1, "float32"): 2.5,
    ("LSTM", 1, "float32"): 1.3,
    ("LSTM", 1, "bfloat16"): 2.2,
    ("MinGRU", 1, "float32"): 2.5,
    ("MinGRU", 1, "bfloat16"): 2.5,
    ("MinGRU", 2, "bfloat16"): 2.5,
}
# Environments that have a network of their own; what gives PufferLib 3.0.0 as many agents, which has none for the last.
OWN_NETWORKS: dict[str, dict[str, Any] | None] = {
    "snake": {"num_envs": 4},
    "nmmo3": {"num_envs": 1, "num_players": 256},
    "moba": {"num_envs": 128},
    "tactical": None,
}
LOOPS = {64: 12, 1024: 45, 4096: 160}  # microseconds of a step of so many agents


def rows(us: Side, peer: Side | None, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Every row, and how its contestants are measured."""
    for memory in ("none", "LSTM"):
        overrides = {"policy.memory": memory}
        calls: dict[str, Measure] = {
            OURS: functools.partial(us.ask, "ours", "breakout", overrides, seconds),
            LIMIT: functools.partial(us.ask, "products", "breakout", overrides, seconds / 4),
        }
        yield Row(f"breakout with its own settings, memory: {memory}", "us", limit=PRODUCTS), calls
    for env, frameskip in (("breakout", 4), ("pong", 8)):
        for (memory, layers, precision), least in NETWORKS.items():
            same = settings(env, frameskip, memory, layers, precision)
            calls = {OURS: functools.partial(us.ask, "ours", env, same, seconds)}
            if peer:
                calls[PUFFER] = functools.partial(peer.ask, "puffer", env, frameskip, memory != "none", seconds)
            calls[LIMIT] = functools.partial(us.ask, "products", env, same, seconds / 4)
            kind = f"{layers} layers of {memory}" if layers > 1 else memory
            what = f"{env}, 1024 agents, memory: {kind}, {precision}"
            yield Row(what, "us", ratios={PUFFER: least}, limit=PRODUCTS, share_of_limit=ENOUGH), calls
    yield from own_network_rows(us, peer, seconds)
    yield from sb3_rows(us, peer, seconds)
    for agents, most in LOOPS.items():
        calls = {OURS: functools.partial(us.ask, "ours_loop", agents, seconds)}
        if peer:
            calls[PUFFER] = functools.partial(peer.ask, "puffer_loop", agents, seconds)
        calls[LIMIT] = functools.partial(us.ask, "copies_of_a_loop", agents, seconds / 4)
        what = f"rollout loop, a step of {agents} free agents"
        yield Row(what, "us", most, {PUFFER: 8}, limit="copies of what a step makes"), calls


def own_network_rows(us: Side, peer: Side | None, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """The networks that were written for one environment, beside that of all others."""
    for env, keywords in OWN_NETWORKS.items():
        same = {"train.update_epochs": 1, "train.optimizer": "adam", "train.num_threads": 1, "train.act_threads": 1}
        calls: dict[str, Measure] = {
            OURS: functools.partial(us.ask, "ours", env, same, seconds),
            DEFAULT: functools.partial(us.ask, "ours", env, {**same, "policy.name": "Default"}, seconds),
        }
        if peer and keywords:
            train = load_config(env).train
            calls[PUFFER] = functools.partial(
                peer.ask, "puffer_own", env, keywords, train.horizon, train.minibatch_size, seconds
            )
        calls[LIMIT] = functools.partial(us.ask, "products", env, same, seconds / 4)
        goals = {PUFFER: 1.0} if keywords else {}
        yield Row(f"{env}, the network written for it", "us", ratios=goals, limit=PRODUCTS), calls


def sb3_rows(us: Side, peer: Side | None, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Eight environments of Gymnasium, as Stable-Baselines3 trains them."""
    calls: dict[str, Measure] = {OURS: functools.partial(us.ask, "ours_cartpole", seconds)}
    if peer:
        calls[SB3] = functools.partial(peer.ask, "sb3_cartpole", seconds)
    calls[LIMIT] = functools.partial(us.ask, "bare_cartpole", seconds / 2)
    limit = "the bare environments, and matrix products"
    yield Row("CartPole-v1, 8 environments, one process", "us", ratios={SB3: 3}, limit=limit), calls
    for precision, least in (("float32", None), ("bfloat16", 2.2)):
        calls = {OURS: functools.partial(us.ask, "ours_atari", precision, seconds)}
        if peer:
            calls[SB3] = functools.partial(peer.ask, "sb3_atari", seconds)
        calls[LIMIT] = functools.partial(us.ask, "bare_atari", precision, seconds)
        goals, limit = {SB3: least} if least else {}, "two games at a time, and the network's passes"
        yield Row(f"Atari Pong, 8 games, 2 workers, {precision}", "us", ratios=goals, limit=limit), calls


def overlap_rows(us: Side, seconds: float) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """``train.overlap`` beside the same run without."""
    runs = {
        "waits": "8 environments of 0.5 ms, a policy of 1 ms",
        "pong": "Atari Pong, 8 games, 2 workers, bfloat16",
    }
    for name, what in runs.items():
        for overlap in ("envs", "learning"):
            calls: dict[str, Measure] = {
                contestant: functools.partial(us.ask, "overlapped", name, way, seconds)
                for contestant, way in ((OURS, overlap), (IN_TURN, "none"))
            }
            calls[LIMIT] = functools.partial(us.ask, "longer_part", name, overlap, seconds / 2)
            yield Row(f"{what}, overlap: {overlap}", "us", limit="the longer part of what overlaps"), calls


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    command = parser(__doc__, "train", minutes=12, rounds=7, seconds=2.0)
    command.add_argument("--peer-python", help="interpreter of an environment that has PufferLib 3.0.0")
    options = command.parse_args()
    rounds, seconds = (2, 0.01) if options.quick else (options.rounds, options.seconds)
    us, peer = Side(sys.executable, SCRIPT), Side(options.peer_python, SCRIPT) if options.peer_python else None
    overlapped = Side(sys.executable, OVERLAPPED)
    every = itertools.chain(rows(us, peer, seconds), overlap_rows(overlapped, seconds))
    run(options, rounds, every, us, peer, overlapped, seconds=seconds)


if __name__ == "__main__":
    main()
