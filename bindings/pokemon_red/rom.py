"""Search for the user's cartridge image of Pokemon Red, with an error that explains any problem."""

import hashlib
import os
from pathlib import Path

from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import in_image

__all__ = ["LOGO_START", "OTHERS", "SHA1", "VARIABLE", "default_path", "find_rom"]

VARIABLE = "PUFFER_POKEMON_RED_ROM"

SHA1 = "ea9bcae617fdf159b045185467ae58b2e4a48b9a"
_SIZE = 1 << 20
_EXPECTED = f"Pokemon Red (UE) [S][!].gb: {_SIZE:,} bytes, SHA-1 {SHA1}"
# Source: the disassemblies that build them, https://github.com/pret.
OTHERS = {
    "d7037c83e1ae5b39bde3c30787637ba1d4c48ce2": "Pokemon Blue",
    "5b1456177671b79b263c614ea0e7cc9ac542e9c4": "the debug build of Pokemon Blue",
    "cc7d03262ebfaf2f06772c1a480c7d9d5f4a38e1": "Pokemon Yellow",
}
_LOGO = slice(0x0104, 0x0108)  # position of the manufacturer's logo, whose first bytes are the same everywhere:
LOGO_START = bytes.fromhex("CEED6666")


def default_path() -> Path:
    """Return the default path of the cartridge image."""
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".local" / "share") / "pufferlib" / "pokemon_red.gb"


def find_rom(path: str | os.PathLike[str] | None = None) -> bytes:
    """Return the image at ``path``, else at ``$PUFFER_POKEMON_RED_ROM``, else at ``default_path()``.

    Raises:
        APIUsageError: The file does not exist, or is not the expected image.
    """
    source, file = _place(path)
    try:
        image = file.read_bytes()
    except OSError as error:
        raise APIUsageError(
            f"pokemon_red/red: expected the cartridge image {_EXPECTED}; {source} is {file}, which cannot be read "
            f"({error.strerror}); {_how_to_provide()}; pokemon_red/practice needs none"
        ) from error
    if hashlib.sha1(image, usedforsecurity=False).hexdigest() != SHA1:
        raise APIUsageError(
            f"pokemon_red/red: expected the cartridge image {_EXPECTED}; {file} ({source}) is {_described(image)}; "
            "memory lies elsewhere in other versions, so use this one"
        )
    return image


def _how_to_provide() -> str:
    if in_image():  # files copied into a container are lost with it
        return (
            "copy the image of your own cartridge into the checkout, for example as red.gb, and run outside with "
            f"--env.rom red.gb at the end, or with -e {VARIABLE}=/workspace/red.gb after docker compose run"
        )
    return f"copy the image of your own cartridge to {default_path()}, set {VARIABLE} to where it is, or pass rom='...'"


def _place(path: str | os.PathLike[str] | None) -> tuple[str, Path]:
    """Return the setting that names the cartridge image, and its path."""
    if path is not None:
        return "the option rom", Path(path).expanduser()
    if os.environ.get(VARIABLE):
        return f"the variable {VARIABLE}", Path(os.environ[VARIABLE]).expanduser()
    return "the default place", default_path()


def _described(image: bytes) -> str:
    digest = hashlib.sha1(image, usedforsecurity=False).hexdigest()
    if digest in OTHERS:
        return OTHERS[digest]
    detail = f"{len(image):,} bytes, SHA-1 {digest}"
    if image[:2] == b"PK":
        return f"a zip archive ({detail}): unpack it"
    if image[_LOGO] != LOGO_START:
        return f"no Game Boy cartridge ({detail})"
    title = image[0x0134:0x0144].rstrip(b"\0").decode("ascii", "replace")
    return f"another cartridge, or a changed one: {title!r}, {detail}"
