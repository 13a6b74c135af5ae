"""Import the installed ``pufferlib``, also where the working folder is a checkout with its sources.

Python looks for modules in a script's folder first, as scripts that import their neighbours expect. The sources of a
checkout have no compiled modules, so this one name is looked up where the image installed it.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path


class InstalledFirst:
    """Finder of the installed ``pufferlib``."""

    @staticmethod
    def find_spec(name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Return the spec of the installed package, or None for every other name."""
        if name != "pufferlib":
            return None
        return PathFinder.find_spec(name, [str(Path(__file__).parent)])


sys.meta_path.insert(0, InstalledFirst)
