"""Optional requirements of tests. Without them tests are skipped with an install command, or fail in the image."""

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

#: Bindings that cannot share a process with others. tests/bindings/test_NAME.py plays them in their own process.
OWN_PROCESS = {"microrts"} - {os.environ.get("TANK_OWN_PROCESS")}

#: Facts of every binding, by name.
FACTS = all_facts()

#: Modules that an adapter imports, by the name of their extra.
FRAMEWORKS = {
    "rllib": ("ray", "ray.rllib", "ray.rllib.env", "ray.rllib.env.multi_agent_env"),
    "torchrl": ("tensordict", "torchrl", "torchrl.data", "torchrl.envs"),
}


class _Stub(types.ModuleType):
    """Module that has an empty class of every name."""

    def __getattr__(self, name: str) -> type:
        if not name[0].isupper():
            raise AttributeError(name)
        return type(name, (), {})


def absent_frameworks() -> tuple[str, ...]:
    """Return the names of framework extras that are not installed."""
    return tuple(extra for extra in FRAMEWORKS if missing_extra(extra))


def stub_absent_frameworks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stub the modules of frameworks that are not installed, so that their adapters can be imported."""
    for extra in absent_frameworks():
        adapter = f"pufferlib.frameworks.{extra}"
        for name in (*FRAMEWORKS[extra], adapter):
            monkeypatch.setitem(sys.modules, name, _Stub(name))
        del sys.modules[adapter]  # imported again now, and removed after the test


def missing_binding(name: str) -> str:
    """Return why the environments of a binding cannot be played here, or "".

    TANK_BINDINGS=all makes every missing binding a failure, as in the image for tests. TANK_BINDINGS=common does so for
    the bindings of the extra "common".
    """
    facts = FACTS[name]
    demanded = {"all": True, "common": facts.common}.get(os.environ.get("TANK_BINDINGS", ""), False)
    if facts.isolated:
        absent = [] if find_interpreter(facts.isolated) else list(facts.modules)
    else:
        absent = [module for module in facts.modules if importlib.util.find_spec(module.partition(".")[0]) is None]
    if absent and demanded:
        pytest.fail(f"{name}: {', '.join(absent)} must be installed here, and is not")
    return f"{', '.join(absent)} is not installed; {facts.command}" if absent else ""


def missing_extra(extra: str) -> str:
    """Return why tests of an extra cannot run here, or "". In the image a missing extra is a failure."""
    absent = [part.name for part in extras.required(extra) if not extras.version_of(part.name)]
    if absent and os.environ.get("TANK_BINDINGS") == "all":
        pytest.fail(f"{extra}: {', '.join(absent)} must be installed here, and is not")
    return f"{', '.join(absent)} is not installed; puffer install {extra}" if absent else ""


def skip_without(extra: str, *modules: str) -> None:
    """Skip a test file if an extra is not installed. Otherwise import ``modules`` without warnings."""
    if reason := missing_extra(extra):
        pytest.skip(reason, allow_module_level=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module in (f"pufferlib.frameworks.{extra}", *modules):
            importlib.import_module(module)
