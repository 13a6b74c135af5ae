"""Import of old packages that use ``gym``, which is unmaintained, with ``gymnasium`` under that name."""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator, Sequence
from types import ModuleType

__all__ = ["gym_is_gymnasium"]


@contextlib.contextmanager
def gym_is_gymnasium() -> Iterator[None]:
    """Redirect ``import gym`` and ``import gym.anything`` to ``gymnasium`` inside the block.

    Use it only around the import of the old package. Afterwards the name ``gym`` is restored: a previously imported
    gym is available again, and an installed one can be imported.
    """
    finder = _Finder()
    before = _forget_gym()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _forget_gym()
        sys.modules.update(before)


def _forget_gym() -> dict[str, ModuleType]:
    """Remove gym and its modules from ``sys.modules``, and return them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "gym"]
    return {name: sys.modules.pop(name) for name in names}


class _Finder(importlib.abc.MetaPathFinder):
    """Finder for ``gym`` and its modules only."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module (``importlib.abc.MetaPathFinder``)."""
        if fullname.partition(".")[0] != "gym":
            return None
        return importlib.util.spec_from_loader(fullname, _Loader())


class _Loader(importlib.abc.Loader):
    """Loader that returns gymnasium's module of the same name."""

    def exec_module(self, module: ModuleType) -> None:
        """Store gymnasium's module where the import system looks up ``module``."""
        sys.modules[module.__name__] = importlib.import_module(f"gymnasium{module.__name__.removeprefix('gym')}")
