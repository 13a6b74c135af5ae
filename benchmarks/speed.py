"""Published figures: stores measurements of benchmarks in docs/speed/, and fills the tables of the pages.

    python benchmarks/engine.py --keep      # measure, store the figures and fill the pages (works for each benchmark)
    python benchmarks/speed.py FILE...      # store JSON files that benchmarks wrote elsewhere, such as in a container
    python benchmarks/speed.py              # fill the pages from the stored figures
    python benchmarks/speed.py --check      # exit with 1 if the pages are out of date
    python benchmarks/speed.py --stale      # list the figures whose measured code has changed since

docs/speed/NAME.json has the rows of benchmark NAME, each with the commit, the date and the machine of its figures. The
table of NAME is between two markers in docs/speed.md. Some rows also appear in README.md.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import LIMIT, OURS, PUFFER, ROOT, SB3, SUBPROC, SYNC, Stored, figure, git, goal, verdict
from variance_plot import WAYS, plot, shares

PAGES = (ROOT / "docs" / "speed.md", ROOT / "README.md")
KEPT, CURVES = ROOT / "docs" / "speed", ROOT / "docs" / "curves"
SOURCE = ("commit", "date", "cpu", "cpus")  # fields that say where a row was measured
STORED = ("what", "unit", "most", "ratios", "limit", "notes", "medians", "times")
MARKED = r"(?s)(<!-- {name}: made by benchmarks/speed\.py -->\n).*?(<!-- end of {name} -->)"

Rows = Sequence[Stored]
Lines = list[str]


def main() -> int:
    """Store the given files and fill the pages, or check the pages."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help=f"JSON of benchmarks: {', '.join(PARTS)}")
    parser.add_argument("--check", action="store_true", help="write nothing, exit with 1 if a page is out of date")
    parser.add_argument("--stale", action="store_true", help="write nothing, and list the figures of older code")
    options = parser.parse_args()
    for path in options.files:
        if path.stem not in PARTS:
            parser.error(f"{path}: the name must be one of {', '.join(f'{part}.json' for part in PARTS)}")
        keep(path.stem, json.loads(path.read_text()))
    if options.stale:
        print("\n".join(stale()))
    return 0 if options.stale else fill_pages(is_check=options.check)


def keep(name: str, measured: Mapping[str, Any]) -> None:
    """Replace the stored rows that were measured again. A full run also deletes rows that no longer exist."""
    source = {key: measured["machine"][key] for key in SOURCE}
    source["commit"] = source["commit"] or git("rev-parse", "--short=10", "HEAD")
    new = [{**{key: row[key] for key in STORED}, **source} for row in measured["rows"] if row["medians"]]
    names, known = {row["what"] for row in new}, {row["what"] for row in measured["rows"]}
    old = [row for row in kept(name) if row["what"] in known or not measured["is_whole"]]
    for row in new:
        lost = {key for each in old if each["what"] == row["what"] for key in each["medians"]} - row["medians"].keys()
        if lost:
            print(f"{name}: {row['what']}: has no figures of {', '.join(sorted(lost))} any more", file=sys.stderr)
    rows = [row for row in old if row["what"] not in names] + new
    KEPT.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(rounded(row), ensure_ascii=False) for row in rows)
    (KEPT / f"{name}.json").write_text(f"[\n{lines}\n]\n")
    if name == "variance":
        plot(KEPT / "variance.png", shares(rows))


def kept(name: str) -> list[dict[str, Any]]:
    """Return the stored rows of a benchmark."""
    path = KEPT / f"{name}.json"
    rows: list[dict[str, Any]] = json.loads(path.read_text()) if path.exists() else []
    return rows


def rounded(value: Any) -> Any:
    """Return ``value`` with all floats rounded to five significant digits."""
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return float(f"{value:.5g}") if isinstance(value, float) else value


def fill_pages(is_check: bool = False) -> int:
    """Write every table into its page and return 0, or only compare and return 1 if a page differs."""
    differs = 0
    for page in PAGES:
        text = page.read_text()
        filled = with_tables(text)
        differs |= int(text != filled)
        if text != filled and is_check:
            print(f"{page}: differs from docs/speed; run: python benchmarks/speed.py", file=sys.stderr)
        elif text != filled:
            page.write_text(filled)
            print(f"written to {page}")
    return differs if is_check else 0


def with_tables(page: str) -> str:
    """Return the page with the current table between each pair of markers."""
    for name in re.findall(r"<!-- (\w+): made by benchmarks/speed\.py -->", page):
        if name != "summary" and name not in PARTS:
            raise SystemExit(f"expected the marker of one of {', '.join(PARTS)} or summary, got {name}")
        rows = [row for row, *_ in summary_rows()] if name == "summary" else kept(name)
        table = summary() if name == "summary" else PARTS[name].table(rows)
        text = "\n".join([measured_on(rows), "", *table])
        marked = re.search(MARKED.format(name=name), page)
        if marked is None:
            raise SystemExit(f"expected the marker <!-- end of {name} --> after the marker of {name}, found none")
        page = page[: marked.end(1)] + text + "\n" + page[marked.start(2) :]
    return page


