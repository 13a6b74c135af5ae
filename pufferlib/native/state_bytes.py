"""States as bytes: what they are of, and a digest, before their content."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pufferlib.errors import APIUsageError

__all__ = ["check_facts", "pack", "unpack"]

DIGEST_BYTES = 16


def pack(magic: bytes, facts: Mapping[str, Any], content: bytes) -> bytes:
    """Put ``facts``, which JSON can hold, before ``content``; ``unpack`` takes them apart."""
    head = json.dumps(dict(facts), sort_keys=True).encode() + b"\n"
    return b"".join((magic, _digest(head + content), head, content))


def unpack(where: str, magic: bytes, state: object) -> tuple[dict[str, Any], memoryview]:
    """Return the facts and the content of ``state``.

    Args:
        where: Begins the message of an error.
        magic: First bytes of states of this kind.
        state: Of ``pack``.

    Raises:
        APIUsageError: It is no such state, or is damaged.
    """
    if not isinstance(state, bytes | bytearray | memoryview) or bytes(state[: len(magic)]) != magic:
        raise APIUsageError(f"{where}: state must be the bytes that save_state returned, got {state!r:.40}")
    rest = memoryview(state)[len(magic) :]
    digest, content = rest[:DIGEST_BYTES], rest[DIGEST_BYTES:]
    if bytes(digest) != _digest(content):
        raise APIUsageError(f"{where}: the state is damaged: its {len(rest)} bytes are not those that were saved")
    head, _, _ = bytes(content).partition(b"\n")
    return json.loads(head), content[len(head) + 1 :]


def check_facts(where: str, expected: Mapping[str, Any], got: Mapping[str, Any], advice: Mapping[str, str]) -> None:
    """Raise APIUsageError unless the facts named in ``advice``, which says what to do about each, are equal."""
    for key, hint in advice.items():
        if got[key] != expected[key]:
            raise APIUsageError(f"{where}: {_difference(key, expected[key], got[key])}; {hint}")


def _difference(key: str, expected: Any, got: Any) -> str:
    if not isinstance(expected, dict):
        return f"{key} must be {expected}, got a state of {got}"
    others = [name for name in {**expected, **got} if expected.get(name) != got.get(name)]
    wanted, found = (", ".join(f"{name}={each.get(name)}" for name in others) for each in (expected, got))
    return f"{key} must be {wanted}, got a state with {found}"


def _digest(content: bytes | memoryview) -> bytes:
    return hashlib.blake2b(content, digest_size=DIGEST_BYTES).digest()
