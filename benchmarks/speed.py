"""The tables of docs/speed.md, from what the other benchmarks measured.

    python benchmarks/engine.py     # and bindings.py, ocean.py, train.py, bars.py, paper.py, variance.py
    python benchmarks/speed.py benchmarks/results/*.json    # keeps the medians; rows of other names stay as they are
    python benchmarks/speed.py --check                      # exit code 1 if the page is not what would be written

What is kept of a file NAME.json is docs/speed/NAME.json, and its table stands in the page under the heading NAME.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import LIMIT, OURS, Row, figure
from variance_plot import WAYS, plot, shares

DOCS = Path(__file__).parent.parent / "docs"
PAGE, KEPT = DOCS / "speed.md", DOCS / "speed"
VERDICTS = {"NO": "**no**"}
PARTS = ("engine", "bindings", "ocean", "train", "bars", "alone", "vectorized", "variance")


def main() -> int:
    """Keep the files that are named and write the tables, or check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, help=f"JSON of benchmarks: {', '.join(PARTS)}")
    parser.add_argument("--check", action="store_true", help="write nothing; whether the page is as it would be")
    options = parser.parse_args()
    for path in options.files:
        if path.stem not in PARTS:
            parser.error(f"{path}: the name must be one of {', '.join(f'{part}.json' for part in PARTS)}")
        keep(path)
    page = PAGE.read_text()
    wanted = page
    for part in PARTS:
        wanted = with_table(wanted, part, json.loads((KEPT / f"{part}.json").read_text()))
    if not options.check:
        PAGE.write_text(wanted)
        print(f"written to {PAGE}")
    return int(options.check and page != wanted)


def keep(path: Path) -> None:
    """Replace the kept rows that ``path`` has measured anew."""
    measured, kept = json.loads(path.read_text()), KEPT / path.name
    machine = {key: measured["machine"][key] for key in ("cpu", "cpus")}
    rows = CELLS[path.stem](measured) if path.stem in CELLS else timed_rows(measured["rows"])
    new = [{**row, **machine} for row in rows]
    names = {row["what"] for row in new}
    old = json.loads(kept.read_text()) if kept.exists() else []
    kept.parent.mkdir(exist_ok=True)
    rows = [row for row in old if row["what"] not in names] + new
    kept.write_text(json.dumps(rows, indent=1) + "\n")
    if path.stem == "variance":
        ways = {row["what"]: {way: float(row[way]) for way in WAYS if way in row} for row in rows}
        plot(kept.with_suffix(".png"), ways)


def timed_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells of what engine.py, bindings.py, train.py and bars.py measured: less is better."""
    return [timed_row(row) for row in rows if OURS in row["figures"]]


def timed_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of one of them."""
    row = Row(**{field.name: entry[field.name] for field in fields(Row)})
    others = [name for name in row.figures if name not in (OURS, LIMIT)]
    return {
        "what": row.what,
        "goal": row.goal(),
        "measured": f"{figure(row.median(OURS))} {row.unit}",
        "others": "; ".join(f"{name} {figure(row.median(name))}{times(row, name)}" for name in others),
        "limit": f"{figure(row.median(LIMIT))}: {row.limit}" if LIMIT in row.figures else "",
        "reached": VERDICTS.get(row.verdict(), row.verdict()),
    }


def times(row: Row, name: str) -> str:
    """Format the ratio to ours; nothing for shares, of which ours may be 0."""
    return "" if row.unit == "%" else f" ({figure(row.ratio(name))} ×)"


