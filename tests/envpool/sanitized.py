"""Import hook that replaces compiled modules by builds with a sanitizer.

The test copies this file as ``sitecustomize.py`` into the build folder SANITIZED, so that Python runs it first in every
process, including the workers of a pool. A module ``a.b`` is imported from ``a.b.so`` if that file exists.
"""

import os
import sys
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from typing import Any


class SanitizedFinder:
    """Finder of modules built with a sanitizer."""

    @staticmethod
    def find_spec(name: str, *_: Any) -> ModuleSpec | None:
        """Return the spec of a module that was built with a sanitizer, or None."""
        path = Path(os.environ["SANITIZED"], f"{name}.so")
        if not path.exists():
            return None
        return spec_from_file_location(name, path, loader=ExtensionFileLoader(name, str(path)))


if "SANITIZED" in os.environ:
    sys.meta_path.insert(0, SanitizedFinder)
