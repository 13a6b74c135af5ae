"""Extras of this package, as its metadata say: what each requires."""

import importlib.metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pufferlib import registry
from pufferlib.machine.commands import DISTRIBUTION

__all__ = ["COMMON", "names", "pin_of", "required", "version_of"]

#: The bindings that can be installed together.
COMMON = "common"
# For users, beside those of single bindings. The others (test, lint, lock, dev) are for a checkout.
GENERAL = ("train", "render", "sweep", "track", "export", "ray", "rllib", "torchrl", "dm", "compiler", COMMON)


def required(extra: str = "") -> list[Requirement]:
    """Return what ``extra`` requires, without markers, and with what it takes from other extras in their place.

    Args:
        extra: Of this package; "" asks for what is always required.

    Raises:
        importlib.metadata.PackageNotFoundError: This package is not installed.
    """
    found: dict[str, Requirement] = {}
    for requirement in map(Requirement, importlib.metadata.requires(DISTRIBUTION) or []):
        if not (requirement.marker.evaluate({"extra": extra}) if requirement.marker else not extra):
            continue
        requirement.marker = None
        is_own = canonicalize_name(requirement.name) == DISTRIBUTION
        parts = [part for name in sorted(requirement.extras) for part in required(name)] if is_own else [requirement]
        found.update({str(part): part for part in parts})
    return list(found.values())


def pin_of(requirement: Requirement) -> str:
    """Return the exact version that a requirement asks for; empty where it leaves a choice."""
    return next((one.version for one in requirement.specifier if one.operator == "=="), "")


def names() -> list[str]:
    """Return the extras for users."""
    provided = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for_users = {*GENERAL, *(facts.extra_name for facts in registry.binding_facts().values())}
    return [extra for extra in provided if extra in for_users]


def version_of(distribution: str) -> str:
    """Return the version of a package that is installed; empty where it is not."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
