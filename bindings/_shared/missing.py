"""Error for a package or library that a binding needs and that is not here: it names the command which brings it."""

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
    """Turn what a missing module or system library raises into ``BindingMissing``.

    Args:
        facts: Of the binding.
        where: The environment that was asked for, for the message: "atari/pong".

    Raises:
        BindingMissing: In the block, a module of another package was not found, or the system lacks a
            library that a module needs.
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
        packages = " ".join(_providers(facts, library[1])) or f"the package that has {library[1]}"
        raise BindingMissing(
            f"{where}: needs the system library {library[1]}, which is not there; "
            f"run: sudo apt-get install {packages}, or use the image {facts.image}, which has it"
        ) from error


def way_to_install(facts: Facts, where: str) -> str:
    """Return the end of a message about the environment ``where``: the command that brings what is missing."""
    if facts.unavailable:
        return facts.unavailable
    return commands.way_to_install(facts.name, facts.image, f"train {where}")


def _providers(facts: Facts, library: str) -> list[str]:
    """Return the Debian packages whose reason names the library; all that the binding needs where none does."""
    return [name for name, why in facts.apt.items() if library in why] or list(facts.apt)
