"""Load of this machine over the last minutes."""

import shutil
import subprocess
import time
from collections import deque
from typing import Any

import psutil

__all__ = ["MachineLoad"]


SAMPLES = 600  # about ten minutes of a page that asks every second
INTERVAL_S = 0.9  # shortest time between two samples
QUERY = ("nvidia-smi", "--query-gpu=utilization.gpu,memory.used,memory.total", "--format=csv,noheader,nounits")
QUERY_S = 5.0  # longest wait for nvidia-smi


class MachineLoad:
    """Load of the processors, the memory and the GPUs. A sample is taken when it is asked for."""

    def __init__(self) -> None:
        self._samples: deque[dict[str, float]] = deque(maxlen=SAMPLES)
        self._has_gpu = shutil.which(QUERY[0]) is not None
        psutil.cpu_percent()  # percentages count from the previous call

    def sample(self) -> dict[str, Any]:
        """Return the samples so far as plain data, with a new one at the end if the last is old enough.

        Returns:
            Dict with "cores", the number of cores, "memory_bytes", and "samples". Each sample has its "time" in
            seconds, and the percentages "cpu", "memory" and, for each GPU, "gpu 0" and "gpu 0 memory".
        """
        now = time.time()
        if not self._samples or now - self._samples[-1]["time"] >= INTERVAL_S:
            cpu, memory = psutil.cpu_percent(), psutil.virtual_memory().percent
            self._samples.append({"time": round(now, 1), "cpu": cpu, "memory": memory, **self._gpus()})
        return {
            "cores": psutil.cpu_count(),
            "memory_bytes": psutil.virtual_memory().total,
            "samples": list(self._samples),
        }

    def _gpus(self) -> dict[str, float]:
        if not self._has_gpu:
            return {}
        try:
            output = subprocess.run(QUERY, capture_output=True, text=True, timeout=QUERY_S, check=True).stdout
            rows = [[float(word) for word in line.split(",")] for line in output.splitlines()]
            load: dict[str, float] = {}
            for number, (busy, used, total) in enumerate(rows):
                load |= {f"gpu {number}": busy, f"gpu {number} memory": round(100 * used / total, 1)}
        except (OSError, ValueError, subprocess.SubprocessError):  # a driver without GPU, or values "[N/A]"
            self._has_gpu = False
            return {}
        return load
