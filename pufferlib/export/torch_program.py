"""Programs of ``torch.export``, which torch alone can load."""

from pathlib import Path
from typing import Any

import torch

from pufferlib.export import graph
from pufferlib.export.recording import Outputs, Recording
from pufferlib.export.trained import TrainedPolicy

__all__ = ["play", "write"]


def write(path: Path, trained: TrainedPolicy) -> None:
    """Write the policy as a program.

    Raises:
        APIUsageError: It does what cannot be traced.
    """
    made = graph.Graph(trained)
    program = graph.traced(made)
    with graph.quietly():
        torch.export.save(program, path, extra_files=graph.facts(trained, made))


def play(path: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Let the program answer the observations of a recording."""
    with graph.quietly():
        module = torch.export.load(path).module()

    def step(inputs: list[Any]) -> list[Any]:
        with torch.no_grad():
            return [output.numpy() for output in module(*map(torch.from_numpy, inputs))]

    return graph.play(step, graph.Graph(trained), recording)
