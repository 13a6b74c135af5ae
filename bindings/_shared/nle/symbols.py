"""Lets NetHack call its own functions, whatever else has loaded functions of the same names."""

import mmap
import struct
from pathlib import Path

__all__ = ["prefer_own_symbols"]

# Of ELF, the format of libraries: where a header says what, and tags.
_PARTS_AT = 32
_PART_SIZE_AT = 54
_NUM_PARTS_AT = 56
_PT_DYNAMIC = 2
_DT_SYMBOLIC = 16
_DT_RELACOUNT = 0x6FFFFFF9  # a mere hint for the loader
_ENTRY_BYTES = 16


def prefer_own_symbols(library: Path) -> None:
    """Change the copy of NetHack that nle is about to load, so that it looks for each function in itself first.

    Its functions have names that others can have too: Java's drawing library, which MicroRTS loads, offers a
    ``start_timer`` to the whole process, and NetHack would call that one and crash. The mark DT_SYMBOLIC (that of
    ``ld -Bsymbolic``) takes the place of an entry that nothing needs, since there is no room for one more.
    """
    with library.open("r+b") as file, mmap.mmap(file.fileno(), 0) as image:
        (parts,) = struct.unpack_from("<Q", image, _PARTS_AT)
        (part_bytes,) = struct.unpack_from("<H", image, _PART_SIZE_AT)
        (num_parts,) = struct.unpack_from("<H", image, _NUM_PARTS_AT)
        for part in range(parts, parts + num_parts * part_bytes, part_bytes):
            kind, _, start, _, _, size = struct.unpack_from("<IIQQQQ", image, part)
            entries = range(start, start + size, _ENTRY_BYTES) if kind == _PT_DYNAMIC else ()
            for entry in entries:
                if struct.unpack_from("<Q", image, entry) == (_DT_RELACOUNT,):
                    struct.pack_into("<Q", image, entry, _DT_SYMBOLIC)
