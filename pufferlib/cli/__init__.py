"""The ``puffer`` command and its verbs; the only part of pufferlib that prints.

Exit codes: 0 done; 1 it could not be done, with a sentence that says why; 2 the command was not
understood; 130 stopped by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP.
"""

import errno
import importlib
import io
import os
import sys
from collections.abc import Sequence

import pufferlib
from pufferlib.cli.console import complain, note, plain_warnings, say, style
from pufferlib.errors import PufferError, UnknownNameError, UsageError
from pufferlib.machine.commands import as_typed, way_to_install

__all__ = ["main"]

# Each verb is a module of its name, with _ for -, and has ``run(argv) -> exit code``; imported only when it is called.
VERBS = {
    "train": "train an agent, evaluate it, draw its learning curve and film it",
    "eval": "evaluate a trained agent, against random play",
    "runs": "list runs with their scores, and the settings that differ",
    "plot": "draw the learning curves of runs in one picture",
    "league": "keep agents, their games and their ratings in a table that lasts",
    "match": "let trained agents play against each other, and rate them",
    "play": "play an environment yourself, by keyboard, in a window or in the terminal",
    "check": "check an environment against the contract that training relies on",
    "check-learner": "check a trainer, this one or yours, and say which class of bug it points to",
    "replay": "step an environment again to the end that an error or a recording has kept",
    "sweep": "search for the settings with which an environment is learned best",
    "export": "write a trained agent into one file: ONNX, C or torch.export",
    "autotune": "measure how an environment runs fastest on this machine",
    "list": "list the environments",
    "new": "write an environment of your own in C, from a template",
    "install": "install third-party environments, each as it is known to work",
    "doctor": "look at this machine, and say what to do where something is missing",
}

# Verbs of PufferLib 3 that have another name, or none, here.
ELSEWHERE = {
    "profile": "puffer train, whose dashboard shows the seconds of collecting and learning,",
    "sanity": "puffer check-learner",
}

_REMEDIES = {
    **dict.fromkeys(
        (errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "; make room, or choose a folder on another disk with --runs"
    ),
    **dict.fromkeys(
        (errno.EACCES, errno.EPERM, errno.EROFS), "; permit writing there, or choose another folder with --runs"
    ),
}

EXAMPLES = (
    "puffer train breakout",
    "puffer train breakout --train.total-timesteps 2000000 --train.seed 7",
    "puffer train atari/pong --help",
    "puffer eval breakout --eval.episodes 100 --video breakout.mp4",
    "puffer play breakout",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``puffer`` with the arguments ``argv``, by default the command line's; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    # Must be said before torch is loaded. Its threads spin for milliseconds while they wait for one another: when
    # another program has the core of one of them, an update takes nine times as long. They shall sleep soon.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115 - closed by >&-
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # in a locale without ✓ or ±, a ? is better than no answer
    try:
        with plain_warnings():
            code = _dispatch(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, for example `head`, has seen enough. What is still buffered must go nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (UsageError, UnknownNameError) as error:
        complain(str(error))
        return 2
    except PufferError as error:
        notes = [line for line in getattr(error, "__notes__", []) if "\n" not in line]  # others are stacks
        complain("\n".join([str(error), *notes]))
        return 1
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        complain(f"puffer: the package {package} is not installed; {way_to_install('train')}")
        return 1
    except OSError as error:
        complain(_about(error))
        return 1
    except (MemoryError, RuntimeError) as error:
        if not (isinstance(error, MemoryError) or "to allocate" in str(error)):  # torch has no class of its own for it
            raise
        wanted = str(error).partition("tried to allocate ")[2].partition(". ")[0]
        size = f" for {wanted} at once" if wanted else ""
        complain(f"puffer: the memory is too small{size}; take fewer environments, or a smaller policy.hidden_size")
        return 1
    except KeyboardInterrupt:
        note("stopped")
        return 130
    except SystemExit as ended:  # a verb's --help
        return int(ended.code or 0)
    return code


def _about(error: OSError) -> str:
    """Say what the system refused, and what to do."""
    try:
        os.getcwd()
    except FileNotFoundError:
        return "puffer: the folder that this runs in is gone; go to one that is there, for example: cd"
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
        f"{as_typed('puffer VERB --help')} says more. For example:\n\n{examples}"
    )
