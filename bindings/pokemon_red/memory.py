"""Memory addresses of Pokemon Red (https://github.com/pret/pokered, wram.asm) and their meaning."""

from dataclasses import dataclass
from typing import Any

__all__ = ["GameState", "read_state"]

PARTY_SIZE = 6
EVENT_FLAGS = 2560

_IN_BATTLE = 0xD057  # 0 outside, 1 wild, 2 trainer, 255 lost
_PARTY_COUNT = 0xD163
_HEALTH = 0xD16C  # first Pokemon, two bytes, high byte first. The next Pokemon is 44 bytes later.
_LEVEL = 0xD18C
_FULL_HEALTH = 0xD18D
_POKEMON_BYTES = 44
_BADGES = 0xD356  # one bit each
_MAP = 0xD35E
_Y = 0xD361
_X = 0xD362
_EVENTS = 0xD747


@dataclass(frozen=True)
class GameState:
    """State of the game at one moment.

    Attributes:
        square: Map, x, y.
        in_battle: Whether there is a battle.
        badges: Number of badges, up to eight.
        events: Number of event flags that are set, up to ``EVENT_FLAGS``.
        levels: Level of each Pokemon in the party.
        health: Health of each, from 0 to 1.
    """

    square: tuple[int, int, int]
    in_battle: bool
    badges: int
    events: int
    levels: tuple[int, ...]
    health: tuple[float, ...]


def read_state(memory: Any) -> GameState:
    """Read the state from ``memory``, which supports ``memory[address]`` and ``memory[start:stop]``."""
    places = range(0, min(memory[_PARTY_COUNT], PARTY_SIZE) * _POKEMON_BYTES, _POKEMON_BYTES)
    return GameState(
        square=(memory[_MAP], memory[_X], memory[_Y]),
        in_battle=memory[_IN_BATTLE] != 0,
        badges=memory[_BADGES].bit_count(),
        events=int.from_bytes(bytes(memory[_EVENTS : _EVENTS + EVENT_FLAGS // 8])).bit_count(),
        levels=tuple(memory[_LEVEL + place] for place in places),
        health=tuple(_health(memory, place) for place in places),
    )


def _health(memory: Any, place: int) -> float:
    now, full = (memory[address + place] * 256 + memory[address + place + 1] for address in (_HEALTH, _FULL_HEALTH))
    return min(now / full, 1.0) if full else 0.0
