"""What tests need that is not always installed: skipped with the command that brings it, or a failure in the image."""

import importlib.util
import os

import pytest

from pufferlib.bindings._facts import all_facts
from pufferlib.isolated import find_interpreter

__all__ = ["OWN_PROCESS", "missing_binding"]

#: Bindings that may not share a process with others: tests/unit/bindings/test_NAME.py plays them in one of their own.
OWN_PROCESS = {"microrts"} - {os.environ.get("TANK_OWN_PROCESS")}


def missing_binding(name: str) -> str:
    """Why the environments of a binding cannot be played here; "" if they can.

    In the image that has all bindings, TANK_BINDINGS=all makes a missing one a failure.
    """
    facts = all_facts()[name]
    if facts.isolated:
        absent = [] if find_interpreter(facts.isolated) else list(facts.modules)
    else:
        absent = [module for module in facts.modules if importlib.util.find_spec(module.partition(".")[0]) is None]
    if absent and os.environ.get("TANK_BINDINGS") == "all":
        pytest.fail(f"{name}: {', '.join(absent)} must be installed here, and is not")
    return f"{', '.join(absent)} is not installed; {facts.command}" if absent else ""
