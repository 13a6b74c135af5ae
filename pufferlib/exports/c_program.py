"""Check of exported C files, which are compiled and run on a recording."""

import tempfile
from pathlib import Path

import numpy as np

from pufferlib.errors import PufferError
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import TrainedPolicy
from pufferlib.native.compiler import find_compiler

__all__ = ["play"]

FLAGS = ("-std=c99", "-O2")


def play(source: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Compile an exported file, run it on the observations of a recording, and return its outputs.

    Raises:
        PufferError: There is no compiler, the file does not compile, or the program fails.
    """
    import subprocess

    with tempfile.TemporaryDirectory(prefix="puffer-export-") as folder:
        program = Path(folder, "agent")
        flag = f"-D{trained.name.upper()}_MAIN"
        done = find_compiler("export").run([*FLAGS, flag, "-x", "c", source, "-x", "none", "-lm", "-o", program])
        if done.returncode:
            raise PufferError(f"export: the C compiler fails on {source}:\n{done.stderr.strip()}")
        finished = subprocess.run([str(program)], input=_input(recording), capture_output=True)
    if finished.returncode:
        raise PufferError(f"export: the compiled agent exited with code {finished.returncode}")
    lines = np.loadtxt(finished.stdout.decode().splitlines(), dtype=np.float64, ndmin=2)
    steps, rows = recording.begins.shape
    table = lines.reshape(rows, steps, -1).swapaxes(0, 1)
    size = table.shape[-1] - recording.outputs.params.shape[-1] - 1
    actions = table[..., :size].reshape(recording.outputs.actions.shape).astype(recording.outputs.actions.dtype)
    return Outputs(table[..., size:-1].astype(np.float32), table[..., -1].astype(np.float32), actions)


def _input(recording: Recording) -> bytes:
    """Return the input of the program: for each agent and step, a flag for the start of an episode and an observation.

    All steps of the first agent come first, then the steps of the next one.
    """
    steps, rows = recording.begins.shape
    seen = np.ascontiguousarray(recording.observations).reshape(steps, rows, -1).view(np.uint8)
    flags = recording.begins.astype(np.uint8)[..., None]
    flags[0] = 1
    return np.concatenate([flags, seen], axis=-1).swapaxes(0, 1).tobytes()
