"""Search for defects of a C environment by fuzzing it under the compiler's sanitizers."""

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.machine.caches import cache_folder
from pufferlib.native.compiler import HEADERS, Compiler, find_compiler, read_warnings
from pufferlib.native.shared_object import FLAGS
from pufferlib.ocean.files import compile_file, load_type

__all__ = ["CLASSES", "Defect", "FuzzReport", "fuzz_file"]

#: Classes of defects, and what each means.
CLASSES = {
    "compiler": "the compiler warns",
    "memory": "reads or writes outside of its memory, or allocates memory and never frees it",
    "undefined": "does what C does not define: overflow, division by zero, a bad shift or conversion",
    "contract": "leaves a bound that it declares, returns NaN, or changes the game by drawing it",
    "seed": "the same seed and actions do not give the same data: a random number that is not of game.rng, a global, "
    "or memory that was never written",
    "batch": "a game depends on the others of its batch",
    "reset": "an episode depends on what was played before the reset",
    "state": "a copy of a game continues differently: a pointer that PUFFER_POINTERS does not list, or memory "
    "outside of the struct",
    "output": "prints",
    "hang": "a reset or step does not return",
    "exit": "ends the process",
}

PHASES = {"hostile": 1.0, "seed": 0.05, "batch": 0.05, "reset": 0.05, "state": 0.05}  # phase: share of the steps
PROGRAM = HEADERS / "puffer_fuzz.c"
UNDEFINED = "undefined,float-cast-overflow,float-divide-by-zero"
OPTIONS = {"ASAN_OPTIONS": "abort_on_error=0:handle_sigfpe=1", "UBSAN_OPTIONS": "print_stacktrace=0"}
TIMEOUT_S = 1800
FINISHED = 100  # exit code of a phase without defects, as in puffer_fuzz.c
DIVISION = "an integer division ended the process"

_UNDEFINED = re.compile(r"^(?P<place>[^:\n]+:\d+):\d+: runtime error: (?P<message>.*)$", re.MULTILINE)
_MEMORY = re.compile(r"(?:out of bounds|null pointer|insufficient space|misaligned|invalid value)")
_SANITIZER = re.compile(r"ERROR: (?P<tool>\w+Sanitizer): (?:detected )?(?P<message>[\w-]+(?: \w+)?)")
_OPERATION = re.compile(r"^(?P<operation>READ|WRITE) of size (?P<size>\d+)", re.MULTILINE)
_FRAME = re.compile(r"^\s+#\d+ \S+ in \S+ (?P<place>/[^:\n]+:\d+)", re.MULTILINE)
_FOUND = re.compile(r"^puffer_fuzz: (?P<kind>\w+): (?P<message>.*)$", re.MULTILINE)
_CONTEXT = re.compile(r"^puffer_fuzz: (?P<context>in step .*)$", re.MULTILINE)


@dataclass(frozen=True)
class Defect:
    """A defect of an environment.

    Attributes:
        kind: One of ``CLASSES``.
        message: Description of what happened.
        place: File and line, or "" if unknown.
        context: Step and parameters, or "" if unknown.
    """

    kind: str
    message: str
    place: str = ""
    context: str = ""

    @property
    def is_fatal(self) -> bool:
        """True if the defect could end or block the process that plays the environment."""
        return self.kind in ("memory", "hang", "exit") or self.message == DIVISION

    def __str__(self) -> str:
        place, context = f"{self.place}: " if self.place else "", f" ({self.context})" if self.context else ""
        return f"{self.kind}: {place}{self.message}{context}"


@dataclass(frozen=True)
class FuzzReport:
    """Result of ``fuzz_file``.

    Attributes:
        defects: Defects in the order of their discovery.
        sanitizers: Sanitizers that were used, as the compiler names them, or "" for none.
    """

    defects: tuple[Defect, ...]
    sanitizers: str


