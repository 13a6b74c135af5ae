"""Control groups (cgroups) of version 1 and 2, with the limits of a container."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["ControlGroup", "control_groups", "words_of"]


class ControlGroup(NamedTuple):
    """Folder of one control group, and the version of its format: 1 or 2."""

    folder: Path
    version: int


def control_groups(controller: str, root: Path = Path("/")) -> Iterator[ControlGroup]:
    """Yield the groups whose limits apply to this process: its own group and all parents.

    Args:
        controller: Controller of the limits, "cpu" or "memory".
        root: Folder with /proc and /sys, for tests.
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
    """Return the words in a file of a control group, or an empty list if there is no such file."""
    try:
        return file.read_text().split()
    except OSError:
        return []
