"""States of games as bytes: what they are of, and a digest, before the memory of the games."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferlib.native import state_bytes
from pufferlib.ocean._ocean import source_hash
from pufferlib.ocean.files import CFile

__all__ = ["code_of", "pack", "unpack"]

MAGIC = b"state of games, pufferlib 1\n"

# What must be the same where a state is saved and loaded, and how to say that it is not.
_ADVICE = {
    "env": "a state is of one environment",
    "code": "a state is good for the very code that made it; play the recorded actions again instead (puffer replay)",
    "parameters": "make the environment with the keywords that it was saved with",
    "autoreset": "make the environment with the autoreset that it was saved with",
}


def code_of(origin: str | CFile) -> str:
    """Name the code of an environment: another one may have another memory."""
    return Path(origin.shared_object).stem if isinstance(origin, CFile) else source_hash


def pack(facts: Mapping[str, Any], games: bytes) -> bytes:
    """Put ``facts`` before the memory of games; ``unpack`` takes them apart."""
    return state_bytes.pack(MAGIC, facts, games)


def unpack(where: str, state: object, facts: Mapping[str, Any]) -> tuple[dict[str, Any], memoryview]:
    """Return the facts and the memory in ``state``.

    Args:
        where: Begins the message of an error.
        state: Of ``pack``.
        facts: Those of ``_ADVICE`` must be the same.

    Raises:
        APIUsageError: It is no state, is damaged, or is of something else.
    """
    got, games = state_bytes.unpack(where, MAGIC, state)
    state_bytes.check_facts(where, facts, got, _ADVICE)
    return got, games
