"""Virtual environments of isolated stacks, and the code that imports pufferlib in them."""

import os
from pathlib import Path

import pufferlib

__all__ = ["IMAGE_FOLDER", "bootstrap", "find_interpreter", "stack_folders", "user_folder"]

#: Folder of the stacks in the images.
IMAGE_FOLDER = Path("/opt/stacks")

# pufferlib is not installed in the stack. This code imports it by the paths that the parent passes. In an editable
# installation the compiled modules are in another folder, so each of them has its own path. All other modules are
# found in the folder of the package.
_BOOTSTRAP = """
import importlib.abc, importlib.util, sys
class Finder(importlib.abc.MetaPathFinder):
    files = {files!r}
    def find_spec(self, name, path=None, target=None):
        if name not in self.files:
            return None
        file = self.files[name]
        folders = [file.rpartition("/")[0]] if file.endswith("/__init__.py") else None
        return importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
sys.meta_path.insert(0, Finder())
from pufferlib.isolated.env import main
main(*map(int, sys.argv[1:]))
"""


def user_folder() -> Path:
    """Return the folder for stacks of ``puffer install``: ``pufferlib/stacks`` in XDG_DATA_HOME or ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "pufferlib" / "stacks"


def stack_folders(stack: str) -> tuple[Path, ...]:
    """Return the folders in which the stack may be installed, in order of preference."""
    return (user_folder() / stack, IMAGE_FOLDER / stack)


def find_interpreter(stack: str) -> Path | None:
    """Return the Python of the stack, or None if the stack is not installed."""
    candidates = (folder / "bin" / "python" for folder in stack_folders(stack))
    return next((path for path in candidates if path.exists()), None)


def bootstrap() -> str:
    """Return Python code that runs ``env.main`` of this pufferlib in an interpreter without pufferlib."""
    from importlib.util import find_spec

    folder = Path(pufferlib.__file__).parent
    compiled = [path.relative_to(folder.parent).with_suffix("") for path in folder.rglob("*.pyx")]
    names = ["pufferlib", "pufferlib.bindings", "pufferlib.native._shared"]
    names += [".".join(path.parts) for path in compiled]
    specs = {name: find_spec(name) for name in names}
    return _BOOTSTRAP.format(files={name: spec.origin for name, spec in specs.items() if spec and spec.origin})