def measured_on(rows: Rows) -> str:
    """Describe the machines, dates and commits of rows, the most frequent first."""
    sources = [tuple(row[key] for key in SOURCE) for row in rows]
    if not sources:
        return "Not measured yet."
    counted = sorted(set(sources), key=lambda source: (-sources.count(source), source))
    parts = [f"{cpu}, {cpus} cores, {date}, commit {commit}" for commit, date, cpu, cpus in counted]
    if len(parts) > 1:
        numbers = [sources.count(source) for source in counted]
        parts = [f"{part} ({n} row{'s' * (n > 1)})" for part, n in zip(parts, numbers, strict=True)]
    return f"Measured on {', and on '.join(parts)}."


def table(header: str, rows: Iterable[Sequence[str]]) -> Lines:
    """Return the lines of a Markdown table."""
    rule = "| --- " * header.strip("|").count("|") + "| --- |"
    return [header, rule, *(f"| {' | '.join(cells)} |" for cells in rows)]


def timed(rows: Rows) -> Lines:
    """Return the table of costs with goals. Lower is better."""
    header = "| What | Goal | Ours | Others, and how many times ours | Limit | Reached |"
    return table(header, [timed_cells(row) for row in rows])


def timed_cells(row: Stored) -> list[str]:
    """Return the cells of one row of ``timed``."""
    medians = row["medians"]
    others = [name for name in medians if name not in (OURS, LIMIT)]
    ours = f"{figure(medians[OURS])} {row['unit']}" if OURS in medians else "not measured"
    limit = f"{figure(medians[LIMIT])}: {row['limit']}" if LIMIT in medians else ""
    reached = verdict(row).replace("NO", "**no**")
    return [row["what"], goal(row), ours, "<br>".join(other(row, name) for name in others), limit, reached]


def other(row: Stored, name: str) -> str:
    """Format the figure of a contestant and its ratio to ours. Percentages have no ratio, because ours may be 0."""
    ratio = f" ({figure(row['times'][name])} ×)" if row["unit"] != "%" and name in row["times"] else ""
    return f"{name} {figure(row['medians'][name])}{ratio}"


def ocean(rows: Rows) -> Lines:
    """Return the table of environments in C, with steps per second and the gain of a second thread."""
    by_name = {row["what"]: row for row in rows}
    cells = []
    for name in dict.fromkeys(what.partition(",")[0] for what in by_name):
        alone, shared = by_name.get(f"{name}, 1024 agents"), by_name.get(f"{name}, two threads")
        ours = f"{figure(1e3 / alone['medians'][OURS])} million" if alone else ""
        peer = alone["medians"].get(PUFFER) if alone else None
        others = f"{figure(1e3 / peer)} ({figure(alone['times'][PUFFER])} ×)" if alone and peer else ""
        threads = ""
        if shared:
            one, limit = shared["times"]["one thread"], shared["times"][LIMIT]
            threads = f"{figure(one)} × ({figure(one / limit)} ×)"
        cells.append([name, ours, others, threads])
    header = f"| Environment | Agent-steps per second | {PUFFER}, millions | Two threads (two processes) |"
    return table(header, cells)


def speeds(rows: Rows) -> Lines:
    """Return a table of steps per second with one contestant per row."""
    return table("| Settings | Steps/s |", [[row["what"], rate(*row["medians"].values(), row["unit"])] for row in rows])


def alone(rows: Rows) -> Lines:
    """Return Table 1 of the paper."""
    header = "| Environment | Steps per second | In resets | Deviation of a step | Emulation adds | In the paper |"
    cells = []
    for row in rows:
        found = row["medians"]
        shares = [f"{figure(found[key])} %" if key in found else "-" for key in ("resets", "deviation", "added")]
        name, speed = f"{row['what']} (`{row['notes']['name']}`)", figure(found["steps_per_s"])
        cells.append([name, speed, *shares, row["notes"]["paper"]])
    return table(header, cells)


