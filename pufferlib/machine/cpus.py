"""Number of cores that this process may really use: affinity and container quota, not what the machine has."""

import os
from pathlib import Path

from pufferlib.machine.cgroups import ControlGroup, control_groups, words_of

__all__ = ["usable_cpus"]


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the cores that this process can keep busy: those it may run on, or its cgroup quota if that is less.

    At least 1. A quota of 2.5 cores counts as 2: a third busy worker would stall all of them.

    Args:
        root: Where /proc and /sys are; tests pass a folder of their own.
    """
    allowed = len(os.sched_getaffinity(0))
    quotas = [quota for group in control_groups("cpu", root) if (quota := _quota(group)) is not None]
    return max(1, min(allowed, *map(int, quotas))) if quotas else allowed


def _quota(group: ControlGroup) -> float | None:
    """Return the CPU quota of a control group, in cores; None without one."""
    if group.version == 2:
        limit, period = words_of(group.folder / "cpu.max") or ["max", "1"]
        return None if limit == "max" else int(limit) / int(period)
    (limit,), (period,) = (words_of(group.folder / f"cpu.cfs_{name}_us") or ["-1"] for name in ("quota", "period"))
    return int(limit) / int(period) if int(limit) > 0 and int(period) > 0 else None
