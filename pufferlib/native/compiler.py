"""Discovery of a C compiler: ``$CC``, one on the PATH, or the one in the package ziglang."""

import os
import platform
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from pufferlib.errors import PufferError
from pufferlib.machine.caches import cache_folder
from pufferlib.machine.commands import in_image, way_to_install

__all__ = ["HEADERS", "Compiler", "CompilerWarning", "find_compiler", "find_web_compiler", "read_warnings"]

#: Folder of puffer_env.h and the other headers that an environment includes.
HEADERS = Path(__file__).parent
ON_PATH = ("cc", "gcc", "clang")

_WARNING = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: warning: (?P<message>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiler:
    """A C compiler that accepts the flags of gcc.

    Attributes:
        command: Command and its leading arguments.
        identity: Path, modification time and size of its programs. Changes with every release of the compiler.
        env: Environment variables that it needs.
    """

    command: tuple[str, ...]
    identity: str
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run the compiler and capture its output as text.

        Raises:
            PufferError: The compiler cannot be started.
        """
        command = [*self.command, *map(str, arguments)]
        env = {**os.environ, **self.env}
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace", env=env)
        except OSError as error:
            raise PufferError(f"the C compiler {self.command[0]} cannot be started: {error.strerror}") from error


class CompilerWarning(NamedTuple):
    """A compiler warning: its file, line and message."""

    file: str
    line: int
    message: str


def read_warnings(output: str) -> list[CompilerWarning]:
    """Return the warnings in the error output of a compiler."""
    return [CompilerWarning(found["file"], int(found["line"]), found["message"]) for found in _WARNING.finditer(output)]


def find_compiler(where: str) -> Compiler:
    """Find a C compiler: ``$CC``, then cc, gcc or clang on the PATH, then the one in the package ziglang.

    Args:
        where: Prefix of the error message.

    Raises:
        PufferError: There is no compiler, or ``$CC`` is not on the PATH.
    """
    if chosen := shlex.split(os.environ.get("CC", "")):
        if not shutil.which(chosen[0]):
            raise PufferError(f"{where}: CC must name a C compiler, got {os.environ['CC']!r}, which is not on the PATH")
        return Compiler(tuple(chosen), _identity(chosen))
    for name in ON_PATH:
        if shutil.which(name):
            return Compiler((name,), _identity([name]))
    # Without a target, zig compiles for this CPU with the system's headers, which may not be installed.
    if zig := _zig("-target", f"{platform.machine()}-linux-gnu.2.17", "-mcpu=baseline"):
        return zig
    by_root = "" if in_image() else "install one (Debian: apt-get install gcc libc6-dev), or without root: "
    raise PufferError(
        f"{where}: no C compiler ({', '.join(ON_PATH)}) is on the PATH; "
        f"{by_root}{way_to_install('compiler', image='dev')}"
    )


def find_web_compiler(where: str) -> Compiler:
    """Find a C compiler for WebAssembly, which is the one in the package ziglang.

    Args:
        where: Prefix of the error message.

    Raises:
        PufferError: The package is not installed.
    """
    if zig := _zig("-target", "wasm32-wasi", "-msimd128"):
        return zig
    raise PufferError(
        f"{where}: compiling for the web needs the package ziglang; {way_to_install('compiler', image='dev')}"
    )


def _zig(*flags: str) -> Compiler | None:
    """Return the compiler of the package ziglang with ``flags``, or None if the package is not installed."""
    spec = find_spec("ziglang")
    if not spec:
        return None
    program = Path(*spec.submodule_search_locations or ()) / "zig"
    folder = str(cache_folder("zig"))
    command = (str(program), "cc", *flags, "-fno-sanitize=undefined")
    return Compiler(command, _identity([str(program)]), {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder})


def _identity(words: Sequence[str]) -> str:
    programs = [Path(found) for word in words if (found := shutil.which(word))]
    return " ".join(f"{path.resolve()} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in programs)