def vectorized(rows: Rows) -> Lines:
    """Return Table 2 of the paper, with steps per second. Peers have a figure for one process and one for several."""
    header = "| Environments | Ours | Gymnasium | SB3 | Limit | How many times as fast |"
    peers = ((SYNC, "AsyncVectorEnv"), ("SB3 DummyVecEnv", SUBPROC))
    cells = []
    for row in rows:
        speed = {name: figure(1e6 / us) for name, us in row["medians"].items()}
        layouts = [name for name, us in row["medians"].items() if name != OURS and us == row["medians"][OURS]]
        ratio, best = min((row["times"][name], name) for name in row["ratios"] if name in row["times"])
        pairs = [" / ".join(speed.get(name, "-") for name in pair) for pair in peers]
        what = row["what"].replace(": a step,", ",")
        ours, limit = f"{speed[OURS]}, {layouts[0]}", speed.get(LIMIT, "-")
        cells.append([what, ours, *pairs, limit, f"{figure(ratio)} × {best}"])
    return table(header, cells)


def variance(rows: Rows) -> Lines:
    """Return the table of unequal steps, in percent of the limit."""
    header = f"| Environment | {' | '.join(name for name, _ in WAYS.values())} |"
    found = shares(rows)
    return table(header, [[what, *(f"{ways[way]:.0f}" for way in WAYS)] for what, ways in found.items()])


@dataclass(frozen=True)
class Part:
    """Benchmark whose figures are published.

    Attributes:
        command: Command that measures it again, without ``python benchmarks/``.
        code: Files and folders of this repository that it measures.
        table: Function that returns its table.
    """

    command: str
    code: tuple[str, ...]
    table: Callable[[Rows], Lines] = timed


VECTOR = ("pufferlib/vector", "pufferlib/vectorization.py", "pufferlib/buffers.py", "pufferlib/env.py")
EMULATION = ("pufferlib/emulation", "pufferlib/actions.py", "pufferlib/spaces.py")
NATIVE = ("pufferlib/native", "pufferlib/ocean/*.py*", "pufferlib/ocean/*/*.h", "pufferlib/ocean/*/*.c")
TRAINER = ("pufferlib/training", "pufferlib/settings", "pufferlib/models")
TRAIN = (*TRAINER, "pufferlib/ocean/breakout", "pufferlib/ocean/pong", *NATIVE)
PAPER = ("nmmo", "nethack", "minihack", "pokemon_red", "classic", "procgen", "atari", "crafter", "minigrid")
BINDINGS = ("minigrid", "crafter", "atari", "nethack", "classic", "box2d", "mujoco", "procgen", "nmmo")
PAPER_CODE = (*VECTOR, *EMULATION, *(f"bindings/{name}" for name in PAPER))
PEERS = "--peer-python ~/peer/bin/python"
PARTS = {
    "engine": Part(f"engine.py {PEERS}", (*VECTOR, *EMULATION, *NATIVE, "bindings/atari", "pufferlib/pytorch.py")),
    "bindings": Part("bindings.py", (*VECTOR, *EMULATION, *(f"bindings/{name}" for name in BINDINGS))),
    "ocean": Part(f"ocean.py {PEERS}", NATIVE, ocean),
    "train": Part(f"train.py {PEERS}", TRAIN),
    "gpu": Part("gpu.py --out gpu.json && python benchmarks/speed.py gpu.json", TRAIN, speeds),
    "bars": Part(f"bars.py {PEERS}", TRAIN),
    "pools": Part(f"pools.py {PEERS}", ("pufferlib/envpool", "pufferlib/native", "bindings/atari")),
    "frameworks": Part("frameworks.py", ("pufferlib/frameworks", "examples/cleanrl", *VECTOR, *EMULATION)),
    "wrappers": Part("wrappers.py", ("pufferlib/vector", "pufferlib/wrappers", "pufferlib/ocean/cartpole")),
    "acting": Part("acting.py", ("pufferlib/models", "pufferlib/native")),
    "export": Part("export.py", ("pufferlib/exports", "pufferlib/models", "pufferlib/native")),
    "loggers": Part("loggers.py", ("pufferlib/training/loggers", "pufferlib/training/trainer.py")),
    "processes": Part("processes.py", ("pufferlib/training/distributed", "pufferlib/training/trainer.py")),
    "alone": Part("paper.py", PAPER_CODE, alone),
    "vectorized": Part("paper.py", PAPER_CODE, vectorized),
    "variance": Part("variance.py", VECTOR, variance),
}

