"""States of games as bytes: what they are of, and a digest, before the memory of the games."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pufferlib.errors import APIUsageError
from pufferlib.ocean._ocean import source_hash
from pufferlib.ocean.files import CFile

__all__ = ["code_of", "pack", "unpack"]

MAGIC = b"state of games, pufferlib 1\n"
DIGEST_BYTES = 16

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
    head = json.dumps(dict(facts), sort_keys=True).encode() + b"\n"
    return b"".join((MAGIC, _digest(head + games), head, games))


def unpack(where: str, state: object, facts: Mapping[str, Any]) -> tuple[dict[str, Any], memoryview]:
    """Return the facts and the memory in ``state``.

    Args:
        where: Begins the message of an error.
        state: Of ``pack``.
        facts: Those of ``_ADVICE`` must be the same.

    Raises:
        APIUsageError: It is no state, is damaged, or is of something else.
    """
    if not isinstance(state, bytes | bytearray | memoryview) or bytes(state[: len(MAGIC)]) != MAGIC:
        raise APIUsageError(f"{where}: state must be the bytes that save_state returned, got {state!r:.40}")
    rest = memoryview(state)[len(MAGIC) :]
    digest, content = rest[:DIGEST_BYTES], rest[DIGEST_BYTES:]
    if bytes(digest) != _digest(content):
        raise APIUsageError(f"{where}: the state is damaged: its {len(rest)} bytes are not those that were saved")
    head, _, _ = bytes(content).partition(b"\n")
    got: dict[str, Any] = json.loads(head)
    for key, advice in _ADVICE.items():
        if got[key] != facts[key]:
            raise APIUsageError(f"{where}: {_difference(key, facts[key], got[key])}; {advice}")
    return got, content[len(head) + 1 :]


def _difference(key: str, expected: Any, got: Any) -> str:
    if not isinstance(expected, dict):
        return f"{key} must be {expected}, got a state of {got}"
    others = [name for name in expected if expected[name] != got.get(name)]
    wanted, found = (", ".join(f"{name}={each.get(name)}" for name in others) for each in (expected, got))
    return f"{key} must be {wanted}, got a state with {found}"


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
