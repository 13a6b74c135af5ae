"""Rank and address of this process, from the environment variables of ``torchrun`` and other launchers."""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from pufferlib.errors import APIUsageError

__all__ = ["Place", "place_of_this_process"]


NEEDED = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
HIGHEST_PORT = 65_535
# Variables of torchrun, Slurm and Open MPI.
LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK")
LOCAL_SIZES = ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE")


class Place(NamedTuple):
    """Rank of this process, the number of ranks, and where they meet.

    Attributes:
        rank: Rank, from 0.
        size: Number of processes.
        local_rank: Rank among the processes of this machine, from 0.
        local_size: Number of processes on this machine.
        address: Address of rank 0.
        port: Port at which the processes meet.
    """

    rank: int
    size: int
    local_rank: int
    local_size: int
    address: str
    port: int

    def variables(self) -> dict[str, str]:
        """Return the environment variables that describe this place."""
        return {
            "RANK": str(self.rank),
            "WORLD_SIZE": str(self.size),
            "LOCAL_RANK": str(self.local_rank),
            "LOCAL_WORLD_SIZE": str(self.local_size),
            "MASTER_ADDR": self.address,
            "MASTER_PORT": str(self.port),
        }


def place_of_this_process(variables: Mapping[str, str] | None = None) -> Place | None:
    """Read the rank and address from environment variables. Return None if this is the only process.

    Raises:
        APIUsageError: Some of the variables are missing or invalid.
    """
    found = os.environ if variables is None else variables
    if not {"RANK", "WORLD_SIZE"} & found.keys():
        return None
    if missing := [name for name in NEEDED if not found.get(name)]:
        given = ", ".join(f"{name}={found[name]}" for name in NEEDED if found.get(name))
        raise APIUsageError(
            "train: RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT must be set together, "
            f"got {given or 'empty ones'} without {' and '.join(missing)}; start with torchrun, which sets all, or "
            f"unset {' and '.join(name for name in NEEDED if name in found)} to train in one process"
        )
    size = _number(found, "WORLD_SIZE", 1, None)
    rank = _number(found, "RANK", 0, size - 1)
    of_size, of_rank = _first(LOCAL_SIZES, found), _first(LOCAL_RANKS, found)
    local_size = _number(found, of_size, 1, size) if of_size else 1
    local_rank = _number(found, of_rank, 0, local_size - 1) if of_rank and of_size else 0
    port = _number(found, "MASTER_PORT", 1, HIGHEST_PORT)
    return Place(rank, size, local_rank, local_size, found["MASTER_ADDR"], port) if size > 1 else None


def _first(names: Sequence[str], variables: Mapping[str, str]) -> str:
    """Return the first of the names that is a variable, or "" if none is."""
    return next((name for name in names if name in variables), "")


def _number(variables: Mapping[str, str], name: str, low: int, high: int | None) -> int:
    text = variables[name]
    if text.isdecimal() and low <= int(text) and (high is None or int(text) <= high):
        return int(text)
    kind = f"a number from {low} to {high}" if high is not None else f"a number from {low}"
    raise APIUsageError(f"train: the variable {name} must be {kind}, got {text!r}; start with torchrun, or unset it")
