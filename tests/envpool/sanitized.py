"""Modules that a sanitizer watches, in the place of the usual ones.

The test copies this file as ``sitecustomize.py`` to the folder of its builds, SANITIZED, so that Python runs it first
in each process, the workers of a pool among them. A module ``a.b`` is imported from ``a.b.so`` if that is there.
"""

import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any


class SanitizedFinder:
    """Finder of modules that were built with a sanitizer."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> ModuleSpec | None:
        """Find a module that is among the builds; None if it is not."""
        path = Path(os.environ["SANITIZED"], f"{name}.so")
        if not path.exists():
            return None
        return spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))


if "SANITIZED" in os.environ:
    sys.meta_path.insert(0, SanitizedFinder)
