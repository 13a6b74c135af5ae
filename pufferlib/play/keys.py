"""Mapping of keys to actions."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Discrete, MultiDiscrete

from pufferlib.ocean.types import Key
from pufferlib.spaces import Space

__all__ = ["KeyMap", "keys_for"]

# Keys for the lowest and highest value of each component of a continuous action.
PAIRS = (("left", "right"), ("down", "up"), ("a", "d"), ("s", "w"), ("f", "h"), ("g", "t"), ("j", "l"), ("k", "i"))
MOST_DIGITS = 10


def keys_for(space: Space, declared: Sequence[Key] = ()) -> tuple[Key, ...]:
    """Return the keys for the actions of one agent.

    A Box space gets a pair of keys for each component. Other spaces use the declared keys with valid actions. If there
    are none, a Discrete space of up to ten actions uses the digits. Otherwise the result is empty, and actions are
    typed as numbers.
    """
    if isinstance(space, Box):
        return tuple(_keys_of_a_box(int(np.prod(space.shape))))
    fitting = tuple(key for key in declared if _fits(space, key))
    if fitting:
        return fitting
    if isinstance(space, Discrete) and space.n <= MOST_DIGITS:
        return tuple(Key(str(value), 0, value, f"action {value}") for value in range(int(space.n)))
    return ()


def _keys_of_a_box(size: int) -> Iterable[Key]:
    for index, (low, high) in enumerate(PAIRS[:size]):
        yield Key("", index, 0, "")
        yield Key(low, index, -1, f"number {index} down")
        yield Key(high, index, 1, f"number {index} up")
    if size == 1:
        yield Key("down", 0, -1, "the same as left")
        yield Key("up", 0, 1, "the same as right")


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
            return action.reshape(space.nvec.shape)
        assert isinstance(space, Box), space
        numbers = np.zeros(int(np.prod(space.shape)))
        numbers[list(values)] = list(values.values())
        low, high = space.low.ravel(), space.high.ravel()
        wanted = np.where(numbers < 0, low, np.where(numbers > 0, high, 0))
        return np.clip(wanted, low, high).astype(space.dtype).reshape(space.shape)
