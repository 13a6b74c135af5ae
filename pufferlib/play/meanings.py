"""Keys for environments that name their actions, such as Atari: NOOP, FIRE, UP, UPRIGHTFIRE."""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pufferlib.ocean.types import Key

__all__ = ["keys_of_env", "keys_of_meanings", "keys_of_table"]

IDLE = {"noop", "no op", "nothing", "none", "stay", "still", "idle", "wait"}
# Keys for words in action names.
KEYS = {
    **{word: word for word in ("left", "right", "up", "down")},
    **{"forward": "up", "backward": "down", "gas": "up", "brake": "down", "main": "up"},
    **{"fire": "space", "do": "space", "jump": "space", "toggle": "space", "interact": "space"},
}
BUTTONS = re.compile("(UP|DOWN|LEFT|RIGHT|FIRE)")
RESERVED = ("q", "r")
SPARE = string.digits + string.ascii_lowercase
# Codes of the arrow keys in pygame 1 and pygame 2.
ARROWS = {
    **{273: "up", 274: "down", 275: "right", 276: "left"},
    **{2**30 + 79: "right", 2**30 + 80: "left", 2**30 + 81: "down", 2**30 + 82: "up"},
}


def keys_of_env(env: Any) -> tuple[Key, ...]:
    """Return the keys of an environment that describes its actions itself, or an empty tuple.

    The environment, or one inside its wrappers, must have ``get_action_meanings()``, which names each value of a
    Discrete action, or ``get_keys_to_action()``, which maps sets of keys to actions, as in Gymnasium and ale-py.
    """
    for layer in _layers(env):
        if callable(meanings := getattr(layer, "get_action_meanings", None)):
            return keys_of_meanings(meanings())
        if callable(table := getattr(layer, "get_keys_to_action", None)):
            return keys_of_table(table())
    return ()


def keys_of_meanings(meanings: Sequence[str]) -> tuple[Key, ...]:
    """Choose a key for each named action: arrow keys, space, or else a letter of the name or a digit."""
    keys: dict[str, Key] = {}
    others = []
    for value, name in enumerate(meanings):
        best, about = _key_for(name)
        if best is None or best in keys:
            others.append((value, about))
        else:
            keys[best] = Key(best, 0, value, about)
    for value, about in others:
        free = (letter for letter in about.replace(" ", "") + SPARE if letter not in {*keys, *RESERVED})
        if letter := next(free, None):
            keys[letter] = Key(letter, 0, value, about)
    return tuple(sorted(keys.values(), key=lambda key: key.value))


def keys_of_table(table: Mapping[Any, int]) -> tuple[Key, ...]:
    """Convert a table from key combinations to Discrete actions. Keys are characters or pygame codes."""
    found = []
    for codes, value in table.items():
        names = [_key_name(code) for code in (codes if isinstance(codes, str | tuple | list) else [codes])]
        if not set(names) & {"", *RESERVED}:
            found.append(Key("+".join(names), 0, int(value), f"action {value}" if names else "no key"))
    return tuple(found)


def _key_for(name: str) -> tuple[str | None, str]:
    """Return a key and a description for an action name.

    The key is "" for an action without a key, such as NOOP, and None if no word of the name suggests a key.
    """
    buttons = [button.lower() for button in BUTTONS.findall(name)]
    if buttons and BUTTONS.sub("", name) == "":
        return "+".join(KEYS[button] for button in buttons), " and ".join(buttons)
    about = re.sub(r"[\W_]+", " ", name).strip().lower()
    if about in IDLE:
        return "", about
    return next((KEYS[word] for word in reversed(about.split()) if word in KEYS), None), about


def _key_name(code: Any) -> str:
    """Return the name of a key, or "" if it is unknown."""
    if isinstance(code, int):
        code = ARROWS.get(code) or (chr(code) if 32 <= code < 127 else "")
    return {" ": "space"}.get(code, str(code).lower())


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "__dict__", {}).get("env")
