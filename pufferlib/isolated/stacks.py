"""Folders of the virtual environments of isolated stacks, and the way that pufferlib is imported in them."""

import os
from pathlib import Path

import pufferlib

__all__ = ["IMAGE_FOLDER", "bootstrap", "find_interpreter", "stack_folders", "user_folder"]

#: Where the images keep their stacks.
IMAGE_FOLDER = Path("/opt/stacks")

# The stack has none of our packages installed. This serves the modules that may lie apart from each
# other (in an editable installation: the compiled ones), by the paths that the parent knows; the rest
# of the package is found beside the first.
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
from pufferlib.isolated.host import main
main(*map(int, sys.argv[1:]))
"""


def user_folder() -> Path:
    """Folder for the stacks of ``puffer install``: ``$XDG_DATA_HOME/pufferlib/stacks``, or that in ~/.local/share."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "pufferlib" / "stacks"


def stack_folders(stack: str) -> tuple[Path, ...]:
    """The folders in which the stack is looked for, the first choice first."""
    return (user_folder() / stack, IMAGE_FOLDER / stack)


def find_interpreter(stack: str) -> Path | None:
    """The Python of the stack, or None where it is not installed."""
    candidates = (folder / "bin" / "python" for folder in stack_folders(stack))
    return next((path for path in candidates if path.exists()), None)


def bootstrap() -> str:
    """Python code that runs ``host.main`` on this pufferlib, in an interpreter that does not have it."""
    from importlib.util import find_spec

    folder = Path(pufferlib.__file__).parent
    compiled = [path.relative_to(folder.parent).with_suffix("") for path in folder.rglob("*.pyx")]
    names = ["pufferlib", "pufferlib.bindings", *(".".join(path.parts) for path in compiled)]
    specs = {name: find_spec(name) for name in names}
    return _BOOTSTRAP.format(files={name: spec.origin for name, spec in specs.items() if spec and spec.origin})
