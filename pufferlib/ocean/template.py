"""Creation of a new C environment from the template."""

import re
from pathlib import Path

from pufferlib.errors import APIUsageError

__all__ = ["write_template"]

TEMPLATE = Path(__file__).parent / "_template"
TAKEN = {"puffer", "draw"}  # prefixes of names in the headers


def write_template(name: str, folder: Path) -> tuple[Path, Path]:
    """Write a complete environment ``<name>.c`` and its training settings ``<name>.toml`` into ``folder``.

    Args:
        name: Name of the environment: lower-case letters, digits and underscores.
        folder: Target folder, created if it does not exist.

    Returns:
        Paths of the two files.

    Raises:
        APIUsageError: The name is invalid, or one of the files exists already.
    """
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or name in TAKEN:
        raise APIUsageError(
            f"puffer new: expected a name of lower-case letters, digits and underscores, as grid_world, got {name!r}"
        )
    files = (folder / f"{name}.c", folder / f"{name}.toml")
    for file in files:
        if file.exists():
            raise APIUsageError(f"puffer new: {file} exists already; choose another name, or remove it")
    type_name = "".join(part.title() for part in name.split("_"))
    code = (TEMPLATE / "template.c").read_text("utf-8")
    for old, new in (("template", name), ("Template", type_name), ("TEMPLATE", name.upper())):
        code = code.replace(old, new)
    folder.mkdir(parents=True, exist_ok=True)
    files[0].write_text(code, "utf-8")
    files[1].write_text((TEMPLATE / "train.toml").read_text("utf-8"), "utf-8")
    return files
