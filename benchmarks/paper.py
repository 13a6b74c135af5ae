"""Tables 1 and 2 of the PufferLib paper (Suarez 2024), measured on this machine.

    docker compose run --rm test python benchmarks/paper.py      # everything, since this image has all packages
    docker compose run --rm tank python benchmarks/paper.py      # the environments of this image; lists the others
    python benchmarks/paper.py --only crafter minigrid
    python benchmarks/paper.py --quick --only CartPole           # quick check

Table 1 measures a single environment in one process: steps per second of CPU time with emulation, the share of time in
resets, the standard deviation of the step time, and the time that emulation adds to the bare environment. Both play the
same games in turns.

Table 2 measures several environments on all cores. It compares our Serial, Multiprocessing, and Multiprocessing with
batches of the first half, with the vector classes of Gymnasium and Stable-Baselines3. The fastest of our three is
"ours". The limit is two processes with half of the bare environments each. All figures are medians over the rounds.

Also writes alone.json and vectorized.json into benchmarks/results/.
"""

import contextlib
import dataclasses
import itertools
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import binding_contestants
from binding_contestants import choices, made
from report import ASYNC, BARE_LOOP, DUMMY, LIMIT, SUBPROC, SYNC, Row, figure
from sides import Sides, halved, serve
from turns import Measure, begin, finish, measure, parser
from worlds import WORLD, world_loop

SQUARED = str(Path(__file__).with_name("squared.py")) + ":Squared"
SERIAL, ALL, FIRST = "Serial", "2 workers", "2 workers, batches of the first half"
LAYOUTS = (SERIAL, ALL, FIRST)
PEERS = {SYNC: "sync", ASYNC: "async", DUMMY: "dummy", SUBPROC: "subproc"}
HALVES = "two processes, each with half of the bare ones"
NATIVE_HALVES = "two processes, each with half of the games"


@dataclass(frozen=True)
class Entry:
    """One line of both tables.

    Attributes:
        title: Name in the paper, or of its replacement.
        name: Environment name for ``pufferlib.make``.
        num_envs: Number of environments in Table 2.
        paper: Figures of Table 1 in the paper: steps per second, percent in resets, deviation, percent added. Empty if
            the paper has none.
        longer: Factor on the measuring time, so that each measurement has about the same number of resets.
        batches_itself: Whether the environment is a batch of C games, without emulation.
    """

    title: str
    name: str
    num_envs: int
    paper: str = ""
    longer: int = 1
    batches_itself: bool = False


ENTRIES = (
    Entry("Neural MMO 2", WORLD, 4, "2400 / 68 / 59 / 7.2", longer=4),
    Entry("NetHack", "nethack/NetHackScore-v0", 32, "39k / 0.63 / 45.3 / 64"),
    Entry("MiniHack", "minihack/MiniHack-River-v0", 32, "11k / 2.1 / 28 / 4.9"),
    Entry("Pokemon Red's stand-in", "pokemon_red/practice", 8, "700 / 0 / 43 / 0.08"),
    Entry("CartPole", "classic/CartPole-v1", 32, "270k / 18 / 37 / 13"),
    Entry("Squared, Python", SQUARED, 32, "240k / 55 / 53 / 14"),
    Entry("Squared, Ocean's C", "squared", 32, batches_itself=True),
    Entry("Procgen Bigfish", "procgen/bigfish", 32, "25k / 0.36 / 14 / 2.5", batches_itself=True),
    Entry("Atari Breakout", "atari/breakout", 8, "1.2k / 54 / 4.3 / 0.16", longer=2),
    Entry("Crafter", "crafter/CrafterReward-v1", 8, "320 / 80 / 26 / 0.04", longer=4),
    Entry("MiniGrid", "minigrid/MiniGrid-DoorKey-8x8-v0", 32, "16k / 4.5 / 8.1 / 2.7"),
)


LONE = {"steps_per_s": "steps/s", "resets": "% in resets", "deviation": "% deviation", "added": "% emulation adds"}


