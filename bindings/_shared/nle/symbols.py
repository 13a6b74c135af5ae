"""Fix for NetHack's symbol lookup, so that it calls its own functions and not others of the same name."""

import mmap
import struct
from pathlib import Path

__all__ = ["prefer_own_symbols"]

# Offsets in the ELF header, and tags of the dynamic section.
_PARTS_AT = 32
_PART_SIZE_AT = 54
_NUM_PARTS_AT = 56
_PT_DYNAMIC = 2
_DT_SYMBOLIC = 16
_DT_RELACOUNT = 0x6FFFFFF9  # only a hint for the loader
_ENTRY_BYTES = 16


def prefer_own_symbols(library: Path) -> None:
    """Patch the copy of NetHack that nle is about to load, so that it resolves symbols in itself first.

    Some of its functions have common names. For example, Java's drawing library, which MicroRTS loads, exports a global
    ``start_timer``. NetHack would call that function and crash. The flag DT_SYMBOLIC (set by ``ld -Bsymbolic``)
    prevents this. It replaces an unneeded entry, since there is no room for another one.
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
