"""Cache for results of ``autotune``, with a JSON file per machine and environment."""

import functools
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

import pufferlib
from pufferlib.machine.caches import cache_folder
from pufferlib.machine.cpus import usable_cpus

__all__ = ["SIZES", "TuningCache", "cache_key", "newest_rows"]

SIZES = ("num_envs", "num_threads")  # keyword arguments of environments that batch themselves
PACKAGES = (pufferlib, np, gymnasium)


class TuningCache:
    """Cache file of one key.

    Args:
        key: Key from ``cache_key``. None disables the cache.
    """

    def __init__(self, key: dict[str, Any] | None) -> None:
        self._key = key
        name = hashlib.sha256(json.dumps(key, sort_keys=True).encode()).hexdigest()[:24]
        self._path = cache_folder("autotune") / f"{name}.json"

    def read(self) -> list[dict[str, Any]]:
        """Return the cached configurations, or an empty list if there are none or the file is damaged."""
        key, rows = _read(self._path) if self._key is not None else (None, [])
        return rows if key == self._key else []

    def write(self, configs: list[dict[str, Any]]) -> None:
        """Store ``configs`` atomically. If the folder is not writable, do nothing."""
        if self._key is None:
            return
        with suppress(OSError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, temporary = tempfile.mkstemp(dir=self._path.parent)  # readable by the user alone
            try:
                with os.fdopen(descriptor, "w") as file:
                    json.dump({"key": self._key, "configs": configs}, file, indent=1)
                os.replace(temporary, self._path)
            except BaseException:
                os.unlink(temporary)
                raise


def newest_rows(creator: Any, kwargs: Any) -> list[dict[str, Any]]:
    """Return the newest cached configurations of an environment, for any limits and any values of ``SIZES``."""
    key = _without_sizes(cache_key(creator, None, kwargs, ()))
    files = sorted(cache_folder("autotune").glob("*.json"), key=lambda file: file.stat().st_mtime, reverse=True)
    entries = (_read(file) for file in files if key is not None)
    return next((rows for other, rows in entries if _without_sizes(other) == key), [])


def _read(path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    """Return the key and the rows of a file, or ``(None, [])`` if it is missing or damaged."""
    try:
        content = json.loads(path.read_text())
        return content["key"], content["configs"]
    except (OSError, ValueError, LookupError, TypeError):
        return None, []


def _without_sizes(key: dict[str, Any] | None) -> Any:
    """Return ``key`` without limits and ``SIZES``, which are part of the result."""
    if key is None:
        return None
    try:
        function, args, keywords = key["env"]
        return [key["machine"], function, args, [pair for pair in keywords if pair[0] not in map(repr, SIZES)]]
    except (LookupError, TypeError, ValueError):  # written by another version
        return None


def cache_key(creator: Any, args: Any, kwargs: Any, limits: tuple[float, ...]) -> dict[str, Any] | None:
    """Return everything that the results depend on, or None if the environment has no stable name."""
    env = _identity(functools.partial(creator, *(args or ()), **(kwargs or {})))
    if env is None:
        return None
    versions = {package.__name__: package.__version__ for package in PACKAGES}
    machine = {"cpu": _cpu_model(), "usable_cpus": usable_cpus(), "python": platform.python_version(), **versions}
    return {"env": env, "limits": list(limits), "machine": machine}


def _identity(value: Any) -> Any:
    """Return a JSON value that identifies ``value`` across processes, or None if there is none."""
    if isinstance(value, functools.partial):
        return _identity([value.func, list(value.args), value.keywords])
    if isinstance(value, Mapping):
        return _identity([[key, value[key]] for key in sorted(value)])
    if isinstance(value, list | tuple):
        parts = [_identity(part) for part in value]
        return None if None in parts else parts
    if hasattr(value, "__qualname__"):
        return _name_and_source(value)
    text = repr(value)
    return None if " at 0x" in text else text


def _name_and_source(value: Any) -> str | None:
    """Identify a function or class by its name and by the current version of its source file."""
    source = getattr(sys.modules.get(value.__module__), "__file__", None)
    if "<" in value.__qualname__ or source is None:
        return None
    state = os.stat(source)
    return f"{value.__module__}.{value.__qualname__} {source} {state.st_mtime_ns} {state.st_size}"


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if "model name" in line), platform.machine())
