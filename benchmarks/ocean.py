"""Agent-steps per second of the C environments, through ``env.step``, on one core, and what a second thread adds.

A second is one of CPU time, which other programs do not use up; on an idle machine it is a second.
Each figure is the median of repeats that are interleaved over all cases, so that a disturbance of
the machine touches all of them. With ``--peer-python`` the same loop runs in another Python
environment, in turns with ours; only the ratio of two figures of one run means much.

The second table has steps of batches that cost one thread at least 50 us, in time that passes: by one thread, by two,
and, as the limit of this machine, by two processes with half of the games each.

    python benchmarks/ocean.py                       # every environment
    python benchmarks/ocean.py pong breakout --repeats 21
    python benchmarks/ocean.py --peer-python ~/peer/bin/python     # one that has PufferLib 3.0.0
    python benchmarks/ocean.py --pixels 84           # agents see pictures of 84 x 84 pixels
    python benchmarks/ocean.py --quick               # to see that it works
"""

import argparse
import functools
import importlib
import itertools
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import HEADER, LIMIT, OURS, RESULTS, Row, line, machine, write
from sides import Side, serve, us_per_call

AGENTS = (1, 64, 1024, 4096)
KEYWORDS = {  # those that the peer trains with
    "pong": {"frameskip": 8},
    "breakout": {"frameskip": 4},
    "snake": {"width": 640, "height": 360, "num_snakes": 256, "num_food": 4096},
}
OUR_KEYWORDS = {  # the peer's defaults
    "nmmo3": {
        **{"width": 512, "height": 512, "num_players": 1024, "num_enemies": 2048},
        **{"num_resources": 2048, "num_weapons": 1024, "num_gems": 512},
    },
}
ONE_THREAD, SHARED_US = "one thread", 50.0  # a step that takes as long is worth a second thread
PEER_KEYWORDS = {"connect4": {"report_interval": 10**9}}  # its report fails where no game has ended

envs: dict[tuple[str, int], object] = {}  # of this side


def rate(name: str, agents: int, seconds: float, pixels: int) -> float | None:
    """Agent-steps per second; None where this side has no such environment."""
    if (name, agents) not in envs:
        envs[name, agents] = make(name, agents, {"pixels": (pixels, pixels)} if pixels else {})
    env = envs[name, agents]
    return None if env is None else measure(env, seconds)


