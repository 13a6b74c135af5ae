"""Compilation of single C files to shared libraries, cached by content."""

import contextlib
import hashlib
import json
import os
import shlex
import tempfile
import time
import warnings
from pathlib import Path

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.caches import cache_folder
from pufferlib.native.compiler import HEADERS, Compiler, find_compiler, read_warnings

__all__ = ["FLAGS", "build_library"]

#: Compiler flags of every environment, the same as in CMakeLists.txt, so that results are the same on every machine.
#: The -Werror flags turn mistakes that would crash at runtime into compile errors.
FLAGS = (
    *("-std=gnu11", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wall", "-Wextra"),
    *("-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"),
    *("-Werror=return-type", f"-I{HEADERS}", f"-I{HEADERS.parent / 'ocean'}"),
)
KEPT_S = 30 * 24 * 3600  # time since the last use of a library
# Code built with -O2 runs as fast as with -O3, and large environments compile in a third of the time. "-z defs" makes
# the linker report undefined symbols, with their line, instead of the loader.
LIBRARY_FLAGS = (*FLAGS, "-O2", "-fPIC", "-shared", "-DPUFFER_IN_LIBRARY", "-Wl,-z,defs")


def build_library(source: Path) -> Path:
    """Compile ``source`` to a shared library in the cache, if no library with this exact content exists.

    The file is recompiled if it, one of its headers (except system headers), the compiler or the flags have changed.
    The name of the library is a hash of the files, so stale code is never loaded.

    Args:
        source: Absolute path of an existing C file.

    Raises:
        APIUsageError: The file does not compile. The error has the compiler's messages.
        PufferError: There is no compiler, or the cache folder is not writable.
    """
    compiler = find_compiler(str(source))
    key = _digest([str(source), compiler.identity, *compiler.command, *LIBRARY_FLAGS])
    folder = cache_folder("native")
    notes = folder / f"{key}.json"
    if (known := _unchanged(notes)) is not None:
        return known
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as place:
            _remove_unused(folder)
            return _compile(compiler, source, Path(place), notes)
    except OSError as error:
        raise PufferError(
            f"{source}: the compiled library cannot be stored in {folder} ({error.strerror}); set XDG_CACHE_HOME to a "
            "writable folder"
        ) from error


def _remove_unused(folder: Path) -> None:
    """Remove libraries that were not used for ``KEPT_S``. Processes that have loaded one are not affected."""
    for path in (*folder.glob("*.so"), *folder.glob("*.json")):
        with contextlib.suppress(OSError):  # another process removed it first
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink()


def _unchanged(notes: Path) -> Path | None:
    """Return the library described by ``notes`` if none of its source files has changed, else None."""
    try:
        recorded = json.loads(notes.read_text("utf-8"))
        library: Path = notes.parent / recorded["library"]
        if library.exists() and all(_file_digest(Path(path)) == digest for path, digest in recorded["files"].items()):
            for path in (library, notes):
                with contextlib.suppress(PermissionError):  # the cache may be shared and read-only
                    os.utime(path)
            return library
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # a file is missing or damaged
    return None


def _compile(compiler: Compiler, source: Path, place: Path, notes: Path) -> Path:
    made, listing = place / "library.so", place / "files.d"
    for _ in range(2):
        started = time.time_ns()
        done = compiler.run([*LIBRARY_FLAGS, "-MMD", "-MF", listing, "-o", made, source, "-lm"])
        if done.returncode != 0:
            raise APIUsageError(f"{source}: {compiler.command[0]} cannot compile it:\n{done.stderr.strip()}")
        files = _included(listing)
        if all(path.stat().st_mtime_ns < started for path in files):  # otherwise a file was edited during compilation
            break
    for warning in read_warnings(done.stderr):
        warnings.warn_explicit(warning.message, UserWarning, warning.file, warning.line)
    recorded = {str(path): _file_digest(path) for path in files}
    library = notes.parent / f"{source.stem}-{_digest(sorted(recorded.values()))}.so"
    os.replace(made, library)
    (place / "notes.json").write_text(json.dumps({"library": library.name, "files": recorded}, indent=1), "utf-8")
    os.replace(place / "notes.json", notes)
    return library


def _included(listing: Path) -> list[Path]:
    """Return the source and header paths from a dependency file in make syntax."""
    _, _, files = listing.read_text().partition(": ")
    return [Path(name.replace("$$", "$")) for name in shlex.split(files.replace("\\\n", " "))]


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
