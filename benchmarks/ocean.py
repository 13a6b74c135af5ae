"""Speed of the C environments through ``env.step`` on one core, and the gain of a second thread.

A step of one agent is measured in CPU time, which does not include the time of other programs. On an idle machine it
equals wall time. With ``--peer-python`` the same loop also runs in another Python environment, in turns with ours.

The rows "two threads" measure the wall time of batches whose step takes one thread at least 50 us. They compare two
threads with one thread, and with two processes that have half of the games each, which is the limit of the machine.

    python benchmarks/ocean.py                       # every environment, 1,024 agents
    python benchmarks/ocean.py --only pong breakout  # some environments or rows, such as --only "two threads"
    python benchmarks/ocean.py --agents 1 64 4096    # other numbers of agents
    python benchmarks/ocean.py --peer-python ~/peer/bin/python     # Python with PufferLib 3.0.0
    python benchmarks/ocean.py --pixels 84           # observations are images of 84 x 84 pixels
    python benchmarks/ocean.py --quick               # quick check

Also writes benchmarks/results/ocean.json.
"""

import functools
import importlib
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import LIMIT, OURS, PUFFER, Row
from sides import Sides, serve, us_per_call
from turns import Measure, begin, finish, measure, parser

KEYWORDS = {  # settings that the peer trains with
    "pong": {"frameskip": 8},
    "breakout": {"frameskip": 4},
    "snake": {"width": 640, "height": 360, "num_snakes": 256, "num_food": 4096},
}
OUR_KEYWORDS = {  # defaults of the peer
    "squared": {"size": 11},
    "nmmo3": {
        "width": 512,
        "height": 512,
        "num_players": 1024,
        "num_enemies": 2048,
        "num_resources": 2048,
        "num_weapons": 1024,
        "num_gems": 512,
    },
}
Pair = tuple[Row, dict[str, Measure | None]]
ONE_THREAD, SHARED_US = "one thread", 50.0  # from this time on, a step benefits from a second thread
PEER_KEYWORDS = {"connect4": {"report_interval": 10**9}}  # its report fails if no game has ended

envs: dict[tuple[str, int], Any] = {}  # environments of this process


def agent_ns(name: str, agents: int, pixels: int, seconds: float) -> float | None:
    """Return the CPU time of a step of one agent in nanoseconds, or None if this library lacks the environment."""
    if (name, agents) not in envs:
        envs[name, agents] = make(name, agents, {"pixels": (pixels, pixels)} if pixels else {})
    env = envs[name, agents]
    if env is None:
        return None
    actions = itertools.cycle(random_actions(env))
    return 1e3 * us_per_call(lambda: env.step(next(actions)), seconds, time.thread_time) / int(env.num_agents)


def make(name: str, agents: int, more: dict[str, object]) -> object:
    """Create an environment with this number of agents in total, or return None if the library lacks it."""
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
    """Return random actions for 16 steps."""
    space = env.single_action_space
    shape = (16, env.num_agents, *space.shape)
    sizes = getattr(space, "nvec", getattr(space, "n", None))
    rng = np.random.default_rng(0)
    return list(rng.uniform(-1, 1, shape).astype(np.float32) if sizes is None else rng.integers(0, sizes, shape))


@functools.lru_cache(maxsize=3)
def stepper(name: str, games: int, threads: int) -> Callable[[], object]:
    """Return a function that steps ``games`` of our games with random actions. Cached while its row is measured."""
    from pufferlib import ocean

    keywords = {**KEYWORDS.get(name, {}), **OUR_KEYWORDS.get(name, {})}
    env = ocean.OceanEnv(name, num_envs=games, num_threads=threads, **keywords)
    env.reset(seed=1)
    rows = itertools.cycle(random_actions(env))
    return lambda: env.step(next(rows))


def step_us(name: str, games: int, threads: int, seconds: float, clock: str = "perf_counter") -> float:
    """Return the time of one step of ``stepper`` in microseconds."""
    return us_per_call(stepper(name, games, threads), seconds, getattr(time, clock))


def games_to_share(name: str) -> int:
    """Return the smallest power of two of games, at least 2, for which a step on one thread never takes under 50 us."""
    counts = (1 << k for k in range(1, 30))
    return next(games for games in counts if all(step_us(name, games, 1, 0.02) >= SHARED_US for _ in range(10)))


def rows(sides: Sides, names: Sequence[str], numbers: Sequence[int], pixels: int) -> Iterator[Pair]:
    """Yield the rows of each environment with the measurements of their contestants."""
    for name in names:
        for agents in numbers:
            what = f"{name}, {agents} agents" + (f", {pixels} x {pixels} pixels" if pixels else "")
            case = ("agent_ns", name, agents, pixels, sides.seconds)
            yield Row(what, "ns"), {OURS: sides.ask(*case), PUFFER: None if pixels else sides.ask_peer(*case)}
        if not pixels:
            yield shared_row(sides, name)


def shared_row(sides: Sides, name: str) -> Pair:
    """Return the row of two threads that step the games of one environment."""
    row = Row(
        f"{name}, two threads", "us", ratios={ONE_THREAD: 1.8}, limit="two processes, each with half of the games"
    )

    def games() -> int:
        if "games" not in row.notes:
            row.notes["games"] = sides.ask("games_to_share", name)()
        return int(row.notes["games"])

    return row, {
        OURS: lambda: sides.ask("step_us", name, games(), 2, sides.seconds)(),
        ONE_THREAD: lambda: sides.ask("step_us", name, games(), 1, sides.seconds)(),
        LIMIT: lambda: sides.both("step_us", name, games() // 2, 1, sides.seconds)(),
    }


def main() -> None:
    """Parse the command line, measure, print the table and write the JSON."""
    if "--serve" in sys.argv:
        return serve({case.__name__: case for case in (agent_ns, step_us, games_to_share)})
    from pufferlib import ocean

    command = parser(__doc__, "ocean", minutes=6, rounds=11, seconds=0.1)
    command.add_argument("--agents", nargs="+", type=int, default=[1024], help="numbers of agents")
    command.add_argument("--pixels", type=int, default=0, help="side of image observations in pixels, ours only")
    options = command.parse_args()
    if options.quick:
        options.rounds, options.seconds = 2, 0.02
    if options.keep and (options.pixels or options.agents != [1024]):
        command.error("--keep publishes figures of 1024 agents without images: remove --agents and --pixels")
    before = begin(options)
    with Sides(options.seconds, __file__, options.peer_python) as sides:
        every = rows(sides, ocean.names(), options.agents, options.pixels)
        done = measure(every, options.only, options.rounds, options.minutes, ours=options.ours)
    return finish(options, before, {"ocean": done})


if __name__ == "__main__":
    main()