# Rows of README.md: name in README.md, benchmark, name of the row, other contestants, and whether to show a rate.
SUMMARY = (
    ("PPO on `breakout`, 1,024 games", "train", "breakout, 1024 agents, memory: none, float32", (PUFFER,), True),
    (
        "The same with a MinGRU memory, in bfloat16",
        "train",
        "breakout, 1024 agents, memory: MinGRU, bfloat16",
        (PUFFER,),
        True,
    ),
    ("PPO on Atari Pong, 8 games", "train", "Atari Pong, 8 games, 2 workers, float32", (SB3,), True),
    ("`squared`, 1,024 games, one core", "ocean", "squared, 1024 agents", (PUFFER,), True),
    ("`pong`, 1,024 games, one core, 8 frames a step", "ocean", "pong, 1024 agents", (PUFFER,), True),
    ("`breakout`, 1,024 games, one core, 4 frames a step", "ocean", "breakout, 1024 agents", (PUFFER,), True),
    ("Step of 2 worker processes", "engine", "sync step, empty env, workers: 2", ("AsyncVectorEnv", PUFFER), False),
    ("Step of 8 workers on 2 cores", "engine", "sync step, empty env, workers: 8", ("AsyncVectorEnv", PUFFER), False),
    ("One of 64 environments in one process", "engine", "worker loop, 64 empty envs, of each", (SYNC, PUFFER), False),
    (
        "Emulation of 10 fields, 13 kB, in a batch",
        "engine",
        "emulation adds to a step in a batch: 10 leaves, 13 KB",
        (PUFFER,),
        False,
    ),
    ("The same, an environment alone", "engine", "emulation adds to a step alone: 10 leaves, 13 KB", (PUFFER,), False),
    ("CartPole-v1, 128 environments, 2 workers", "engine", "CartPole-v1, 128 envs, 2 workers", (SYNC, LIMIT), False),
    ("CPU time of 2 idle workers, per 10 s", "engine", "CPU of an idle vectorized env, per 10 s", (PUFFER,), False),
)


def summary_rows() -> list[tuple[Stored, str, tuple[str, ...], bool]]:
    """Return the stored rows of ``SUMMARY``, each with its name, other contestants, and whether to show a rate."""
    return [
        (row, name, others, is_rate)
        for name, part, what, others, is_rate in SUMMARY
        for row in kept(part)
        if row["what"] == what
    ]


def summary() -> Lines:
    """Return the table of README.md."""
    cells = []
    for row, name, others, is_rate in summary_rows():
        format_of = rate if is_rate else cost
        shown = {key: format_of(value, row["unit"]) for key, value in row["medians"].items()}
        beside = [f"{'without any layer' if key == LIMIT else key} {shown[key]}" for key in others if key in shown]
        cells.append([name, shown[OURS], ", ".join(beside)])
    return table("| What | pufferlib | Others |", cells)


def rate(value: float, unit: str) -> str:
    """Convert a time per step to steps per second."""
    speed = {"us": 1e6, "ns": 1e9}[unit] / value
    return f"{figure(speed / 1e6)} million/s" if speed >= 1e6 else f"{float(f'{speed:.3g}'):,.0f}/s"


def cost(value: float, unit: str) -> str:
    """Format a time."""
    return f"{figure(value)} {unit.replace('us', 'µs')}"


def uncommitted() -> str:
    """Return up to three files of code that differ from HEAD, or "" if none does."""
    changed = git("diff", "--name-only", "HEAD", "--", "pufferlib", "bindings", "benchmarks") or ""
    return ", ".join(changed.splitlines()[:3])


def stale() -> Lines:
    """Return a warning for each benchmark whose code has changed since, and one for all learning results."""
    found = []
    for name, part in PARTS.items():
        worst = max((changes(row, part.code) for row in kept(name)), default=(0, ""))
        keeps = "" if "speed.py" in part.command else " --keep"
        if worst[0]:
            found.append(f"docs/speed/{name}.json: {worst[1]}; measure again: python benchmarks/{part.command}{keeps}")
    changed = [record["env_name"] for record in records() if changes(record, rules_of(record["env_name"]))[0]]
    if changed:
        names = ", ".join(changed)
        found.append(
            f"docs/results.md: code has changed since the results of {names}; train, then benchmarks/learning.py"
        )
    return found


def records() -> list[dict[str, Any]]:
    """Return the stored learning results."""
    return [json.loads(path.read_text()) for path in sorted(CURVES.glob("*.json"))]


def rules_of(env_name: str) -> tuple[str, ...]:
    """Return the code of an environment, without the agent that ships with it."""
    binding, _, game = env_name.partition("/")
    return (f"bindings/{binding}" if game else f"pufferlib/ocean/{binding}", ":(exclude)*.safetensors")


def changes(source: Stored, code: Sequence[str]) -> tuple[int, str]:
    """Return the number of files of ``code`` that differ from the commit of a figure, and a message about them."""
    if git("rev-parse", "HEAD") is None:  # an archive without its history
        return 0, ""
    changed = git("diff", "--name-only", source["commit"], "--", *code)
    if changed is None:
        return 1 << 30, f"measured at {source['commit']}, which this clone does not have"
    files = changed.splitlines()
    return len(files), f"{len(files)} of the measured files have changed since {source['commit']} ({source['date']})"


if __name__ == "__main__":
    sys.exit(main())
