"""Actions from keys and from the mouse."""

import re
import string
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.box2d.table import MEANINGS, TASKS
from pufferlib.ocean.types import Key, env_types
from pufferlib.registry.toy_text import TOY_TEXT
from pufferlib.render.video import Frame
from pufferlib.spaces import MixedBox, Space

__all__ = ["DIRECTIONS", "Area", "Cursor", "KeyMap", "keys_for", "keys_of_env", "keys_of_meanings", "keys_of_table"]


# Keys for the lowest and highest value of each component of a continuous action.
PAIRS = (("left", "right"), ("down", "up"), ("a", "d"), ("s", "w"), ("f", "h"), ("g", "t"), ("j", "l"), ("k", "i"))
MOST_DIGITS = 10
IDLE = {"noop", "no op", "nothing", "none", "stay", "still", "idle", "wait"}
# Keys for words in action names.
KEYS = {
    **{word: word for word in ("left", "right", "up", "down")},
    "forward": "up",
    "backward": "down",
    "gas": "up",
    "brake": "down",
    "main": "up",
    "fire": "space",
    "do": "space",
    "jump": "space",
    "toggle": "space",
    "interact": "space",
}
BUTTONS = re.compile("(UP|DOWN|LEFT|RIGHT|FIRE)")
RESERVED = ("q", "r", ",", ".", "-", "+", "=", "f7", "f8", "f9")  # keys of the loop
SPARE = string.digits + string.ascii_lowercase
# Codes of the arrow keys in pygame 1 and pygame 2.
ARROWS = {
    273: "up",
    274: "down",
    275: "right",
    276: "left",
    2**30 + 79: "right",
    2**30 + 80: "left",
    2**30 + 81: "down",
    2**30 + 82: "up",
}
Area = tuple[int, int, int, int]  # x, y, width, height, px
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


def keys_for(space: Space, declared: Sequence[Key] = ()) -> tuple[Key, ...]:
    """Return the keys for the actions of one agent.

    A Box space gets a pair of keys for each component. An integer of a MixedBox has a key for each value but the
    lowest, which holds while no key is pressed. Other spaces use the declared keys with valid actions. If there are
    none, a Discrete space of up to ten actions uses the digits. Otherwise the result is empty, and actions are typed as
    numbers.
    """
    if isinstance(space, MixedBox):
        return tuple(_keys_of_mixed(space))
    if isinstance(space, Box):
        return tuple(_keys_of_a_box(range(int(np.prod(space.shape)))))
    fitting = tuple(key for key in declared if _fits(space, key))
    if fitting:
        return fitting
    if isinstance(space, Discrete) and space.n <= MOST_DIGITS:
        return tuple(Key(str(value), 0, value, f"action {value}") for value in range(int(space.n)))
    return ()


def _keys_of_a_box(components: Sequence[int]) -> Iterator[Key]:
    for index, (low, high) in zip(components, PAIRS, strict=False):
        yield Key("", index, 0, "")
        yield Key(low, index, -1, f"number {index} down")
        yield Key(high, index, 1, f"number {index} up")
    if len(components) == 1:
        yield Key("down", components[0], -1, "the same as left")
        yield Key("up", components[0], 1, "the same as right")


def _keys_of_mixed(space: MixedBox) -> Iterator[Key]:
    taken = set(RESERVED)
    for key in _keys_of_a_box(np.flatnonzero(~space.is_integer).tolist()):
        taken.add(key.name)
        yield key
    free = (name for name in SPARE[1:] if name not in taken)
    for index, size in zip(np.flatnonzero(space.is_integer).tolist(), space.sizes.tolist(), strict=True):
        yield Key("", index, 0, "")
        for value, name in zip(range(1, size), free, strict=False):
            yield Key(name, index, value, f"number {index} is {int(space.low[index]) + value}")


def _fits(space: Space, key: Key) -> bool:
    sizes = [space.n] if isinstance(space, Discrete) else getattr(space, "nvec", [])
    return 0 <= key.component < len(sizes) and 0 <= key.value < sizes[key.component]


