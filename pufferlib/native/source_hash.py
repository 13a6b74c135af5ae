"""Hash of all compiled sources. CMake runs this file and compiles its output into ``ocean._ocean``."""

import hashlib
import sys
from pathlib import Path

__all__ = ["source_hash"]

_SUFFIXES = {".c", ".h", ".in", ".pxd", ".pyx"}


def source_hash(package: Path) -> str:
    """Return the SHA-256 of the names and contents of all C and Cython sources in the package, as 64 hex digits.

    ``pufferlib.ocean._ocean.source_hash`` is the value at the time of compilation.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in _SUFFIXES):
        digest.update(f"{path.relative_to(package).as_posix()} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(f'const char puffer_source_hash[] = "{source_hash(Path(__file__).parents[1])}";\n')
