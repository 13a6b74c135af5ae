"""Cursor for actions that correspond to areas of the image."""

from collections.abc import Mapping, Sequence

from pufferlib.render.video import Frame

__all__ = ["Area", "Cursor"]

Area = tuple[int, int, int, int]  # x, y, width, height, px
DIRECTIONS = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}


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
