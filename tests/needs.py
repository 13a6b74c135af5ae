"""Requirements of tests that are not always installed: absent ones skip with a command, or fail in the image."""

import importlib.util
import os

import pytest

from pufferlib.isolated import find_interpreter
from pufferlib.registry.facts import all_facts

__all__ = ["OWN_PROCESS", "missing_binding"]

#: Bindings that may not share a process with others: tests/bindings/test_NAME.py plays them in one of their own.
OWN_PROCESS = {"microrts"} - {os.environ.get("TANK_OWN_PROCESS")}


def missing_binding(name: str) -> str:
    """Explain why the environments of a binding cannot be played here; "" if they can.

    Where they must be here, it is a failure: TANK_BINDINGS=all says so of all of them, as in the image of the tests,
    TANK_BINDINGS=common of those that come with the extra of that name.
    """
    facts = all_facts()[name]
    demanded = {"all": True, "common": facts.common}.get(os.environ.get("TANK_BINDINGS", ""), False)
    if facts.isolated:
        absent = [] if find_interpreter(facts.isolated) else list(facts.modules)
    else:
        absent = [module for module in facts.modules if importlib.util.find_spec(module.partition(".")[0]) is None]
    if absent and demanded:
        pytest.fail(f"{name}: {', '.join(absent)} must be installed here, and is not")
    return f"{', '.join(absent)} is not installed; {facts.command}" if absent else ""
