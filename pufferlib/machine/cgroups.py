"""Control groups: the limits that a container puts on this process, of version 1 or 2."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ControlGroup", "control_groups", "words_of"]


class ControlGroup(NamedTuple):
    """One group, as the folder with its limits, and the version of its format: 1 or 2."""

    folder: Path
    version: int


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[ControlGroup]:
    """Yield the groups whose limits on ``controller`` hold for this process: its own, and each above it.

    Args:
        controller: "cpu" or "memory".
        root: Where /proc and /sys are; tests pass a folder of their own.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        base = root / "sys/fs/cgroup" / (controller if controllers else "")
        folder = base / path.lstrip("/")
        for group in (folder, *folder.parents):
            if group.is_relative_to(base):
                yield ControlGroup(group, 1 if controllers else 2)


def words_of(file: Path) -> list[str]:
    """Return the words in a file of a control group; none if it is not there."""
    try:
        return file.read_text().split()
    except OSError:
        return []