def ocean_rows(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells of what ocean.py measured: with 1,024 agents, where more is better, and what a second thread adds."""
    found = {(row["env"], row["side"]): row["median"] / 1e6 for row in measured["rows"] if row["agents"] == 1024}
    shared = {row["what"].split(",")[0]: row["medians"] for row in measured["threads"]}
    cells = []
    for name in dict.fromkeys(row["env"] for row in measured["rows"]):
        ours, peer = found[name, OURS], found.get((name, "peer"))
        others = f"{peer:.3g} ({ours / peer:.3g} ×)" if peer else ""
        alone, together, limit = (shared[name][contestant] for contestant in ("one thread", OURS, LIMIT))
        threads = f"{alone / together:.3g} × ({alone / limit:.3g} ×)"
        cells.append({"what": name, "measured": f"{ours:.3g} million", "others": others, "threads": threads})
    return cells


def alone_rows(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells of Table 1, by paper.py."""
    return [alone_row(row) for row in measured["rows"] if row["figures"]]


def alone_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of one of its lines."""
    medians = entry["medians"]
    cells = {key: f"{figure(medians[key])} %" if key in medians else "-" for key in ("resets", "deviation", "added")}
    speed = figure(medians["steps_per_s"])
    return {"what": f"{entry['what']} (`{entry['name']}`)", "measured": speed, **cells, "paper": entry["paper"]}


def vectorized_rows(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells of Table 2, by paper.py: steps per second."""
    return [vectorized_row(row) for row in measured["rows"] if OURS in row["figures"]]


def vectorized_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of one of its lines; the peers stand in pairs, one process and several."""
    medians, ours = entry["medians"], entry["figures"][OURS]
    layout = next(name for name, figures in entry["figures"].items() if name != OURS and figures == ours)
    speed = {name: figure(1e6 / us) for name, us in medians.items()}
    peers = {"gymnasium": ("SyncVectorEnv", "AsyncVectorEnv"), "sb3": ("SB3 DummyVecEnv", "SB3 SubprocVecEnv")}
    best = min((ratio, name) for name, ratio in entry["measured_ratios"].items() if name in entry["ratios"])
    return {
        "what": entry["what"].replace(": a step,", ","),
        "measured": f"{speed[OURS]}, {layout}",
        **{library: " / ".join(speed.get(name, "-") for name in pair) for library, pair in peers.items()},
        "limit": speed.get(LIMIT, "-"),
        "ratio": f"{figure(best[0])} × {best[1]}",
    }


def variance_rows(measured: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Cells of the grid, by variance.py: percent of the limit."""
    return [
        {"what": what, **{name: f"{share:.0f}" for name, share in ways.items()}}
        for what, ways in shares(measured["rows"]).items()
    ]


CELLS = {"ocean": ocean_rows, "alone": alone_rows, "vectorized": vectorized_rows, "variance": variance_rows}
TIMED = "| What | Goal | Ours | Others, and how many times ours | Limit | Reached |"
HEADERS = {
    "ocean": "| Environment | Agent-steps per second | PufferLib 3.0.0, millions | Two threads (two processes) |",
    "alone": "| Environment | Steps per second | In resets | Deviation of a step | Emulation adds | In the paper |",
    "vectorized": "| Environments | Ours | Gymnasium | SB3 | Limit | How many times as fast |",
    "variance": f"| Environment | {' | '.join(name for name, _ in WAYS.values())} |",
}
KEYS = {
    "ocean": ("what", "measured", "others", "threads"),
    "alone": ("what", "measured", "resets", "deviation", "added", "paper"),
    "vectorized": ("what", "measured", "gymnasium", "sb3", "limit", "ratio"),
    "variance": ("what", *WAYS),
}


def with_table(page: str, part: str, rows: list[dict[str, Any]]) -> str:
    """The page with today's table of one part."""
    keys = KEYS.get(part, ("what", "goal", "measured", "others", "limit", "reached"))
    table = [HEADERS.get(part, TIMED), "| --- " * len(keys) + "|"]
    table += [f"| {' | '.join(row.get(key, '') for key in keys)} |" for row in rows]
    machines = sorted({f"{row['cpu']}, {row['cpus']} cores" for row in rows})
    text = "\n".join([f"Measured on {'; '.join(machines)}.", "", *table])
    marked = rf"(?s)(<!-- {part}: made by benchmarks/speed\.py -->\n).*?(<!-- end of {part} -->)"
    found = re.search(marked, page)
    if found is None:
        raise SystemExit(f"{PAGE}: expected the marks of the part {part}, and found none")
    return page[: found.end(1)] + text + "\n" + page[found.start(2) :]


if __name__ == "__main__":
    sys.exit(main())
