"""Start worker processes: from a small server that has numpy and gymnasium loaded, never from the caller's memory."""

import importlib.machinery
import multiprocessing
import sys
import threading
import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess

import cloudpickle  # type: ignore[import-untyped]

from pufferlib.errors import APIUsageError
from pufferlib.vector import worker
from pufferlib.vector.plan import EnvPlan

__all__ = ["pickle_envs", "start_worker"]

_lock = threading.Lock()


def start_worker(index: int) -> tuple[ForkServerProcess, Connection]:
    """A new worker process, which waits for its ``Setup`` at the other end of the connection."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([worker.__name__])  # counts when the first worker starts
    ours, theirs = context.Pipe()
    process = context.Process(target=worker.main, args=(theirs,), name=f"pufferlib-worker-{index}")
    try:
        with _lock, _without_main():
            process.start()
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return process, ours


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the caller's script, which multiprocessing would run again in every worker.

    That would load whatever the script imports (torch: seconds and 140 MiB in each worker), and
    start workers of workers where it has no ``if __name__ == "__main__"``. Creators that the script
    defines are sent by value instead.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def pickle_envs(plans: Sequence[EnvPlan]) -> bytes:
    """``plans`` as bytes that ``pickle.loads`` restores in a worker.

    Functions and classes of scripts, notebooks and other modules that a worker could not import
    are sent by value.

    Raises:
        APIUsageError: A creator or an argument cannot be sent.
    """
    modules = {getattr(getattr(plan.creator, "func", plan.creator), "__module__", None) for plan in plans}
    by_value = [sys.modules[name] for name in modules if name in sys.modules and not _importable(name)]
    for module in by_value:
        cloudpickle.register_pickle_by_value(module)
    try:
        data: bytes = cloudpickle.dumps(tuple(plans))
        return data
    except Exception as error:
        raise APIUsageError(
            f"vector.make: Multiprocessing must be able to pickle creators and arguments, got {error}; "
            "create what cannot be sent (files, locks, windows) inside the creator, or use backend=Serial"
        ) from error
    finally:
        for module in by_value:
            cloudpickle.unregister_pickle_by_value(module)


def _importable(name: str) -> bool:
    """Whether another process with our ``sys.path`` would find module ``name`` where we did."""
    if name == "__main__":
        return True  # cloudpickle takes care of it
    path, spec = None, None
    for depth in range(1, name.count(".") + 2):
        spec = importlib.machinery.PathFinder.find_spec(".".join(name.split(".")[:depth]), path)
        if spec is None:
            return name in sys.builtin_module_names
        path = spec.submodule_search_locations
    return spec is not None and spec.origin == getattr(sys.modules[name], "__file__", None)
