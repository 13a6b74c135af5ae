"""Helper of scripts/wheels: versions of its tools, the name of the distribution, and a report about wheels."""

import argparse
import io
import re
import sys
import tomllib
import zipfile
from pathlib import Path

ARCHITECTURES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


def pins(pyproject: Path) -> list[str]:
    """Return the requirements of the extra ``wheels``. The compiler is in an extra of its own."""
    extras = tomllib.loads(pyproject.read_text())["project"]["optional-dependencies"]
    return [*extras["compiler"], *extras["wheels"]]


def rename(source: Path, name: str) -> None:
    """Give the distribution in the folder ``source`` another name, wherever its name is written.

    Raises:
        ValueError: The name is not written where it is expected.
    """
    pyproject, commands = source / "pyproject.toml", source / "pufferlib/machine/commands.py"
    for path, pattern in (
        (pyproject, r'(?m)^(name = ")[a-z0-9-]+(?=")'),
        (pyproject, r'(?m)(^(?:common|dev) = \[")[a-z0-9-]+(?=\[)'),
        (commands, r'(?m)^(DISTRIBUTION = ")[a-z0-9-]+(?=")'),
    ):
        text, count = re.subn(pattern, rf"\g<1>{name}", path.read_text())
        if not count:
            raise ValueError(f"expected the name of the distribution in {path.name}, found none with {pattern}")
        path.write_text(text)


def report(folder: Path) -> list[str]:
    """Return a line about each file of the folder: its size, and for a wheel the oldest glibc that it runs on.

    Raises:
        ValueError: A wheel has a compiled module for another architecture than its name says, or none.
    """
    lines = []
    for path in sorted([*folder.glob("*.tar.gz"), *folder.glob("*.whl")]):
        line = f"{path.stat().st_size / 1e6:5.1f} MB  {path.name}"
        if path.suffix == ".whl":
            line += f"\n          needs glibc {glibc_of(path)}"
        lines.append(line)
    return lines


def glibc_of(wheel: Path) -> str:
    """Return the newest version of glibc that a module in the wheel asks for."""
    from elftools.elf.elffile import ELFFile
    from elftools.elf.gnuversions import GNUVerNeedSection

    versions: set[tuple[int, ...]] = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in (name for name in archive.namelist() if name.endswith(".so")):
            elf = ELFFile(io.BytesIO(archive.read(name)))
            if not wheel.stem.endswith(ARCHITECTURES.get(elf["e_machine"], "?")):
                raise ValueError(f"{wheel.name}: its module {name} is for {elf['e_machine']}")
            sections = (section for section in elf.iter_sections() if isinstance(section, GNUVerNeedSection))
            needed = {need.name for section in sections for _, needs in section.iter_versions() for need in needs}
            versions |= {
                tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_([\d.]+)", " ".join(needed))
            }
    if not versions:
        raise ValueError(f"{wheel.name}: expected compiled modules that use glibc, found none")
    return ".".join(map(str, max(versions)))


def main() -> int:
    """Run one action. Print a ValueError as one line and return 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=("pins", "rename", "report"))
    parser.add_argument("path", type=Path)
    parser.add_argument("name", nargs="?")
    arguments = parser.parse_args()
    try:
        if arguments.action == "pins":
            print(*pins(arguments.path))
        elif arguments.action == "rename":
            rename(arguments.path, arguments.name)
        else:
            print(*report(arguments.path), sep="\n")
    except ValueError as error:
        print(f"wheels: error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
