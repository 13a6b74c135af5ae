"""Number of CPU cores available to this process, with its affinity and container quota."""

import os
import warnings
from pathlib import Path

from pufferlib.machine.cgroups import ControlGroup, control_groups, words_of

__all__ = ["allowed_cpus", "has_bfloat16", "usable_cpus", "warn_without_bfloat16"]

BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last one is for ARM


def allowed_cpus() -> list[int]:
    """Return the numbers of the cores that this process may run on. macOS has no affinity, so there it is all cores."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the number of cores that this process can use, at least 1.

    This is the number of cores it may run on, or its cgroup quota if that is smaller. A quota of 2.5 cores counts as
    2, because a third busy worker would stall all of them. If ``LOCAL_WORLD_SIZE`` is set, as by torchrun, the cores
    are divided by this number of training processes.

    Args:
        root: Folder with /proc and /sys, for tests.
    """
    allowed = len(allowed_cpus())
    quotas = [quota for group in control_groups("cpu", root) if (quota := _quota(group)) is not None]
    share = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, min([allowed, *map(int, quotas)]) // (int(share) if share.isdecimal() and int(share) else 1))


def has_bfloat16(root: Path = Path("/")) -> bool:
    """Return whether Linux reports bfloat16 instructions. Without them, bfloat16 is slower than float32.

    Args:
        root: Folder with /proc, for tests.
    """
    try:
        flags = (root / "proc/cpuinfo").read_text("utf-8").split()
    except OSError:
        return False
    return not BFLOAT16_FLAGS.isdisjoint(flags)


def warn_without_bfloat16(setting: str) -> None:
    """Warn if the CPU has no bfloat16 instructions. ``setting`` is the setting that selected bfloat16."""
    if not has_bfloat16():
        warnings.warn(
            f"{setting}: this CPU has no instructions for bfloat16 (avx512_bf16 or amx_bf16), so bfloat16 takes two "
            "to three times as long as float32; use float32",
            stacklevel=3,
        )


def _quota(group: ControlGroup) -> float | None:
    """Return the CPU quota of a control group in cores, or None if it has none."""
    if group.version == 2:
        limit, period = words_of(group.folder / "cpu.max") or ["max", "1"]
        return None if limit == "max" else int(limit) / int(period)
    (limit,), (period,) = (words_of(group.folder / f"cpu.cfs_{name}_us") or ["-1"] for name in ("quota", "period"))
    return int(limit) / int(period) if int(limit) > 0 and int(period) > 0 else None
