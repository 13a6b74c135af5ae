"""The tables of docs/speed.md, from what the other benchmarks measured.

    python benchmarks/engine.py     # and bindings.py, ocean.py, train.py
    python benchmarks/speed.py benchmarks/results/*.json    # keeps the medians; rows of other names stay as they are
    python benchmarks/speed.py --check                      # exit code 1 if the page is not what would be written

What is kept of a file NAME.json is docs/speed/NAME.json, and its table stands in the page under the heading NAME.
"""

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

from report import LIMIT, OURS, Row, figure

DOCS = Path(__file__).parent.parent / "docs"
PAGE, KEPT = DOCS / "speed.md", DOCS / "speed"
PARTS = ("engine", "bindings", "ocean", "train")


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
    rows = ocean_rows(measured) if path.stem == "ocean" else timed_rows(measured["rows"])
    new = [{**row, **machine} for row in rows]
    names = {row["what"] for row in new}
    old = json.loads(kept.read_text()) if kept.exists() else []
    kept.parent.mkdir(exist_ok=True)
    kept.write_text(json.dumps([row for row in old if row["what"] not in names] + new, indent=1) + "\n")


def timed_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Cells of what engine.py, bindings.py and train.py measured: less is better."""
    return [timed_row(row) for row in rows if OURS in row["figures"]]


def timed_row(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Cells of one of them."""
    row = Row(**{key: entry[key] for key in ("what", "unit", "most", "ratios", "limit", "figures", "skipped")})
    others = [name for name in row.figures if name not in (OURS, LIMIT)]
    return {
        "what": row.what,
        "goal": row.goal(),
        "measured": f"{figure(row.median(OURS))} {row.unit}",
        "others": "; ".join(f"{name} {figure(row.median(name))}{times(row, name)}" for name in others),
        "limit": f"{figure(row.median(LIMIT))}: {row.limit}" if LIMIT in row.figures else "",
        "reached": "yes" if row.is_reached() else "**no**",
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


TIMED = "| What | Goal | Ours | Others, and how many times ours | Limit | Reached |"
HEADERS = {
    "ocean": "| Environment | Agent-steps per second | PufferLib 3.0.0, millions | Two threads (two processes) |",
}
KEYS = {"ocean": ("what", "measured", "others", "threads")}


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
