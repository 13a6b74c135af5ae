"""Small Sphinx inventories of other projects, so that a build needs no network.

`docs/inventories/NAME.txt` has the uncompressed format of `objects.inv`, with the address of the site in the first
line. It contains only names that our pages refer to. The build reports missing names.
"""

import zlib
from pathlib import Path


def mapping(folder: Path, out: Path) -> dict[str, tuple[str, str]]:
    """Write each inventory as a compressed file into `out`, and return the `intersphinx_mapping`."""
    out.mkdir(parents=True, exist_ok=True)
    return {source.stem: (_address(source), _compressed(source, out)) for source in sorted(folder.glob("*.txt"))}


def _address(source: Path) -> str:
    return source.read_text().partition("\n")[0].removeprefix("# ")


def _compressed(source: Path, out: Path) -> str:
    names = source.read_text().partition("\n")[2]
    head = f"# Sphinx inventory version 2\n# Project: {source.stem}\n# Version: \n"
    head += "# The remainder of this file is compressed using zlib.\n"
    path = out / f"{source.stem}.inv"
    path.write_bytes(head.encode() + zlib.compress(names.encode()))
    return str(path)
