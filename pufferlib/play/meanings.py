"""Keys for environments that say what their actions mean, as Atari does: NOOP, FIRE, UP, UPRIGHTFIRE."""

import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pufferlib.ocean.types import Key

__all__ = ["keys_of_env", "keys_of_meanings", "keys_of_table"]

IDLE = {"noop", "no op", "nothing", "none", "stay", "still", "idle", "wait"}
# The key for an action in whose name there is such a word.
KEYS = {
    **{word: word for word in ("left", "right", "up", "down")},
    **{"forward": "up", "backward": "down", "gas": "up", "brake": "down", "main": "up"},
    **{"fire": "space", "do": "space", "jump": "space", "toggle": "space", "interact": "space"},
}
BUTTONS = re.compile("(UP|DOWN|LEFT|RIGHT|FIRE)")
RESERVED = ("q", "r")
SPARE = string.digits + string.ascii_lowercase
# Arrow keys as the old and the new pygame number them.
ARROWS = {
    **{273: "up", 274: "down", 275: "right", 276: "left"},
    **{2**30 + 79: "right", 2**30 + 80: "left", 2**30 + 81: "down", 2**30 + 82: "up"},
}


def keys_of_env(env: Any) -> tuple[Key, ...]:
    """The keys of an environment, or of one inside its wrappers, that explains its actions.

    By ``get_action_meanings()``, a name for each value of a Discrete action, or ``get_keys_to_action()``, an action
    for each set of keys, as Gymnasium and ale-py have them. Empty for all others.
    """
    for layer in _layers(env):
        if callable(meanings := getattr(layer, "get_action_meanings", None)):
            return keys_of_meanings(meanings())
        if callable(table := getattr(layer, "get_keys_to_action", None)):
            return keys_of_table(table())
    return ()


def keys_of_meanings(meanings: Sequence[str]) -> tuple[Key, ...]:
    """A key for each of the actions that ``meanings`` names: arrows, space, else a letter of the name or a digit."""
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
    """The keys of a table from characters, or numbers of pygame, that are down together to a Discrete action."""
    found = []
    for codes, value in table.items():
        names = [_key_name(code) for code in (codes if isinstance(codes, str | tuple | list) else [codes])]
        if not set(names) & {"", *RESERVED}:
            found.append(Key("+".join(names), 0, int(value), f"action {value}" if names else "no key"))
    return tuple(found)


def _key_for(name: str) -> tuple[str | None, str]:
    """The key that suits an action, "" for none that is down, None if no word tells; and the action in words."""
    buttons = [button.lower() for button in BUTTONS.findall(name)]
    if buttons and BUTTONS.sub("", name) == "":
        return "+".join(KEYS[button] for button in buttons), " and ".join(buttons)
    about = re.sub(r"[\W_]+", " ", name).strip().lower()
    if about in IDLE:
        return "", about
    return next((KEYS[word] for word in reversed(about.split()) if word in KEYS), None), about


def _key_name(code: Any) -> str:
    """The name of a key, empty if it is not known."""
    if isinstance(code, int):
        code = ARROWS.get(code) or (chr(code) if 32 <= code < 127 else "")
    return {" ": "space"}.get(code, str(code).lower())


def _layers(env: Any) -> Iterator[Any]:
    while env is not None:
        yield env
        env = getattr(env, "__dict__", {}).get("env")
