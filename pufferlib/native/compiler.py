"""The C compiler of this machine: ``$CC``, one on the PATH, or the one of the package ziglang."""

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

__all__ = ["HEADERS", "Compiler", "CompilerWarning", "find_compiler", "read_warnings"]

#: Folder of puffer_env.h and of everything else that a game includes.
HEADERS = Path(__file__).parent
ON_PATH = ("cc", "gcc", "clang")

_WARNING = re.compile(r"^(?P<file>[^:\n]+):(?P<line>\d+):\d+: warning: (?P<message>.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Compiler:
    """A C compiler that takes the flags of gcc.

    Attributes:
        command: How it is called, before its arguments.
        identity: Path, time and size of its programs: another release of it has another one.
        env: Variables that it needs.
    """

    command: tuple[str, ...]
    identity: str
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        """Run it; its output is captured as text.

        Raises:
            PufferError: It cannot be started.
        """
        command = [*self.command, *map(str, arguments)]
        env = {**os.environ, **self.env}
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace", env=env)
        except OSError as error:
            raise PufferError(f"the C compiler {self.command[0]} cannot be started: {error.strerror}") from error


class CompilerWarning(NamedTuple):
    """A warning of the compiler: its file, line and message."""

    file: str
    line: int
    message: str


def read_warnings(output: str) -> list[CompilerWarning]:
    """Return the warnings in the error output of a compiler."""
    return [CompilerWarning(found["file"], int(found["line"]), found["message"]) for found in _WARNING.finditer(output)]


def find_compiler(where: str) -> Compiler:
    """Find a C compiler: ``$CC``, then cc, gcc or clang of the PATH, then the one of the package ziglang.

    Args:
        where: Begins the error message.

    Raises:
        PufferError: There is none, or ``$CC`` is none.
    """
    if chosen := shlex.split(os.environ.get("CC", "")):
        if not shutil.which(chosen[0]):
            raise PufferError(f"{where}: CC must name a C compiler, got {os.environ['CC']!r}, which is not on the PATH")
        return Compiler(tuple(chosen), _identity(chosen))
    for name in ON_PATH:
        if shutil.which(name):
            return Compiler((name,), _identity([name]))
    if spec := find_spec("ziglang"):
        return _zig(Path(*spec.submodule_search_locations or ()) / "zig")
    by_root = "" if in_image() else "install one (Debian: apt-get install gcc libc6-dev), or without root: "
    raise PufferError(
        f"{where}: no C compiler ({', '.join(ON_PATH)}) is on the PATH; "
        f"{by_root}{way_to_install('compiler', image='dev')}"
    )


def _zig(program: Path) -> Compiler:
    # Without a target it compiles for the CPU at hand, with the headers of the system, which has none.
    target = f"{platform.machine()}-linux-gnu.2.17"
    folder = str(cache_folder("zig"))
    command = (str(program), "cc", "-target", target, "-mcpu=baseline", "-fno-sanitize=undefined")
    return Compiler(command, _identity([str(program)]), {"ZIG_GLOBAL_CACHE_DIR": folder, "ZIG_LOCAL_CACHE_DIR": folder})


def _identity(words: Sequence[str]) -> str:
    programs = [Path(found) for word in words if (found := shutil.which(word))]
    return " ".join(f"{path.resolve()} {path.stat().st_mtime_ns} {path.stat().st_size}" for path in programs)
