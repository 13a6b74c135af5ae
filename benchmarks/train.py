"""Time of PPO per agent-step, including rollouts and updates, compared with other libraries.

    python benchmarks/train.py                       # ours, and the matrix products alone as a limit
    python benchmarks/train.py --peer-python PATH    # also PufferLib 3.0.0, Stable-Baselines3; see requirements.txt
    python benchmarks/train.py --only LSTM           # some rows
    python benchmarks/train.py --quick               # quick check

All contestants of a row have the same network, agents, horizon, minibatch size and number of epochs. They use one CPU
thread, or two in the rows of Atari, and are measured in turns like in engine.py. Also writes
benchmarks/results/train.json.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import overlapped
import trainers
from report import LIMIT, OURS, PUFFER, SB3, Row
from sides import Sides
from turns import Measure, main

IN_TURN = "ours, one after the other"
DEFAULT = "ours, with the network of most environments"
PRODUCTS = "its matrix products alone"
# Our memory, layers and precision, and the required speedup over PufferLib 3.0.0, which has an LSTM or no memory.
NETWORKS = {
    ("none", 1, "float32"): 2.5,
    ("LSTM", 1, "float32"): 1.3,
    ("LSTM", 1, "bfloat16"): 2.2,
    ("MinGRU", 1, "float32"): 2.5,
    ("MinGRU", 1, "bfloat16"): 2.5,
    ("MinGRU", 2, "bfloat16"): 2.5,
}
# Environments with their own network, and the keywords that give PufferLib 3.0.0 the same number of agents. None means
# that PufferLib does not have the environment.
OWN_NETWORKS: dict[str, dict[str, Any] | None] = {
    "snake": {"num_envs": 4},
    "nmmo3": {"num_envs": 1, "num_players": 256},
    "moba": {"num_envs": 128},
    "tactical": None,
}
# Python environments that also exist in C.
IN_C = ("minigrid/MiniGrid-DoorKey-8x8-v0", "mujoco/HalfCheetah-v5")
WITHOUT_C = {
    "ours, in the Python environments": "environments",
    "ours, with torch's gradient steps": "gradient steps",
    "ours, with both": "both",
}
LOOPS = {64: 12, 1024: 45, 4096: 160}  # maximum microseconds of a step, by number of agents
Pairs = Iterator[tuple[Row, dict[str, Measure | None]]]


def rows(sides: Sides) -> Pairs:
    """Yield every row with the measurements of its contestants."""
    seconds = sides.seconds
    for memory in ("none", "LSTM"):
        own = {"policy.memory": memory}
        calls = {OURS: sides.ask("ours", "breakout", own, seconds), LIMIT: products(sides, "breakout", own)}
        yield Row(f"breakout with its own settings, memory: {memory}", "us", limit=PRODUCTS), calls
    for env, frameskip in (("breakout", 4), ("pong", 8)):
        for (memory, layers, precision), least in NETWORKS.items():
            same = trainers.settings(env, frameskip, memory, layers, precision)
            calls = {
                OURS: sides.ask("ours", env, same, seconds),
                PUFFER: sides.ask_peer("puffer", env, frameskip, memory != "none", seconds),
                LIMIT: products(sides, env, same),
            }
            kind = f"{layers} layers of {memory}" if layers > 1 else memory
            what = f"{env}, 1024 agents, memory: {kind}, {precision}"
            yield Row(what, "us", ratios={PUFFER: least}, limit=PRODUCTS), calls
    yield from own_network_rows(sides)
    yield from sb3_rows(sides)
    yield from c_rows(sides)
    for agents, most in LOOPS.items():
        calls = {
            OURS: sides.ask("ours_loop", agents, seconds),
            PUFFER: sides.ask_peer("puffer_loop", agents, seconds),
            LIMIT: sides.ask("copies_of_a_loop", agents, seconds / 4),
        }
        what = f"rollout loop, a step of {agents} free agents"
        yield Row(what, "us", most, {PUFFER: 8}, limit="copies of what a step makes"), calls
    yield from overlap_rows(sides)


def products(sides: Sides, env: str, overrides: dict[str, Any]) -> Measure:
    """Return the measurement of the matrix products alone."""
    return sides.ask("products", env, overrides, sides.seconds / 4)


def own_network_rows(sides: Sides) -> Pairs:
    """Yield rows of networks that were written for one environment, compared with the default network."""
    for env, keywords in OWN_NETWORKS.items():
        same = {"train.update_epochs": 1, "train.optimizer": "adam", "train.num_threads": 1, "train.act_threads": 1}
        batch = trainers.batch_of(env)
        calls = {
            OURS: sides.ask("ours", env, same, sides.seconds),
            DEFAULT: sides.ask("ours", env, {**same, "policy.name": "Default"}, sides.seconds),
            PUFFER: sides.ask_peer("puffer_own", env, keywords, *batch, sides.seconds) if keywords else None,
            LIMIT: products(sides, env, same),
        }
        goals = {PUFFER: 1.0} if keywords else {}
        yield Row(f"{env}, the network written for it", "us", ratios=goals, limit=PRODUCTS), calls


def sb3_rows(sides: Sides) -> Pairs:
    """Yield rows of training on eight Gymnasium environments, compared with Stable-Baselines3."""
    seconds = sides.seconds
    limit = "the bare environments, and matrix products"
    for minibatch, epochs in ((256, 4), (64, 10)):
        calls = {
            OURS: sides.ask("ours_cartpole", minibatch, epochs, seconds),
            SB3: sides.ask_peer("sb3_cartpole", minibatch, epochs, seconds),
            LIMIT: sides.ask("bare_cartpole", minibatch, epochs, seconds / 2),
        }
        what = f"CartPole-v1, 8 environments, one process, {epochs} epochs with minibatches of {minibatch}"
        yield Row(what, "us", ratios={SB3: 3}, limit=limit), calls
    for precision, least in (("float32", None), ("bfloat16", 2.2)):
        calls = {
            OURS: sides.ask("ours_atari", precision, seconds),
            SB3: sides.ask_peer("sb3_atari", seconds),
            LIMIT: sides.ask("bare_atari", precision, seconds),
        }
        goals, limit = {SB3: least} if least else {}, "two games at a time, and the network's passes"
        yield Row(f"Atari Pong, 8 games, 2 workers, {precision}", "us", ratios=goals, limit=limit), calls


def c_rows(sides: Sides) -> Pairs:
    """Yield rows of training where environments and gradient steps run in C, compared with training without them."""
    own = {"vec.backend": "Serial", "train.num_threads": 1, "train.act_threads": 1}
    for env in IN_C:
        calls = {OURS: sides.ask("ours", env, own, sides.seconds)}
        for name, part in WITHOUT_C.items():
            calls[name] = sides.ask("ours_without_c", env, own, part, sides.seconds)
        yield Row(f"{env} with its own settings, one process", "us"), calls


def overlap_rows(sides: Sides) -> Pairs:
    """Yield rows of training with ``train.overlap``, compared with the same run without it."""
    runs = {
        "waits": "8 environments of 0.5 ms, a policy of 1 ms",
        "pong": "Atari Pong, 8 games, 2 workers, bfloat16",
    }
    for name, what in runs.items():
        for overlap in ("envs", "learning"):
            ways = {OURS: overlap, IN_TURN: "none"}
            calls = {key: sides.ask("overlapped", name, way, sides.seconds) for key, way in ways.items()}
            calls[LIMIT] = sides.ask("longer_part", name, overlap, sides.seconds / 2)
            yield Row(f"{what}, overlap: {overlap}", "us", limit="the longer part of what overlaps"), calls


if __name__ == "__main__":
    main(__doc__, __file__, rows, trainers.CASES + overlapped.CASES, minutes=12, rounds=7, seconds=2.0, quick=(2, 0.01))