class KeyMap:
    """Conversion of held or typed keys to actions.

    Attributes:
        waits: True if the environment waits for a key, because no key stands for "no key pressed".
        types: True if actions are typed as numbers, because there are no keys.
        typed: Text typed so far.

    Args:
        space: Action space of one agent.
        keys: Keys returned by ``keys_for``.
    """

    def __init__(self, space: Space, keys: Sequence[Key]) -> None:
        self.space = space
        # Combinations such as up+right take precedence over single keys.
        self._keys = sorted(keys, key=lambda key: -key.name.count("+"))
        self._idle = {key.component: key.value for key in keys if key.name == ""}
        self.waits = not self._idle
        self.types = not keys
        self.typed = ""

    def action(self, down: Collection[str]) -> Any:
        """Return the action for the keys that are held down, or None if the environment must wait for a key."""
        chosen: dict[int, int] = {}
        for key in self._keys:
            if key.name and key.component not in chosen and set(key.name.split("+")) <= set(down):
                chosen[key.component] = key.value
        return None if self.waits and not chosen else self._array({**self._idle, **chosen})

    def read(self, pressed: Sequence[str]) -> Any:
        """Process typed keys. Return the typed action when Enter is pressed, or None (also if it is invalid)."""
        for name in pressed:
            if name == "backspace":
                self.typed = self.typed[:-1]
            elif name == "space":
                self.typed += " "
            elif len(name) == 1 and name in "0123456789":
                self.typed += name
            elif name == "enter":
                numbers, self.typed = [int(word) for word in self.typed.split()], ""
                return self._typed_action(numbers)
        return None

    def help(self) -> list[str]:
        """Return a description of each single key, for example "left: move left"."""
        if self.types:
            sizes = " and ".join(str(size - 1) for size in self._sizes)
            return [f"type numbers up to {sizes}, separated by spaces, then enter"]
        return [f"{key.name}: {key.about}" for key in self._keys if key.name and "+" not in key.name]

    @property
    def _sizes(self) -> list[int]:
        return [int(size) for size in np.ravel(getattr(self.space, "nvec", getattr(self.space, "n", [])))]

    def _typed_action(self, numbers: list[int]) -> Any:
        sizes = self._sizes
        if len(numbers) != len(sizes) or any(n >= size for n, size in zip(numbers, sizes, strict=True)):
            return None
        return self._array(dict(enumerate(numbers)))

    def _array(self, values: dict[int, int]) -> Any:
        space = self.space
        if isinstance(space, Discrete):
            return values.get(0, 0) + int(space.start)
        if isinstance(space, MultiDiscrete):
            action = np.zeros(space.nvec.size, np.int64)
            action[list(values)] = list(values.values())
            return action.reshape(space.nvec.shape) + space.start
        assert isinstance(space, Box), space
        numbers = np.zeros(int(np.prod(space.shape)))
        numbers[list(values)] = list(values.values())
        low, high = space.low.ravel(), space.high.ravel()
        wanted = np.where(numbers < 0, low, np.where(numbers > 0, high, 0))
        if isinstance(space, MixedBox):
            wanted = np.where(space.is_integer, low + numbers, wanted)
        return np.clip(wanted, low, high).astype(space.dtype).reshape(space.shape)


def keys_of_env(env: Any) -> tuple[Key, ...]:
    """Return the keys of an environment that describes its actions itself, or an empty tuple.

    The environment, or one inside its wrappers, must have ``get_action_meanings()``, which names each value of a
    Discrete action, or ``get_keys_to_action()``, which maps sets of keys to actions, as in Gymnasium and ale-py. Those
    of toy text and Box2D of Gymnasium have neither, but their actions are known.
    """
    for layer in _layers(env):
        if callable(meanings := getattr(layer, "get_action_meanings", None)):
            return keys_of_meanings(meanings())
        if callable(table := getattr(layer, "get_keys_to_action", None)):
            return keys_of_table(table())
        kind = f"{type(layer).__module__}:{type(layer).__qualname__}"
        if kind in TOY_TEXT:
            return env_types()[TOY_TEXT[kind].name].keys
        if kind in TASKS:
            return keys_of_meanings(MEANINGS.get(TASKS[kind], ()))
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


class Cursor:
    """Selection of an area with the arrow keys and Enter, or with a mouse click.

    Attributes:
        action: Action of the selected area, or None if there were no areas yet.
    """

    def __init__(self) -> None:
        self.action: int | None = None
        self._at = (0.0, 0.0)

    def choose(
        self, areas: Mapping[int, Area], pressed: Sequence[str], clicks: Sequence[tuple[float, float]]
    ) -> int | None:
        """Move the cursor and return the chosen action, or None.

        Args:
            areas: Current area of each action.
            pressed: Names of the pressed keys. Arrow keys move the cursor, and "enter" chooses.
            clicks: Points clicked with the mouse, in px.
        """
        if not areas:
            return None
        if self.action not in areas:  # move to the nearest area
            self._move_to(areas, min(areas, key=lambda action: _distance(self._at, _middle(areas[action]))))
        for x, y in clicks:
            for action, (left, top, width, height) in areas.items():
                if 0 <= x - left < width and 0 <= y - top < height:
                    self._move_to(areas, action)
                    return action
        for name in pressed:
            if name in DIRECTIONS:
                self._step(areas, *DIRECTIONS[name])
            elif name == "enter":
                return self.action
        return None

    def marked(self, frame: Frame, areas: Mapping[int, Area]) -> Frame:
        """Return a copy of ``frame`` with a border around the selected area."""
        if self.action is None or self.action not in areas:
            return frame
        left, top, width, height = areas[self.action]
        frame = frame.copy()
        line = max(1, min(frame.shape[:2]) // 150)
        inside = frame[top + line : top + height - line, left + line : left + width - line].copy()
        frame[top : top + height, left : left + width] = (255, 64, 200)
        frame[top + line : top + height - line, left + line : left + width - line] = inside
        return frame

    def _step(self, areas: Mapping[int, Area], across: int, down: int) -> None:
        """Move to the nearest area in a direction. Sideways distance counts twice."""
        best, best_cost = self.action, float("inf")
        for action, area in areas.items():
            x, y = _middle(area)
            x, y = x - self._at[0], y - self._at[1]
            ahead, aside = x * across + y * down, abs(x * down) + abs(y * across)
            if ahead > aside / 2 and ahead + 2 * aside < best_cost:
                best, best_cost = action, ahead + 2 * aside
        if best is not None:
            self._move_to(areas, best)

    def _move_to(self, areas: Mapping[int, Area], action: int) -> None:
        self.action, self._at = action, _middle(areas[action])


def _middle(area: Area) -> tuple[float, float]:
    left, top, width, height = area
    return left + width / 2, top + height / 2


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
