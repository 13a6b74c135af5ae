"""Error for a missing package or library of a binding, with the command that installs it."""

import contextlib
import re
from collections.abc import Iterator

from pufferlib.errors import BindingMissing
from pufferlib.machine import commands
from pufferlib.registry.facts import Facts

__all__ = ["explain_missing", "way_to_install"]

_LIBRARY = re.compile(r"(lib[\w.+-]*?\.so[.\d]*): cannot open shared object file")


@contextlib.contextmanager
def explain_missing(facts: Facts, where: str) -> Iterator[None]:
    """Convert the error for a missing module or system library to ``BindingMissing``.

    Args:
        facts: Facts of the binding.
        where: Requested environment for the message, for example "atari/pong".

    Raises:
        BindingMissing: A module of another package was not found in the block, or the system lacks a library that
            a module needs.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]
        if module in ("", "pufferlib"):
            raise
        raise BindingMissing(
            f"{where}: needs the package {module}, which is not installed; {way_to_install(facts, where)}"
        ) from error
    except (ImportError, OSError) as error:
        library = _LIBRARY.search(str(error))
        if library is None:
            raise
        if owner := next((module for module in facts.modules if library[1].startswith(f"lib{module}.")), None):
            raise BindingMissing(
                f"{where}: the installed package {owner} lacks its library {library[1]}; "
                f"run: pip install --force-reinstall --no-deps {owner}"
            ) from error
        packages = " ".join(_providers(facts, library[1])) or f"the package that has {library[1]}"
        raise BindingMissing(
            f"{where}: needs the system library {library[1]}, which is not installed; "
            f"run: sudo apt-get install {packages}, or use the image {facts.image}, which has it"
        ) from error


def way_to_install(facts: Facts, where: str) -> str:
    """Return the end of an error message about the environment ``where``: the command that installs what is missing."""
    if facts.unavailable:
        return facts.unavailable
    return commands.way_to_install(facts.name, facts.image, f"train {where}")


def _providers(facts: Facts, library: str) -> list[str]:
    """Return the Debian packages whose description names the library, or all packages of the binding if none does."""
    return [name for name, why in facts.apt.items() if library in why] or list(facts.apt)