def fuzz_file(path: str, steps: int = 50_000, seed: int = 1) -> FuzzReport:
    """Run the environment of a C file in a separate process and report its defects.

    The file is compiled with the address and undefined-behavior sanitizers, as far as the compiler has them. The main
    phase steps it with random and extreme parameters and with valid and invalid actions. Four shorter phases compare
    two batches with the same seed, games of a batch with the same games alone, a reset game with a new one, and a batch
    with another one that loaded its state.

    Args:
        path: Path of the C file.
        steps: Number of steps of the main phase. Each other phase takes a twentieth of it, and every phase at least
            250.
        seed: Seed of all random choices.

    Raises:
        UnknownNameError: The file does not exist.
        APIUsageError: The file does not compile, or defines no environment.
        PufferError: There is no compiler.
    """
    file = compile_file(path)
    load_type(file)
    compiler = find_compiler(path)
    folder = cache_folder("native")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder, prefix="fuzz-") as place:
        program = Path(place) / "fuzz"
        sanitizers, stderr = _build(compiler, Path(file.source), program)
        found = [Defect("compiler", text, f"{source}:{line}") for source, line, text in read_warnings(stderr)]
        for phase, share in PHASES.items():
            found += _run_phase(program, phase, max(int(steps * share), 250), seed)
            if any(defect.kind == "hang" for defect in found):  # later phases would most likely hang too
                break
    first = {(defect.kind, defect.message, defect.place): defect for defect in reversed(found)}
    return FuzzReport(tuple(reversed(first.values())), sanitizers)


def _build(compiler: Compiler, source: Path, program: Path) -> tuple[str, str]:
    """Compile with as many sanitizers as the compiler supports. Return their names and the compiler's messages."""
    stderr = ""
    for sanitizers in (f"address,{UNDEFINED}", UNDEFINED, ""):
        flags = [f"-fsanitize={sanitizers}", "-fno-omit-frame-pointer"] if sanitizers else []
        arguments = [*FLAGS, "-D_GNU_SOURCE", "-DPUFFER_IN_LIBRARY", "-g", "-Og", *flags]
        done = compiler.run([*arguments, PROGRAM, source, "-o", program, "-lm"])
        stderr = done.stderr
        if done.returncode == 0:
            return sanitizers, stderr
    raise APIUsageError(f"{source}: {compiler.command[0]} cannot compile it with the checks:\n{stderr.strip()}")


def _run_phase(program: Path, phase: str, steps: int, seed: int) -> Iterator[Defect]:
    command = [program, phase, str(steps), str(seed)]
    options = {"capture_output": True, "text": True, "errors": "replace", "env": {**os.environ, **OPTIONS}}
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, timeout=TIMEOUT_S, **options)  # type: ignore[call-overload]
    except OSError as error:
        raise PufferError(
            f"the check cannot run in {program.parent} ({error.strerror}); set XDG_CACHE_HOME to another folder"
        ) from error
    except subprocess.TimeoutExpired:
        yield Defect("hang", f"phase {phase} of the check did not finish within {TIMEOUT_S / 60:g} minutes")
        return
    yield from _undefined_behavior(done.stderr)
    yield from _early_exit(done.returncode, done.stderr)
    if done.stdout:
        yield Defect("output", f"prints {done.stdout[:60]!r}")


def _undefined_behavior(stderr: str) -> Iterator[Defect]:
    for match in _UNDEFINED.finditer(stderr):
        yield Defect("memory" if _MEMORY.search(match["message"]) else "undefined", match["message"], match["place"])


def _early_exit(code: int, stderr: str) -> Iterator[Defect]:
    """Yield the defect that stopped the program, if it stopped early."""
    context = match["context"] if (match := _CONTEXT.search(stderr)) else ""
    place = _own_place(stderr)
    if match := _FOUND.search(stderr):
        yield Defect(match["kind"], match["message"], place if match["kind"] == "hang" else "", context)
    elif match := _SANITIZER.search(stderr):
        if match["message"].startswith("FPE"):
            yield Defect("undefined", DIVISION, place, context)
            return
        message = match["message"].removesuffix(" on")
        if operation := _OPERATION.search(stderr):
            message += f", {operation['operation'].lower()} of {operation['size']} bytes"
        yield Defect("memory", message, place, context)
    elif code != FINISHED:
        kind = "memory" if -code in (signal.SIGSEGV, signal.SIGBUS) else "exit"
        ending = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
        yield Defect(kind, f"the process ended with {ending}", place, context)


def _own_place(stderr: str) -> str:
    """Return the innermost stack frame in the author's code, outside of the system and of this package."""
    places = (match["place"] for match in _FRAME.finditer(stderr))
    return next((place for place in places if not re.search(r"^/usr/|/puffer_\w+\.[ch]:", place)), "")
