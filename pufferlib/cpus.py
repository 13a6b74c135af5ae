"""How many cores this process may really use: affinity and container quota, not what the machine has."""

import os
from pathlib import Path

__all__ = ["usable_cpus"]

_MEMBERSHIP = Path("/proc/self/cgroup")
_CGROUPS = Path("/sys/fs/cgroup")


def usable_cpus() -> int:
    """Cores that this process can keep busy: those it may run on, or its cgroup quota if that is less.

    At least 1. A quota of 2.5 cores counts as 2: a third busy worker would stall all of them.
    """
    allowed = len(os.sched_getaffinity(0))
    quota = _quota(_MEMBERSHIP, _CGROUPS)
    return allowed if quota is None else max(1, min(allowed, int(quota)))


def _quota(membership: Path, root: Path) -> float | None:
    """The smallest CPU quota, in cores, on the way from this process's cgroup to the root; None without one."""
    try:
        lines = membership.read_text().splitlines()
    except OSError:
        return None
    quotas = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            base, read = root, _quota_v2
        elif "cpu" in controllers.split(","):
            base, read = root / "cpu", _quota_v1
        else:
            continue
        folder = base / path.lstrip("/")
        quotas += [read(parent) for parent in (folder, *folder.parents) if parent.is_relative_to(base)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _quota_v2(folder: Path) -> float | None:
    limit, period = _words(folder / "cpu.max") or ("max", "1")
    return None if limit == "max" else int(limit) / int(period)


def _quota_v1(folder: Path) -> float | None:
    limit = _words(folder / "cpu.cfs_quota_us") or ["-1"]
    period = _words(folder / "cpu.cfs_period_us") or ["0"]
    return int(limit[0]) / int(period[0]) if int(limit[0]) > 0 and int(period[0]) > 0 else None


def _words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
