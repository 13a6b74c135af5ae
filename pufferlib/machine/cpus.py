"""Number of cores that this process may really use: affinity and container quota, not what the machine has."""

import os
import warnings
from pathlib import Path

from pufferlib.machine.cgroups import ControlGroup, control_groups, words_of

__all__ = ["has_bfloat16", "usable_cpus", "warn_without_bfloat16"]

BFLOAT16_FLAGS = {"avx512_bf16", "amx_bf16", "bf16"}  # the last one is of ARM


def usable_cpus(root: Path = Path("/")) -> int:
    """Return the cores that this process can keep busy: those it may run on, or its cgroup quota if that is less.

    At least 1. A quota of 2.5 cores counts as 2: a third busy worker would stall all of them. Processes that train
    together have equal shares of them; ``LOCAL_WORLD_SIZE``, as torchrun sets it, says how many these are.

    Args:
        root: Where /proc and /sys are; tests pass a folder of their own.
    """
    allowed = len(os.sched_getaffinity(0))
    quotas = [quota for group in control_groups("cpu", root) if (quota := _quota(group)) is not None]
    share = os.environ.get("LOCAL_WORLD_SIZE", "")
    return max(1, min([allowed, *map(int, quotas)]) // (int(share) if share.isdecimal() and int(share) else 1))


def has_bfloat16(root: Path = Path("/")) -> bool:
    """Return True if a core multiplies bfloat16 by itself; without it, bfloat16 is slower than float32.

    Args:
        root: Where /proc is; tests pass a folder of their own.
    """
    return not BFLOAT16_FLAGS.isdisjoint((root / "proc/cpuinfo").read_text("utf-8").split())


def warn_without_bfloat16(setting: str) -> None:
    """Warn of bfloat16 on a CPU without instructions for it; ``setting`` names what asked for it."""
    if not has_bfloat16():
        warnings.warn(
            f"{setting}: this CPU has no instructions for bfloat16 (avx512_bf16 or amx_bf16), so that it takes two to "
            "three times as long as float32; use float32",
            stacklevel=3,
        )


def _quota(group: ControlGroup) -> float | None:
    """Return the CPU quota of a control group, in cores; None without one."""
    if group.version == 2:
        limit, period = words_of(group.folder / "cpu.max") or ["max", "1"]
        return None if limit == "max" else int(limit) / int(period)
    (limit,), (period,) = (words_of(group.folder / f"cpu.cfs_{name}_us") or ["-1"] for name in ("quota", "period"))
    return int(limit) / int(period) if int(limit) > 0 and int(period) > 0 else None
