"""Serialization of game states: a header with a digest and settings, followed by the memory of the games."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferlib.native import state_bytes
from pufferlib.ocean._ocean import source_hash
from pufferlib.ocean.files import CFile

__all__ = ["code_of", "pack", "unpack"]

MAGIC = b"state of games, pufferlib 1\n"

# Facts that must match when a state is loaded, each with the advice that the error message gives.
_ADVICE = {
    "env": "a state can only be loaded into the same environment",
    "code": "a state can only be loaded by the code that saved it; replay the recorded actions instead (puffer replay)",
    "parameters": "make the environment with the keywords that it was saved with",
    "autoreset": "make the environment with the autoreset that it was saved with",
}


def code_of(origin: str | CFile) -> str:
    """Return an identifier of an environment's code. A state is only valid for the code that saved it."""
    if isinstance(origin, CFile):
        return Path(origin.shared_object).stem.rpartition("-")[2]  # without the name of the file, which may change
    return source_hash


def pack(facts: Mapping[str, Any], games: bytes) -> bytes:
    """Return ``games``, the memory of games, with a header that holds ``facts``."""
    return state_bytes.pack(MAGIC, facts, games)


def unpack(where: str, state: object, facts: Mapping[str, Any]) -> tuple[dict[str, Any], memoryview]:
    """Return the facts and the memory stored in ``state``.

    Args:
        where: Prefix of error messages.
        state: Bytes returned by ``pack``.
        facts: Expected facts. The keys of ``_ADVICE`` must match.

    Raises:
        APIUsageError: ``state`` is not a state, is damaged, or was saved with other settings.
    """
    got, games = state_bytes.unpack(where, MAGIC, state)
    state_bytes.check_facts(where, facts, got, _ADVICE)
    return got, games
