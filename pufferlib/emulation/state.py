"""States of emulated environments as bytes, either plain data, which can be loaded without risk, or a pickle."""

import json
import pickle
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import cloudpickle  # type: ignore[import-untyped]

from pufferlib.emulation import simulators
from pufferlib.emulation.plain_data import NotPlainError, attributes, type_name
from pufferlib.emulation.plain_reader import PlainReader
from pufferlib.emulation.plain_writer import PlainWriter
from pufferlib.errors import APIUsageError
from pufferlib.native import state_bytes

__all__ = ["is_pickle", "load", "may_pickle", "save"]

MAGIC = b"state of an environment, pufferlib 1\n"
INNER = ("env", "aec_env", "dm_env", "par_env", "gym_env")  # attributes in which wrappers hold the wrapped environment
ROOT = "state['env']"  # prefix of paths in the environment
FREE_SETTINGS = ("seed", "render_mode")  # do not affect steps, except through random generators
PLAIN = (bool, int, float, str, type(None))

_OR_PICKLE = ", or allow pickles by allow_pickle=True"
# Facts that must match between saving and loading, with advice for a mismatch.
_ADVICE = {
    "env": "a state is of one environment, in the same wrappers",
    "spaces": "make the environment with the spaces that it was saved with",
    "settings": "make the environment with the keywords that it was saved with",
    "versions": "a state is good for the versions that made it; install those, or start from a reset",
}


def save(where: str, owner: Any, contents: Mapping[str, Any], allow_pickle: bool) -> bytes:
    """Return ``contents`` of an emulated environment as bytes. ``where`` is the prefix of error messages.

    Raises:
        APIUsageError: The contents are not plain data, and pickling is not allowed or fails.
    """
    writer = PlainWriter()
    try:
        head = json.dumps(writer.write(dict(contents), "state")).encode()
    except (NotPlainError, RecursionError) as reason:
        if not allow_pickle:
            raise APIUsageError(f"{where}: {_refusal(owner, reason)}{_OR_PICKLE * may_pickle(owner)}") from reason
        return state_bytes.pack(MAGIC, {**_facts(owner), "format": "pickle"}, _pickled(where, owner, contents, reason))
    facts = {**_facts(owner), "format": "plain", "tree_bytes": len(head)}
    return state_bytes.pack(MAGIC, facts, head + writer.buffers)


def load(where: str, owner: Any, state: object, contents: Mapping[str, Any], allow_pickle: bool) -> dict[str, Any]:
    """Return the contents of ``state``. Objects in ``contents`` are filled in place and reused where possible.

    Raises:
        APIUsageError: ``state`` is not a valid state, does not fit the environment, or is a pickle that is not allowed.
    """
    facts, data = state_bytes.unpack(where, MAGIC, state)
    state_bytes.check_facts(where, _facts(owner), facts, _ADVICE)
    if facts["format"] == "pickle":
        if not allow_pickle:
            raise APIUsageError(
                f"{where}: the state must be plain data, got a pickle, which can execute arbitrary code; "
                "pass allow_pickle=True if you trust its source"
            )
        found: dict[str, Any] = pickle.loads(data)
        return found
    size = facts["tree_bytes"]
    chain = [*_chain(owner.env)]
    reader = PlainReader(data[size:], {package for env in chain for package in _packages(env)}, chain)
    try:
        found = reader.read(json.loads(bytes(data[:size])), dict(contents), "state")
        reader.check_groups()
    except (NotPlainError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        reason = str(error).replace(ROOT, "env")
        raise APIUsageError(
            f"{where}: the state does not fit this environment: {reason}; make it, and reset it, as it was saved"
        ) from error
    reader.commit()
    return found


def is_pickle(state: bytes) -> bool:
    """Return whether a state of ``save`` is a pickle."""
    return state.startswith(MAGIC) and state_bytes.unpack("state", MAGIC, state)[0].get("format") == "pickle"


def _pickled(where: str, owner: Any, contents: Mapping[str, Any], reason: Exception) -> bytes:
    if not may_pickle(owner):
        raise APIUsageError(f"{where}: {_refusal(owner, reason)}") from reason
    for dumps in (pickle.dumps, cloudpickle.dumps):
        try:
            return bytes(dumps(dict(contents)))
        except Exception as error:  # objects of other packages may raise anything
            failure = error
    raise APIUsageError(f"{where}: {_refusal(owner, reason)}; it cannot be pickled: {failure}") from failure


def may_pickle(owner: Any) -> bool:
    """Return False for classes that only pickle their constructor arguments, which would lose the state."""
    states_of = (type(env).__getstate__ for env in _chain(owner.env))
    return not any("EzPickle" in getattr(method, "__qualname__", "") for method in states_of)


def _refusal(owner: Any, reason: Exception) -> str:
    inner = type([*_chain(owner.env)][-1]).__name__
    return (
        f"{inner} must be plain data to be saved, got what is none: {str(reason).replace(ROOT, 'env')}; "
        f"define save_state() and load_state(state) in {inner}"
    )


def _chain(env: Any) -> Iterator[Any]:
    """Yield the environment and those inside it, down to the innermost."""
    met: list[Any] = []
    while env is not None and not any(env is other for other in met):
        met.append(env)
        yield env
        there = attributes(env)
        env = next((there[name] for name in INNER if name in there), None)


def _facts(owner: Any) -> dict[str, Any]:
    """Return the facts that a state depends on."""
    chain = [owner, *_chain(owner.env)]
    versions = {package: _version(package) for env in chain for package in _packages(env, and_simulators=True)}
    return {
        "env": " of ".join(type_name(type(env)) for env in chain),
        "spaces": f"{owner.single_observation_space} and {owner.single_action_space}",
        "settings": {name: value for env in chain for name, value in _settings(env).items()},
        "versions": {package: version for package, version in versions.items() if version},
    }


def _settings(env: Any) -> dict[str, Any]:
    """Return the constructor arguments of ``env`` that it keeps and that are plain values."""
    there = attributes(env)
    kwargs = {**getattr(there.get("spec"), "kwargs", {}), **there.get("_saved_kwargs", {})}
    return {
        f"{type(env).__name__}.{name}": value
        for name, value in kwargs.items()
        if type(value) in PLAIN and name not in FREE_SETTINGS
    }


def _packages(env: Any, and_simulators: bool = False) -> set[str]:
    """Return the names of the packages that define the classes of ``env``, and optionally of simulators in it."""
    found = {kind.__module__.partition(".")[0] for kind in type(env).__mro__}
    if and_simulators:
        inside = {type_name(type(value)) for value in attributes(env).values()}
        found |= {name.partition(".")[0] for name in inside & simulators.CODECS.keys()}
    return found - {"builtins", "abc", "typing"}


def _version(package: str) -> str:
    version = getattr(sys.modules.get(package), "__version__", "")
    return version if isinstance(version, str) else ""
