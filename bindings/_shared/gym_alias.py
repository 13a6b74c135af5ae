"""Old packages import ``gym``, which nobody maintains; here they get ``gymnasium`` under that name."""

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
    """In the block, ``import gym`` and ``import gym.anything`` give the modules of ``gymnasium``.

    Put it around the import of the old package alone. Afterwards the name ``gym`` is what it was: a
    gym that was imported before is there again, and one that is installed can be imported.
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
    """Take gym and its modules out of ``sys.modules``; returns them."""
    names = [name for name in sys.modules if name.partition(".")[0] == "gym"]
    return {name: sys.modules.pop(name) for name in names}


class _Finder(importlib.abc.MetaPathFinder):
    """Finds ``gym`` and its modules, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a module (``importlib.abc.MetaPathFinder``)."""
        if fullname.partition(".")[0] != "gym":
            return None
        return importlib.util.spec_from_loader(fullname, _Loader())


class _Loader(importlib.abc.Loader):
    """Loads gymnasium's module of the same name, once for both names."""

    def exec_module(self, module: ModuleType) -> None:
        """Put gymnasium's module where the import system will look for ``module``."""
        sys.modules[module.__name__] = importlib.import_module(f"gymnasium{module.__name__.removeprefix('gym')}")
