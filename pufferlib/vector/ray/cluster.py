"""Connection to a Ray cluster: the one already connected, the user's, or a small one on this machine."""

import importlib
import logging
import os
import socket
from typing import Any

from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.machine.commands import way_to_install
from pufferlib.machine.cpus import usable_cpus

__all__ = ["ADDRESS", "cluster_cpus", "connect", "cpus_per_worker", "describe_room", "session_of"]

WHERE = "vector.Ray"
ADDRESS = "RAY_ADDRESS"
ANSWER_S = 10.0
# Upper limit of the object store, which only holds batches for milliseconds.
STORE_BYTES = 1 << 30
LEAST_STORE_BYTES = 80 << 20  # minimum that Ray accepts
# Linux allows 107 bytes in a socket's address.
LONGEST_TEMP_DIR = 107 - len("/ray/session_2026-11-22_12-34-56_123456_1234567/sockets/plasma_store")

_started: list[str] = []  # addresses of clusters started by this process


def connect() -> Any:
    """Return the module ``ray``, connected to a cluster.

    A cluster started by this process ends with it. A cluster started by others is never shut down.

    Raises:
        BindingMissing: Ray is not installed.
        APIUsageError: No cluster replies at the address that the user gave.
    """
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise BindingMissing(f"{WHERE}: this backend needs Ray; {way_to_install('ray')}") from error
    if not ray.is_initialized():
        quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
        address = os.environ.get(ADDRESS)
        if address:
            _join(ray, address, quiet)
        else:
            # Ray listens on all interfaces and demands its token unless RAY_AUTH_MODE disables that. Without a token,
            # anyone who can reach its ports could run code here.
            ray.init(
                "local",
                _temp_dir=_temp_dir(),
                num_cpus=usable_cpus(),
                object_store_memory=_store_bytes(),
                include_dashboard=False,
                **quiet,
            )
            _started.append(_address(ray))
    return ray


def _join(ray: Any, address: str, options: dict[str, Any]) -> None:
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    try:
        if colon:  # check the port first, because Ray itself would retry for many minutes
            socket.create_connection((host.strip("[]"), int(port)), ANSWER_S).close()
        ray.init(address, **options)
    except (OSError, RuntimeError, ValueError) as error:
        raise APIUsageError(
            f"{WHERE}: a Ray cluster must answer at {ADDRESS}={address}, got {type(error).__name__}: {error}; start "
            f"one there (ray start --head), or unset {ADDRESS} to use this machine alone"
        ) from error


def _store_bytes() -> int:
    """Return half of the free shared memory, at most 1 GiB. Then Ray need not keep its objects in a file."""
    try:
        shm = os.statvfs("/dev/shm")
    except OSError:
        return LEAST_STORE_BYTES
    return min(STORE_BYTES, max(LEAST_STORE_BYTES, shm.f_bavail * shm.f_frsize // 2))


def _temp_dir() -> str | None:
    """Return the folder for Ray's sockets, or None for Ray's default unless its name is too long."""
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR", "")
    return None if len(os.fsencode(folder)) <= LONGEST_TEMP_DIR else "/tmp/ray"


def _address(ray: Any) -> str:
    address: str = ray.get_runtime_context().gcs_address
    return address


def session_of(ray: Any) -> tuple[str, str] | None:
    """Return the address of the cluster and the job of this process in it, or None without a connection.

    Actors and results belong to one session. Ray itself would connect to any cluster, or wait for one, if they are used
    after ``ray.shutdown``.
    """
    return (_address(ray), ray.get_runtime_context().get_job_id()) if ray.is_initialized() else None


def cpus_per_worker(ray: Any) -> int:
    """Return the number of CPUs that each worker reserves: 0 in a cluster started by this process, else 1."""
    return 0 if _address(ray) in _started else 1


def cluster_cpus() -> int:
    """Return the number of CPUs of the cluster, used or not, at least 1."""
    return max(1, int(connect().cluster_resources().get("CPU", 0)))


def describe_room(ray: Any) -> str:
    """Describe the CPUs of the cluster, for messages."""
    nodes = sum(node["Alive"] for node in ray.nodes())
    total, free = (resources.get("CPU", 0) for resources in (ray.cluster_resources(), ray.available_resources()))
    return f"{free:g} free of {total:g} CPUs on {nodes} node{'s'[: nodes != 1]}"
