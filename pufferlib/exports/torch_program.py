"""Export with ``torch.export``."""

from pathlib import Path
from typing import Any

import torch
from torch.export.passes import move_to_device_pass

from pufferlib.exports import graph
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import TrainedPolicy

__all__ = ["play", "write"]


def write(path: Path, trained: TrainedPolicy, device: torch.device) -> None:
    """Write the policy as a program for ``device``. Its inputs must be on the same device.

    Raises:
        APIUsageError: The policy cannot be traced.
    """
    made = graph.Graph(trained)
    program = graph.traced(made)
    with graph.quietly():
        if device.type != "cpu":
            program = move_to_device_pass(program, str(device))
        torch.export.save(program, path, extra_files=graph.facts(trained, made))


def play(path: Path, trained: TrainedPolicy, device: torch.device, recording: Recording) -> Outputs:
    """Run the program on the observations of a recording, and return its outputs."""
    with graph.quietly():
        module = torch.export.load(path).module()

    def step(inputs: list[Any]) -> list[Any]:
        with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):  # TF32 rounds to 10 bits
            outputs = module(*(torch.from_numpy(array).to(device) for array in inputs))
        return [output.numpy(force=True) for output in outputs]

    return graph.play(step, graph.Graph(trained), recording)
