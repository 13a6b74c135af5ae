"""Requirements of tests that are not always installed: absent ones skip with a command, or fail in the image."""

import importlib
import importlib.util
import os
import sys
import types
import warnings

import pytest

from pufferlib.installation import extras
from pufferlib.isolated import find_interpreter
from pufferlib.registry.facts import all_facts

__all__ = [
    "OWN_PROCESS",
    "absent_frameworks",
    "missing_binding",
    "missing_extra",
    "skip_without",
    "stub_absent_frameworks",
]

#: Bindings that may not share a process with others: tests/bindings/test_NAME.py plays them in one of their own.
OWN_PROCESS = {"microrts"} - {os.environ.get("TANK_OWN_PROCESS")}

#: Modules that an adapter imports, by the extra that brings them.
FRAMEWORKS = {
    "rllib": ("ray", "ray.rllib", "ray.rllib.env", "ray.rllib.env.multi_agent_env"),
    "torchrl": ("tensordict", "torchrl", "torchrl.data", "torchrl.envs"),
}


class _Stub(types.ModuleType):
    """A module with a class of every name."""

    def __getattr__(self, name: str) -> type:
        if not name[0].isupper():
            raise AttributeError(name)
        return type(name, (), {})


def absent_frameworks() -> tuple[str, ...]:
    """Name the extras of frameworks that are not installed."""
    return tuple(extra for extra in FRAMEWORKS if missing_extra(extra))


def stub_absent_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let adapters be imported whose frameworks are not installed, around classes that do nothing."""
    for extra in absent_frameworks():
        adapter = f"pufferlib.frameworks.{extra}"
        for name in (*FRAMEWORKS[extra], adapter):
            monkeypatch.setitem(sys.modules, name, _Stub(name))
        del sys.modules[adapter]  # to be imported now, and to be forgotten at the end of the test


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


def missing_extra(extra: str) -> str:
    """Explain why what needs an extra of this package cannot be tried here; "" if it can. In the image it must."""
    absent = [part.name for part in extras.required(extra) if not extras.version_of(part.name)]
    if absent and os.environ.get("TANK_BINDINGS") == "all":
        pytest.fail(f"{extra}: {', '.join(absent)} must be installed here, and is not")
    return f"{', '.join(absent)} is not installed; puffer install {extra}" if absent else ""


def skip_without(extra: str, *modules: str) -> None:
    """Skip a whole file of tests where the packages of an extra are not installed; else import these modules of theirs.

    What they warn of while they are imported is their own affair.
    """
    if reason := missing_extra(extra):
        pytest.skip(reason, allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in (f"pufferlib.frameworks.{extra}", *modules):
            importlib.import_module(module)
