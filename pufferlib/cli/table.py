"""Tables in the terminal."""

import re
from collections.abc import Collection, Sequence

from pufferlib.cli.console import style

__all__ = ["print_table"]

GAP = "  "
_STYLED = re.compile(r"\x1b\[[0-9;]*m")


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str] = ()) -> None:
    """Print a table with aligned columns.

    Args:
        heads: Headers of the columns.
        rows: Cells of each row, which may contain styles.
        right: Headers of the right-aligned columns.
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
