"""Content-addressed cache of Cython's output. CMake runs this file in place of Cython.

File times change with every checkout, isolated pip build and image build, but contents rarely do.
"""

import contextlib
import hashlib
import os
import subprocess
import sys
import zlib
from pathlib import Path

__all__ = ["cached_cython"]

_OUTPUTS = 8  # cached outputs per module


def cached_cython(version: str, output: Path, command: list[str]) -> int:
    """Write a module's C file from the cache, or run Cython if it is not cached.

    A C file that is already correct keeps its modification time, so the compiler does not run either. The cache key
    consists of the version, the options, the source, and every ``.pxd`` file below the working directory. The cache is
    the directory ``CYTHON_CACHE_DIR``, by default ``cython`` beside the C file. If it is not writable, Cython always
    runs.

    Without a source, Cython writes the module from which modules with the option ``--shared`` import its own functions.

    Args:
        version: Output of ``cython --version``.
        output: Path of the C file.
        command: Cython command line. The last argument is the source, relative to the working directory, or an option.

    Returns:
        Exit code of Cython, or 0 if it did not run.
    """
    cache = Path(os.environ.get("CYTHON_CACHE_DIR") or output.parent / "cython")
    entry = cache / f"{output.stem}-{_key(version, command)}.z"
    try:
        code = zlib.decompress(entry.read_bytes())
    except (OSError, zlib.error):  # absent or damaged
        option = "-o" if _sources(command) else "--generate-shared"
        exit_code = subprocess.run([*command, option, str(output)], check=False).returncode
        if exit_code == 0:
            with contextlib.suppress(OSError):
                _store(output, entry)
        return exit_code
    with contextlib.suppress(OSError):
        entry.touch()  # least recently used entries are removed first
    if not output.is_file() or output.read_bytes() != code:
        output.write_bytes(code)
    return 0


def _key(version: str, command: list[str]) -> str:
    digest = hashlib.sha256(repr((version, command[1:])).encode())
    for path in _sources(command):
        digest.update(f"{path} {path.stat().st_size}\n".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _sources(command: list[str]) -> list[Path]:
    """Return the source and all files that it can include, or nothing for the shared module."""
    source = Path(command[-1])
    return [source, *sorted(Path("pufferlib").rglob("*.pxd"))] if source.suffix == ".pyx" else []


def _store(output: Path, entry: Path) -> None:
    entry.parent.mkdir(parents=True, exist_ok=True)
    part = entry.with_suffix(f".{os.getpid()}")  # written atomically, because builds may run in parallel
    part.write_bytes(zlib.compress(output.read_bytes(), 1))
    part.replace(entry)
    for old in sorted(entry.parent.glob(f"{output.stem}-*.z"), key=lambda path: path.stat().st_mtime)[:-_OUTPUTS]:
        old.unlink()


if __name__ == "__main__":
    sys.exit(cached_cython(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
