"""Tables for the terminal."""

import re
from collections.abc import Collection, Sequence

from pufferlib.cli.console import style

__all__ = ["print_table"]

GAP = "  "
_STYLED = re.compile(r"\x1b\[[0-9;]*m")


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> None:
    """Print rows below their heads, each column as wide as its widest cell.

    Args:
        heads: Of the columns.
        rows: Cells, which may be styled.
        right: Heads of the columns whose cells end at the same place, as numbers do.
    """
    widths = [max([len(head), *(_width(row[i]) for row in rows)]) for i, head in enumerate(heads)]

    def line(cells: Sequence[str]) -> str:
        padded = []
        for cell, width, head in zip(cells, widths, heads, strict=True):
            room = " " * (width - _width(cell))
            padded.append(room + cell if head in right else cell + room)
        return GAP.join(padded).rstrip()

    print(line([style(head, "bold") for head in heads]))
    for row in rows:
        print(line(row))


def _width(cell: str) -> int:
    return len(_STYLED.sub("", cell))