def make(name: str, agents: int, more: dict[str, object]) -> object:
    """The environment with this many agents in all; None where there is none of this name."""
    ocean = importlib.import_module("pufferlib.ocean")
    own = OUR_KEYWORDS if hasattr(ocean, "OceanEnv") else PEER_KEYWORDS
    keywords = {**KEYWORDS.get(name, {}), **own.get(name, {}), **more}
    try:
        creator = ocean.env_creator(f"puffer_{name}")
    except (KeyError, ImportError):
        return None
    players = int(creator(num_envs=1, **keywords).num_agents)
    env = creator(num_envs=max(1, agents // players), **keywords)
    env.reset(seed=1)
    return env


def random_actions(env: object) -> list[np.ndarray]:
    """Actions for 16 steps."""
    space = env.single_action_space
    shape = (16, env.num_agents, *space.shape)
    sizes = getattr(space, "nvec", getattr(space, "n", None))
    rng = np.random.default_rng(0)
    return list(rng.uniform(-1, 1, shape).astype(np.float32) if sizes is None else rng.integers(0, sizes, shape))


@functools.lru_cache(maxsize=3)
def stepper(name: str, games: int, threads: int) -> Callable[[], object]:
    """Steps ``games`` games of ours once, with random actions; kept while its row is measured."""
    from pufferlib import ocean

    keywords = {**KEYWORDS.get(name, {}), **OUR_KEYWORDS.get(name, {})}
    env = ocean.OceanEnv(name, num_envs=games, num_threads=threads, **keywords)
    env.reset(seed=1)
    rows = itertools.cycle(random_actions(env))
    return lambda: env.step(next(rows))


def step_us(name: str, games: int, threads: int, seconds: float, clock: str = "perf_counter") -> float:
    """Microseconds of one such step."""
    return us_per_call(stepper(name, games, threads), seconds, getattr(time, clock))


def games_to_share(name: str) -> int:
    """The least power of two of games, from 2 on, whose step takes one thread 50 us at its best."""
    counts = (1 << k for k in range(1, 30))
    return next(games for games in counts if all(step_us(name, games, 1, 0.02) >= SHARED_US for _ in range(10)))


def measure(env: object, seconds: float) -> float:
    """Agent-steps per second of CPU time, with random actions, over about ``seconds``."""
    actions = random_actions(env)
    steps, start = 0, time.thread_time()
    while (elapsed := time.thread_time() - start) < seconds:
        for row in actions:
            env.step(row)
        steps += len(actions)
    return steps * env.num_agents / elapsed


def compare(names: list[str], pythons: dict[str, str], repeats: int, seconds: float, pixels: int) -> list[dict]:
    """A row for each environment, number of agents and side, with the median of its rates."""
    sides = {label: Side(python, __file__) for label, python in pythons.items()}
    rates: dict[tuple[str, int, str], list[float]] = {}
    for _ in range(repeats):
        for name in names:
            for agents in AGENTS[:2] if pixels else AGENTS:  # thousands of pictures fill the memory
                for label, side in sides.items():
                    found = side.ask("rate", name, agents, seconds, pixels)
                    if found is not None:
                        rates.setdefault((name, agents, label), []).append(found)
    for side in sides.values():
        side.close()
    return [
        {"env": name, "agents": agents, "side": label, "median": statistics.median(values), "best": max(values)}
        for (name, agents, label), values in rates.items()
    ]


def share(names: list[str], repeats: int, seconds: float) -> list[Row]:
    """A row for each environment: what two threads need for a step, beside one, and beside two processes."""
    first, second = (Side(sys.executable, __file__) for _ in range(2))
    rows = []
    print(f"\n{HEADER}", flush=True)
    for name in names:
        games = first.ask("games_to_share", name)
        limit = "two processes, each with half of the games"
        row = Row(f"{name}, {games:,} games", "us", ratios={ONE_THREAD: 1.8}, limit=limit)
        for _ in range(repeats):
            for contestant, threads in ((OURS, 2), (ONE_THREAD, 1)):
                row.figures.setdefault(contestant, []).append(first.ask("step_us", name, games, threads, seconds))
            for side in (first, second):
                side.post("step_us", name, games // 2, 1, seconds)
            row.figures.setdefault(LIMIT, []).append(max(side.answer() for side in (first, second)))
        rows.append(row)
        print(line(row), flush=True)
    first.close()
    second.close()
    return rows


def table(rows: list[dict]) -> str:
    """The medians, in millions, as a Markdown table; a third line per environment has the ratios."""
    columns = sorted({row["agents"] for row in rows})
    found = {(row["env"], row["side"], row["agents"]): row["median"] for row in rows}
    lines = [
        f"| million agent-steps/s | {' | '.join(f'{agents:,}' for agents in columns)} |",
        "|---" * (1 + len(columns)) + "|",
    ]
    for name in dict.fromkeys(row["env"] for row in rows):
        for side in dict.fromkeys(row["side"] for row in rows if row["env"] == name):
            cells = [
                f"{found[name, side, agents] / 1e6:.3g}" if (name, side, agents) in found else "" for agents in columns
            ]
            lines.append(f"| {name}, {side} | {' | '.join(cells)} |")
        if all((name, "peer", agents) in found for agents in columns):
            ratios = [f"{found[name, 'ours', agents] / found[name, 'peer', agents]:.2f}" for agents in columns]
            lines.append(f"| {name}, ratio | {' | '.join(ratios)} |")
    return "\n".join(lines)


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="environments; default: all")
    parser.add_argument("--peer-python", help="interpreter of an environment that has PufferLib 3.0.0")
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--seconds", type=float, default=0.1, help="of one repeat of one case")
    parser.add_argument("--pixels", type=int, default=0, help="side of pictures as observations; ours only")
    parser.add_argument("--quick", action="store_true", help="two short repeats: only to see that it works")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve({case.__name__: case for case in (rate, step_us, games_to_share)})
        return

    from pufferlib import ocean

    pythons = {OURS: sys.executable}
    if options.peer_python and options.pixels:
        parser.error("--pixels: the peer has no pictures")
    if options.peer_python:
        pythons["peer"] = options.peer_python
    names = options.names or list(ocean.names())
    for name in names:
        if name not in ocean.names():
            parser.error(f"{name} is no environment in C; those are {', '.join(ocean.names())}")
    repeats, seconds = (2, 0.02) if options.quick else (options.repeats, options.seconds)
    before = machine()
    rows = compare(names, pythons, repeats, seconds, options.pixels)
    print(table(rows))
    shared = [] if options.pixels else share(names, repeats, seconds)
    print(f"load {before['load_1min']:.1f} before, {os.getloadavg()[0]:.1f} after, {before['cpus']} CPUs")
    results = {"machine": before, "keywords": KEYWORDS, "pixels": options.pixels, "rows": rows}
    file = RESULTS / ("ocean_pixels.json" if options.pixels else "ocean.json")
    write(options.json or file, {**results, "threads": [row.as_dict() for row in shared]})


if __name__ == "__main__":
    main()