def lone_table(entries: Mapping[Entry, str], sides: Sides, rounds: int) -> list[Row]:
    """Measure Table 1 and print each line when it is done.

    Args:
        entries: Entries, each with the reason why it cannot be created, or "".
        sides: Processes that measure.
        rounds: Number of rounds.
    """
    print(f"| Table 1 | {' | '.join(LONE.values())} | in the paper |\n{'|---' * 6}|", flush=True)
    done = []
    for entry, skipped in entries.items():
        notes = {"name": shown(entry.name), "paper": entry.paper}
        line = Row(entry.title, "", skipped=skipped, notes=notes)
        if not skipped:
            measure_alone(entry, line, sides, rounds)
        texts = [figure(line.median(key)) if key in line.figures else "-" for key in LONE]
        print(f"| {line.what} | {line.skipped or ' | '.join(texts)} | {entry.paper} |", flush=True)
        done.append(line)
    return done


def measure_alone(entry: Entry, line: Row, sides: Sides, rounds: int) -> None:
    """Measure a line of Table 1, in turns with the bare environment."""
    name, seconds = entry.name, entry.longer * sides.seconds
    added_s = 2 * sides.seconds  # both play the same games, so few resets are enough
    adds = sides.ask("added", "emulated", name, 1, added_s)
    if entry.batches_itself:
        adds = sides.ask("added_to_batch", name, 1, added_s)
    elif name == WORLD:
        adds = sides.ask("world_added", added_s)
    for _ in range(rounds):
        played = sides.ask("alone", name, seconds)() or {}
        for key, value in {**played, "added": None if name == "squared" else adds()}.items():
            if value is not None:
                line.figures.setdefault(key, []).append(value)
    if not line.figures:
        line.skipped = "could not be measured; the error is above"


def missing(entry: Entry, sides: Sides) -> str:
    """Return the reason why an environment cannot be created, or ""."""
    reason = sides.ask("why_missing", entry.name)()
    return "could not be made; the error is above" if reason is None else str(reason)


