"""A cursor over the places of a picture that stand for actions."""

from collections.abc import Mapping, Sequence

from pufferlib.render.video import Frame

__all__ = ["Area", "Cursor"]

Area = tuple[int, int, int, int]  # x, y, width, height, px
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


class Cursor:
    """Chooses among places with the arrow keys and Enter, or by a click.

    Attributes:
        action: The one that it is on; None before there is any place.
    """

    def __init__(self) -> None:
        self.action: int | None = None
        self._at = (0.0, 0.0)

    def choose(
        self, areas: Mapping[int, Area], pressed: Sequence[str], clicks: Sequence[tuple[float, float]]
    ) -> int | None:
        """The action that was chosen, if one was.

        Args:
            areas: Where each action is now.
            pressed: Names of keys that moved it, or "enter".
            clicks: Where the person clicked, px.
        """
        if not areas:
            return None
        if self.action not in areas:  # the nearest to where it was
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
        """``frame`` with a border around the place that it is on."""
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
        """Go to the next place in a direction; one that lies to its side counts as further away."""
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
