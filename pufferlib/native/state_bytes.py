"""Serialization of states: a header with a digest and facts, followed by the content."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from pufferlib.errors import APIUsageError

__all__ = ["check_facts", "pack", "unpack"]

DIGEST_BYTES = 16


def pack(magic: bytes, facts: Mapping[str, Any], content: bytes) -> bytes:
    """Return ``content`` with a header that holds a digest and ``facts``, which must be JSON-serializable."""
    head = json.dumps(dict(facts), sort_keys=True).encode() + b"\n"
    return b"".join((magic, _digest(head + content), head, content))


def unpack(where: str, magic: bytes, state: object) -> tuple[dict[str, Any], memoryview]:
    """Return the facts and the content of ``state``.

    Args:
        where: Prefix of error messages.
        magic: First bytes of states of this kind.
        state: Bytes returned by ``pack``.

    Raises:
        APIUsageError: ``state`` is not a state of this kind, or is damaged.
    """
    if not isinstance(state, bytes | bytearray | memoryview) or bytes(state[: len(magic)]) != magic:
        raise APIUsageError(f"{where}: state must be the bytes that save_state returned, got {state!r:.40}")
    rest = memoryview(state)[len(magic) :]
    digest, content = rest[:DIGEST_BYTES], rest[DIGEST_BYTES:]
    if bytes(digest) != _digest(content):
        raise APIUsageError(f"{where}: the state is damaged: its {len(rest)} bytes differ from the saved ones")
    head, _, _ = bytes(content).partition(b"\n")
    return json.loads(head), content[len(head) + 1 :]


def check_facts(where: str, expected: Mapping[str, Any], got: Mapping[str, Any], advice: Mapping[str, str]) -> None:
    """Raise APIUsageError unless the facts named in ``advice`` are equal.

    Args:
        where: Prefix of the error message.
        expected: Expected facts.
        got: Facts of the state.
        advice: Advice for each fact, which the error message includes.
    """
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