def rows(entries: Mapping[Entry, str], sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield every row of Table 2 with the measurements of its contestants. ``entries`` are as in ``lone_table``."""
    for entry, skipped in entries.items():
        what = f"{entry.title}: a step, {entry.num_envs} of {shown(entry.name)}"
        if skipped:
            yield Row(what, "us", skipped=skipped), {}
        elif entry.name == WORLD:
            yield world_row(what, entry, sides)
        else:
            yield vectorized_row(what, entry, sides)


def vectorized_row(what: str, entry: Entry, sides: Sides) -> tuple[Row, dict[str, Measure]]:
    """Return the row of an environment that every library supports."""
    name, envs, seconds = entry.name, entry.num_envs, entry.longer * sides.seconds
    half = "puffer" if entry.batches_itself else "bare"
    halves = sides.both("step", half, name, envs // 2, 0, envs // 2, seconds)
    contestants = {SERIAL: ("puffer", 0, envs), ALL: ("puffer", 2, envs), FIRST: ("puffer", 2, envs // 2)}
    contestants |= {peer: (library, 0, envs) for peer, library in PEERS.items()}
    calls = {
        side: sides.ask("step", library, name, envs, workers, batch, seconds)
        for side, (library, workers, batch) in contestants.items()
    }
    limit = NATIVE_HALVES if entry.batches_itself else HALVES
    row = Row(what, "us", None, dict.fromkeys(PEERS, 1.0), limit)
    return row, {**calls, LIMIT: lambda: halved(halves())}


def world_row(what: str, entry: Entry, sides: Sides) -> tuple[Row, dict[str, Measure]]:
    """Return the row of a multi-agent environment, which Gymnasium and SB3 cannot vectorize."""
    worlds, seconds = entry.num_envs, entry.longer * sides.seconds
    layouts = {SERIAL: (0, worlds), ALL: (2, worlds), FIRST: (2, worlds // 2)}
    calls = {layout: sides.ask("world_step", *sizes, seconds) for layout, sizes in layouts.items()}
    halves = sides.both("world_loop", worlds // 2, seconds)
    calls[BARE_LOOP] = sides.ask("world_loop", worlds, seconds)
    return Row(what, "us", None, {BARE_LOOP: 1.0}, HALVES), {**calls, LIMIT: lambda: halved(halves())}


def shown(name: str) -> str:
    """Return the name of an environment, with a relative path for a file."""
    return os.path.relpath(name, Path(__file__).parent.parent) if name == SQUARED else name


def chosen(only: Iterable[str]) -> list[Entry]:
    """Return the entries whose title or name contains one of ``only``."""
    parts = [part.lower() for part in only]
    return [entry for entry in ENTRIES if any(part in f"{entry.title} {entry.name}".lower() for part in parts)]


def why_missing(name: str) -> str:
    """Return which package of this environment is missing and how to install it, or "" if nothing is missing."""
    try:
        env, _ = made(name, 0)
    except ImportError as error:
        return str(error)
    env.close()
    return ""


def alone(name: str, seconds: float) -> dict[str, float | None]:
    """Step one environment for this CPU time, and until two episodes have ended, but at most five times as long.

    Returns:
        ``steps_per_s``, agent-steps per second. ``resets``, the share of ``reset`` in the time of complete episodes in
        percent, or None if the environment resets itself. ``deviation``, the standard deviation of the step time in
        percent of its mean.
    """
    env, first = made(name, 0)
    is_emulated = bool(env.emulated)
    with contextlib.closing(env):
        first()
        actions = itertools.cycle(choices(env.single_action_space, 512, env.num_agents, is_loop=env.num_agents == 1))
        steps: list[float] = []
        resets: list[tuple[int, float]] = []  # number of steps before, and duration
        agents, start = 0, time.thread_time()
        while (spent := time.thread_time() - start) < seconds or (len(resets) < 2 and spent < 5 * seconds):
            if is_emulated and env.done:
                resets.append((len(steps), timed(env.reset)))
            row = next(actions)
            agents += int(env.masks.sum())
            steps.append(timed(env.step, row[0] if is_emulated and env.num_agents == 1 else row))
    return {
        "steps_per_s": agents / (sum(steps) + sum(took for _, took in resets)),
        "resets": in_resets(steps, resets) if is_emulated else None,
        "deviation": 100 * statistics.pstdev(steps) / statistics.fmean(steps),
    }


def in_resets(steps: list[float], resets: list[tuple[int, float]]) -> float:
    """Return the share of resets in the time of complete episodes in percent, or 0 if no episode ended."""
    if not resets:
        return 0.0
    spent = sum(took for _, took in resets)
    return 100 * spent / (spent + sum(steps[: resets[-1][0]]))


def timed(call: Any, *args: Any) -> float:
    """Return the CPU time of a call in seconds, without the cost of reading the clock."""
    start = time.thread_time()
    call(*args)
    return max(time.thread_time() - start - CLOCK_S, 1e-9)


def clock_s() -> float:
    """Return the time between two readings of the clock in seconds."""
    return statistics.median(-(time.thread_time() - time.thread_time()) for _ in range(1000))


CLOCK_S = clock_s()
CASES = (*binding_contestants.CASES, why_missing, alone, world_loop)


def main() -> None:
    """Parse the command line, measure, print the tables and write the JSON."""
    if "--serve" in sys.argv:
        return serve({case.__name__: case for case in CASES})
    command = parser(__doc__, "alone", minutes=9, rounds=7, seconds=0.5)  # of Table 2; Table 1 takes three more minutes
    options = command.parse_args()
    entries = chosen(options.only)
    if not entries:
        command.error(f"--only: expected parts of {', '.join(entry.title for entry in ENTRIES)}, got {options.only}")
    if options.quick:
        options.rounds, options.seconds = 1, 0.03
        entries = [dataclasses.replace(entry, num_envs=4) for entry in entries]
    before = begin(options)
    with Sides(options.seconds, __file__) as sides:
        reasons = {entry: missing(entry, sides) for entry in entries}
        lone = lone_table(reasons, sides, min(options.rounds, 3))
        print("\nTable 2", flush=True)
        vectorized = measure(rows(reasons, sides), [""], options.rounds, options.minutes, LAYOUTS, ours=options.ours)
    return finish(options, before, {"alone": lone, "vectorized": vectorized})


if __name__ == "__main__":
    main()
