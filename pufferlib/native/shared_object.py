"""Shared libraries of single C files, compiled when something changed that they are made of, and kept."""

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

#: Of every game, as CMakeLists.txt has them: the same bytes on every machine. What is an error here would otherwise
#: be a crash later.
FLAGS = (
    *("-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-Wall", "-Wextra"),
    *("-Werror=implicit-function-declaration", "-Werror=incompatible-pointer-types", "-Werror=int-conversion"),
    *("-Werror=return-type", f"-I{HEADERS}"),
)
KEPT_S = 30 * 24 * 3600  # since a library was last asked for
# -O2 plays as fast as -O3, and compiles large games in a third of its time. What is undefined shall be told by the
# linker, with its line, instead of by the loader.
LIBRARY_FLAGS = (*FLAGS, "-O2", "-shared", "-DPUFFER_IN_LIBRARY", "-Wl,-z,defs")


def build_library(source: Path) -> Path:
    """Compile ``source`` into a shared library of the cache, unless there is one of just this content.

    It is compiled again when the file has changed, a header that it includes (but for those of the system), the
    compiler or its flags. The name of the library is a hash of the files, so that what is loaded is never another
    one's code.

    Args:
        source: A C file that exists, an absolute path.

    Raises:
        APIUsageError: The compiler refuses the file; its messages follow.
        PufferError: There is no compiler, or no folder to write to.
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
            f"{source}: the compiled library cannot be kept in {folder} ({error.strerror}); set XDG_CACHE_HOME to a "
            "folder that you may write to"
        ) from error


def _remove_unused(folder: Path) -> None:
    """Remove the libraries that nobody has asked for in ``KEPT_S``; a process that has one loaded keeps it."""
    for path in (*folder.glob("*.so"), *folder.glob("*.json")):
        with contextlib.suppress(OSError):  # another process was quicker
            if time.time() - path.stat().st_mtime > KEPT_S:
                path.unlink()


def _unchanged(notes: Path) -> Path | None:
    """The library that ``notes`` tell of, if all that it was made of is as it was then."""
    try:
        told = json.loads(notes.read_text("utf-8"))
        library: Path = notes.parent / told["library"]
        if library.exists() and all(_file_digest(Path(path)) == digest for path, digest in told["files"].items()):
            for path in (library, notes):
                with contextlib.suppress(PermissionError):  # a cache that is shared, and cannot be written
                    os.utime(path)
            return library
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        pass  # something is gone, or was never there
    return None


def _compile(compiler: Compiler, source: Path, place: Path, notes: Path) -> Path:
    made, listing = place / "library.so", place / "files.d"
    for _ in range(2):
        started = time.time_ns()
        done = compiler.run([*LIBRARY_FLAGS, "-MMD", "-MF", listing, "-o", made, source, "-lm"])
        if done.returncode != 0:
            raise APIUsageError(f"{source}: {compiler.command[0]} cannot compile it:\n{done.stderr.strip()}")
        files = _included(listing)
        if all(path.stat().st_mtime_ns < started for path in files):  # else it was edited meanwhile
            break
    for warning in read_warnings(done.stderr):
        warnings.warn_explicit(warning.message, UserWarning, warning.file, warning.line)
    told = {str(path): _file_digest(path) for path in files}
    library = notes.parent / f"{source.stem}-{_digest(sorted(told.values()))}.so"
    os.replace(made, library)
    (place / "notes.json").write_text(json.dumps({"library": library.name, "files": told}, indent=1), "utf-8")
    os.replace(place / "notes.json", notes)
    return library


def _included(listing: Path) -> list[Path]:
    """The source and the headers that a rule of make, as compilers write it, says a library was made of."""
    _, _, files = listing.read_text().partition(": ")
    return [Path(name.replace("$$", "$")) for name in shlex.split(files.replace("\\\n", " "))]


def _file_digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(parts: list[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
