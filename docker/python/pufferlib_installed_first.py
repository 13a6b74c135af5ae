"""Import hook that prefers the installed ``pufferlib`` over the sources in the working folder.

Python first looks for modules in the folder of a script, which scripts rely on to import their neighbors. The sources
of a checkout have no compiled modules. Therefore this hook finds ``pufferlib`` where the image installed it.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


class InstalledFirst:
    """Meta path finder for the installed ``pufferlib``."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of the installed package, or None for every other name."""
        if name != "pufferlib":
            return None
        return PathFinder.find_spec(name, [str(Path(__file__).parent)])


sys.meta_path.insert(0, InstalledFirst)
