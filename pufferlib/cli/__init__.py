"""Command line interface ``puffer``. No other part of pufferlib prints.

Exit codes: 0 for success, 1 for a failure (with an error message), 2 for an invalid command, 130 if stopped by Ctrl-C,
143 by SIGTERM, and 129 by SIGHUP.
"""

import errno
import importlib
import io
import os
import sys
import threading
import time
from collections.abc import Sequence

import pufferlib
from pufferlib.cli.console import complain, note, plain_warnings, say, style
from pufferlib.errors import PufferError, UnknownNameError, UsageError, place_of
from pufferlib.machine.commands import as_typed, way_to_install

__all__ = ["main"]

# Each verb is a module with the same name (_ for -) and a function ``run(argv)`` that returns the exit code. Modules
# are imported when their verbs are called.
VERBS = {
    "train": "train an agent, evaluate it, plot its learning curve and record a video",
    "eval": "evaluate a trained agent and compare it with random play",
    "runs": "list runs with their scores and the settings that differ",
    "plot": "plot the learning curves of runs",
    "board": "show runs, curves and videos in a web page, live while they train",
    "web": "write a page with a game and its agent, for the browser",
    "league": "keep a table of agents, their games and their ratings",
    "match": "play trained agents against each other and rate them",
    "play": "play an environment yourself, or watch an agent, in a window or the terminal",
    "view": "play an environment yourself, or watch an agent, in a web page",
    "check": "check that an environment meets the contract that training relies on",
    "check-learner": "check a trainer, this one or yours, for common classes of bugs",
    "replay": "replay a recorded episode or the steps before an error",
    "sweep": "search for the best training settings of an environment",
    "export": "export a trained agent to ONNX, C or torch.export",
    "autotune": "find the fastest way to run an environment on this machine",
    "list": "list the environments",
    "new": "create a C environment from a template",
    "install": "install third-party environments in tested versions",
    "doctor": "check this machine and suggest fixes",
}

# Verbs of PufferLib 3 with another name here, or with no counterpart.
ELSEWHERE = {
    "profile": "puffer train, whose dashboard shows the time for collecting and learning,",
    "sanity": "puffer check-learner",
}

_REMEDIES = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "; free some space, or choose a folder on another disk"),
    **dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; make it writable, or choose another folder"),
}

EXAMPLES = (
    "puffer train breakout",
    "puffer train breakout --train.total-timesteps 2000000 --train.seed 7",
    "puffer train atari/pong --help",
    "puffer eval breakout --eval.episodes 100 --video breakout.mp4",
    "puffer play breakout",
)

THREADS_S = 5.0  # how long threads may continue after the program has finished


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``puffer`` with the arguments ``argv``, by default ``sys.argv[1:]``, and return the exit code."""
    code = 1  # of an exception that Python prints
    try:
        code = _run(list(sys.argv[1:] if argv is None else argv))
    finally:
        if argv is None and _threads():  # this is the program puffer, not a call from another one
            threading.Thread(target=_end_threads, args=(code,), daemon=True).start()
    return code


def _threads() -> list[str]:
    """Return the names of threads that keep the process from ending."""
    return [each.name for each in threading.enumerate() if not each.daemon and each is not threading.main_thread()]


def _end_threads(code: int) -> None:
    """Wait until the main thread has ended, and end the process with ``code`` if other threads keep it from ending."""
    while threading.main_thread().is_alive():
        time.sleep(0.1)
    time.sleep(THREADS_S)
    if names := _threads():
        try:
            warning = style("warning:", "warning", sys.stderr.isatty())
            note(
                f"{warning} threads were still running {THREADS_S:g} s after the end and were stopped: "
                f"{', '.join(names)}; join them in close() of the environment, or make them with daemon=True"
            )
            sys.stdout.flush()
        finally:  # also if the terminal is closed
            os._exit(code)


def _run(arguments: list[str]) -> int:
    # The threads of torch spin for milliseconds while they wait for each other. If another program uses one of their
    # cores, an update takes nine times as long. This makes them sleep sooner. It must be set before torch is imported.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115 - closed by >&-
    sys.stdin = sys.stdin or open(os.devnull)  # noqa: SIM115 - closed by <&-
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # print ? for ✓ or ± if the locale lacks them
    try:
        with plain_warnings():
            code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, for example `head`, has exited. Discard the buffered output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, UnknownNameError) as error:
        complain(str(error))
        return 2
    except PufferError as error:
        notes = [line for line in getattr(error, "__notes__", []) if "\n" not in line]  # others are stack traces
        complain("\n".join([str(error), *notes]))
        return 1
    except ModuleNotFoundError as error:
        complain(_missing_package_message(error))
        return 1
    except OSError as error:
        complain(_os_error_message(error))
        return 1
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "to allocate" in str(error)):  # torch has no class for this error
            raise
        wanted = str(error).partition("tried to allocate ")[2].partition(". ")[0]
        size = f" when allocating {wanted}" if wanted else ""
        complain(f"puffer: out of memory{size}; use fewer environments, or a smaller policy.hidden_size")
        return 1
    except KeyboardInterrupt:
        note("stopped")
        return 130
    except SystemExit as ended:  # a verb's --help, or code of the user
        if isinstance(ended.code, str):
            complain(ended.code)
            return 1
        return int(ended.code or 0)
    return code


def _missing_package_message(error: ModuleNotFoundError) -> str:
    """Return the message for a missing package. The packages of a user's environment are not part of an extra."""
    from pufferlib.installation.extras import required

    package = (error.name or "").partition(".")[0]
    if package in [requirement.name for requirement in required("train")]:
        return f"puffer: the package {package} is not installed; {way_to_install('train')}"
    return f"puffer: {error} ({place_of(error)}); install the package that has it, for example with pip"


def _os_error_message(error: OSError) -> str:
    """Return the message for an error of the operating system, with advice."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "puffer: the current folder no longer exists; change to another one, for example: cd"
    where = f"{error.filename}: " if error.filename else ""
    return f"puffer: {where}{error.strerror or error}{_REMEDIES.get(error.errno or 0, '')}"


def _dispatch(arguments: list[str]) -> int:
    verb = arguments[0] if arguments else "--help"
    if verb in ("--version", "-V"):
        say(f"pufferlib {pufferlib.__version__}")
        return 0
    if verb in ("--help", "-h", "help"):
        say(_help())
        return 0
    if verb in ELSEWHERE:
        raise UnknownNameError(f"puffer: PufferLib 3's verb {verb!r} is {as_typed(ELSEWHERE[verb])} here")
    if verb not in VERBS:
        raise UnknownNameError.of("puffer", "verb", verb, VERBS)
    module = importlib.import_module(f"pufferlib.cli.verbs.{verb.replace('-', '_')}")
    code: int = module.run(arguments[1:])
    return code


def _help() -> str:
    verbs = "\n".join(f"  {style(f'{verb:<15}', 'accent')}{about}" for verb, about in VERBS.items())
    examples = "\n".join(f"  {as_typed(example)}" for example in EXAMPLES)
    return (
        f"{style('puffer', 'bold')} {pufferlib.__version__}: fast environments, and agents that learn them\n\n"
        f"usage: {as_typed('puffer VERB [ARGUMENTS]')}\n\n{verbs}\n\n"
        f"Run {as_typed('puffer VERB --help')} for details. Examples:\n\n{examples}"
    )
