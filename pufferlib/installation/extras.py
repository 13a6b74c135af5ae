"""Requirements of the extras of this package, from its metadata."""

import importlib.metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pufferlib import registry
from pufferlib.machine.commands import DISTRIBUTION

__all__ = ["COMMON", "names", "pin_of", "python_range", "required", "version_of"]

#: Name of the extra with all bindings that can be installed together.
COMMON = "common"
# Extras for users, besides the bindings. The others (test, lint, lock, wheels, dev) are for a checkout.
GENERAL = (
    "train",
    "render",
    "sweep",
    "track",
    "export",
    "ray",
    "rllib",
    "torchrl",
    "dm",
    "notebook",
    "compiler",
    COMMON,
)


def required(extra: str = "") -> list[Requirement]:
    """Return the requirements of ``extra`` without markers. Other extras in it are replaced by their requirements.

    Args:
        extra: Name of the extra, or "" for the requirements of the package itself.

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
    """Return the version that a requirement pins, or "" if it does not pin one."""
    return next((one.version for one in requirement.specifier if one.operator == "=="), "")


def names() -> list[str]:
    """Return the names of the extras for users."""
    provided = importlib.metadata.metadata(DISTRIBUTION).get_all("Provides-Extra") or []
    for_users = {*GENERAL, *(facts.extra_name for facts in registry.binding_facts().values())}
    return [extra for extra in provided if extra in for_users]


def python_range() -> str:
    """Return the supported Python versions as in ">=3.11,<3.15", or "" if this package is not installed."""
    try:
        return importlib.metadata.metadata(DISTRIBUTION)["Requires-Python"]
    except importlib.metadata.PackageNotFoundError:
        return ""


def version_of(distribution: str) -> str:
    """Return the installed version of a package, or "" if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""
