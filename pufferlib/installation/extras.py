"""The extras of this package, as its metadata say: what each requires."""

import importlib.metadata
import re
from dataclasses import dataclass

from pufferlib import registry
from pufferlib.machine.commands import DISTRIBUTION

__all__ = ["COMMON", "Requirement", "names", "required", "version_of"]

#: The bindings that can be installed together.
COMMON = "common"
# For users, beside those of single bindings. The others (test, lint, lock, dev) are for a checkout.
GENERAL = ("train", "render", "ray", COMMON)


@dataclass(frozen=True)
class Requirement:
    """One entry of a package's ``Requires-Dist``: ``torch==2.13.0; extra == "train"``.

    Attributes:
        name: The package.
        extras: Of that package.
        version: The exact one that it pins, or empty.
        extra: Of this package, which has the requirement; empty where it is always needed.
        text: As pip takes it: ``torch==2.13.0``.
    """

    name: str
    extras: tuple[str, ...]
    version: str
    extra: str
    text: str

    @classmethod
    def parse(cls, entry: str) -> "Requirement":
        """Read a requirement."""
        body, _, marker = entry.partition(";")
        match = re.match(r"\s*([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?", body)
        pin = re.search(r"==\s*([^\s,]+)", body)
        extra = re.search(r"extra\s*==\s*['\"]([^'\"]+)", marker)
        name, extras = match.groups() if match else (body.strip(), "")
        names = tuple(part.strip() for part in (extras or "").split(",") if part.strip())
        return cls(name, names, pin[1] if pin else "", extra[1] if extra else "", body.strip())


def required(extra: str = "") -> list[Requirement]:
    """What ``extra`` requires, with what it takes from other extras in their place; "" is what is always required.

    Raises:
        importlib.metadata.PackageNotFoundError: This package is not installed.
    """
    found: dict[str, Requirement] = {}
    entries = [Requirement.parse(entry) for entry in importlib.metadata.requires(DISTRIBUTION) or []]
    for requirement in (entry for entry in entries if entry.extra == extra):
        is_own = requirement.name == DISTRIBUTION
        parts = [part for name in requirement.extras for part in required(name)] if is_own else [requirement]
        found.update({part.text: part for part in parts})
    return list(found.values())


def names() -> list[str]:
    """The extras for users."""
    provided = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for_users = {*GENERAL, *(facts.extra_name for facts in registry.binding_facts().values())}
    return [extra for extra in provided if extra in for_users]


def version_of(distribution: str) -> str:
    """The version of a package that is installed; empty where it is not."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
