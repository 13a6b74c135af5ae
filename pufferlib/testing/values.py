"""Checks of single resets and steps: the arrays, their values, and the infos."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.emulation.leaf import rounded_bounds
from pufferlib.env import AutoresetMode
from pufferlib.testing.contract import broken
from pufferlib.testing.play import Shown

__all__ = ["Changes", "StepChecks", "check_inside"]


Rows = npt.NDArray[np.bool_]

MIN_PICTURE_PX = 32  # smaller arrays are often grids of codes with the space of an image
EPISODE_KEYS = {"episode", "episode_length", "episode_return", "final_info", "final_observation"}
MIN_STEPS = 20  # steps within episodes after which constant observations are an error


class StepChecks:
    """Checks during a play. Only the last step is kept in memory.

    Attributes:
        first_end: Index of the step in which the first episode ended, or None.

    Args:
        env: Environment to check.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._same_step = not env.emulated and env.autoreset == AutoresetMode.SAME_STEP
        self._acted = np.zeros(env.num_agents, bool)
        self._before: dict[str, Array] = {}
        self._after_end = _AfterEnd(env)
        self._range = _Range(env)
        self._changes = Changes(env)
        self._end_keys, self._was_present = dict[str, int](), False  # of infos, with the steps that had them
        self._steps = 0
        self.first_end: int | None = None

    @property
    def ended(self) -> bool:
        """True if the episode of any agent has ended."""
        return self.first_end is not None

    def look(self, shown: Shown) -> None:
        """Check one reset or step.

        Raises:
            ContractError: A check failed. The first problem is reported.
        """
        arrays = shown.arrays
        self._check_same_arrays(shown)
        _check_infos(self._env, shown.infos)
        _check_values(self._env, arrays, arrays["masks"] | self._acted)
        self._check_absent(shown)
        self._after_end.look(self._before, shown)
        self._range.look(shown)
        self._changes.look(self._before, shown)
        self._was_present = self._was_present or bool(arrays["masks"].any())
        self._note_end(shown)
        self._acted = arrays["masks"] & self._same_step
        self._before = shown.copy()

    def finish(self) -> None:
        """Run the checks that need the whole play."""
        self._range.finish()
        if not self._was_present:
            raise broken(
                self._env,
                "absent",
                "some agent must be present, got masks that are False for all agents in every step",
                "set self.masks[:] = True in reset for the agents that act",
            )
        self._changes.finish()
        # A key in every step is a running number.
        end_key = next((key for key, steps in self._end_keys.items() if steps < self._steps), "")
        if end_key and not self.ended:
            raise broken(
                self._env,
                "ends",
                "the end of an episode must be set in terminals or truncations, "
                f"got an info with {end_key!r} and no end in any step",
                "set self.terminals or self.truncations in the last step of an episode",
            )

    def _check_same_arrays(self, shown: Shown) -> None:
        for name, array in shown.arrays.items():
            if getattr(self._env, name) is not array:
                raise broken(
                    self._env,
                    "arrays",
                    f"{name} must stay the same array, got another",
                    f"write in place: self.{name}[:] = ...",
                )
        if self._env.emulated:  # its return values are one row, or dicts of rows
            return
        for name, value in shown.returned.items():
            if not _is_same_array(value, shown.arrays[name]):
                raise broken(
                    self._env,
                    "arrays",
                    f"{name} must be returned as self.{name}, got another object",
                    f"return self.{name}",
                )

    def _check_absent(self, shown: Shown) -> None:
        """Compare the rows of agents that are absent both before and after this step."""
        if not self._before or shown.is_reset:
            return
        absent = ~self._before["masks"] & ~shown.arrays["masks"]
        before, after = (each["observations"][absent] for each in (self._before, shown.arrays))
        if before.tobytes() != after.tobytes():
            changed = (before.view(np.uint8) != after.view(np.uint8)).reshape(len(before), -1).any(axis=1)
            row = int(np.flatnonzero(absent)[changed.argmax()])
            raise broken(
                self._env,
                "absent",
                f"the row of an absent agent must not change, got another observation in row {row} "
                f"in step {shown.index}",
                "write only the rows of present agents",
            )

    def _note_end(self, shown: Shown) -> None:
        if self.first_end is None and shown.ended.any():
            self.first_end = shown.index
        if shown.is_reset:
            return
        self._steps += 1
        infos = shown.infos if isinstance(shown.infos, list) else [shown.infos]
        for key in EPISODE_KEYS & {key for info in infos for key in info}:
            self._end_keys[key] = self._end_keys.get(key, 0) + 1


class _AfterEnd:
    """Checks of the steps after an episode in which all agents of one environment ended."""

    def __init__(self, env: Any) -> None:
        games = getattr(env, "num_envs", 1)
        self._env = env
        self._games = games if isinstance(games, int) and env.num_agents % games == 0 else 1
        self._over: Rows = np.zeros(self._games, bool)

    def look(self, before: dict[str, Array], shown: Shown) -> None:
        """Check one step, given the arrays ``before`` it."""
        mode = None if self._env.emulated else self._env.autoreset  # an emulated one is reset by its caller
        if shown.is_reset or "terminals" not in before or mode not in (AutoresetMode.NEXT_STEP, AutoresetMode.DISABLED):
            return
        ended = (before["terminals"] | before["truncations"]).reshape(self._games, -1).all(axis=1)
        self._over = ended | (self._over & (mode == AutoresetMode.DISABLED))
        rows = np.repeat(self._over, self._env.num_agents // self._games)
        if rows.any():
            self._check_pause(mode, before, shown.arrays, rows)

    def _check_pause(self, mode: str, before: dict[str, Array], after: dict[str, Array], rows: Rows) -> None:
        for name in ["rewards", "terminals", "truncations", *(["masks"] if mode == AutoresetMode.DISABLED else [])]:
            if after[name][rows].any():
                raise broken(
                    self._env,
                    "autoreset",
                    f"with autoreset {mode!r} {name} must be 0 in the step after the end, "
                    f"got {_first_number(after[name], rows)}",
                    "do not write the rows of an environment whose episode is over",
                )
        if (
            mode == AutoresetMode.DISABLED
            and before["observations"][rows].tobytes() != after["observations"][rows].tobytes()
        ):
            raise broken(
                self._env,
                "autoreset",
                "with autoreset 'disabled' the last observation must stay after the end of an episode, got another",
                "do not write the rows of an environment whose episode is over",
            )


class _Range:
    """Check of the range of observations if the space declares pixels from 0 to 255."""

    def __init__(self, env: Any) -> None:
        space: Box = env.single_observation_space
        self._env = env
        is_picture = sum(side >= MIN_PICTURE_PX for side in space.shape) >= 2
        self._is_real = space.dtype is not None and space.dtype.kind == "f"
        declares_pixels = space.low.size > 0 and (space.low == 0).all() and (space.high == 255).all()
        self._is_active = bool(declares_pixels) and (is_picture or self._is_real)
        self._highest, self._has_fractions = 0.0, False

    def look(self, shown: Shown) -> None:
        """Update the range with the observations of one reset or step."""
        seen = shown.arrays["observations"][shown.arrays["masks"]] if self._is_active else np.zeros(0)
        if seen.size:
            self._highest = max(self._highest, float(seen.max()))
            self._is_active = self._highest <= 1  # otherwise the check has passed
            self._has_fractions = self._has_fractions or (self._is_real and bool((seen % 1).any()))

    def finish(self) -> None:
        """Raise if only a small part of the range was used."""
        if self._is_active and (self._has_fractions or not self._is_real):
            raise broken(
                self._env,
                "observations",
                f"observations must use the range that {self._env.single_observation_space} declares, "
                f"got none above {self._highest:g}",
                "they are already divided by 255: declare Box(0, 1), or do not divide the pixels",
            )


def _is_same_array(value: Any, array: Array) -> bool:
    """Return True if ``value`` is ``array`` or a view of the whole array."""
    return (
        isinstance(value, np.ndarray)
        and (value.shape, value.dtype, value.strides) == (array.shape, array.dtype, array.strides)
        and value.ctypes.data == array.ctypes.data
    )


def _check_infos(env: Any, infos: Any) -> None:
    if not env.emulated:
        if not isinstance(infos, list) or not all(isinstance(info, dict) for info in infos):
            raise broken(
                env, "infos", f"infos must be a list of dicts, got {infos!r}", "return [] if there is nothing to report"
            )
        return
    if not isinstance(infos, dict):
        raise broken(env, "infos", f"the info must be a dict, got {infos!r}", "return {} if there is nothing to report")
    agents = getattr(env, "possible_agents", ())
    for key, info in infos.items():
        if key in agents and not isinstance(info, dict):
            raise broken(
                env,
                "infos",
                f"the info of each agent must be a dict, got {info!r} for {key!r}",
                "return {} for an agent if there is nothing to report",
            )


def _check_values(env: Any, arrays: dict[str, Array], involved: Rows) -> None:
    check_inside(env, "observations", arrays["observations"], arrays["masks"])
    unreal = ~np.isfinite(arrays["rewards"])
    if unreal.any():
        raise broken(
            env,
            "rewards",
            f"rewards must be finite, got {_first_number(arrays['rewards'], unreal)}",
            "look for a division by zero",
        )
    for name in ("rewards", "terminals", "truncations"):
        if arrays[name][~involved].any():
            raise broken(
                env,
                "absent",
                f"{name} of absent agents must be 0, got {_first_number(arrays[name], ~involved)}",
                "clear the rows of masked agents",
            )
    both = arrays["terminals"] & arrays["truncations"]
    if both.any() and not env.emulated:
        raise broken(
            env,
            "ends",
            f"an episode must end with a terminal or a truncation, got both in row {_first_row(both)}",
            "do not truncate an episode that has terminated: self.truncations[:] = late & ~self.terminals",
        )


def check_inside(env: Any, name: str, observations: Array, rows: Rows) -> None:
    """Raise unless the ``rows`` of ``observations`` are in the space, and each field is in its own subspace."""
    space: Box = env.single_observation_space
    seen = observations[rows]
    outside = ~_is_within(seen, space.low, space.high)
    if outside.any():
        row = np.flatnonzero(rows)[_first_row(outside)]
        raise broken(
            env,
            "observations",
            f"{name} must be in {space}, got {seen[outside][0]} in row {row}",
            "widen the space or clip the observation",
        )
    if seen.dtype.kind == "f" and not np.isfinite(seen).all():
        row = np.flatnonzero(rows)[_first_row(~np.isfinite(seen))]
        raise broken(
            env,
            "observations",
            f"{name} must be finite, got {seen[~np.isfinite(seen)][0]} in row {row}",
            "look for a division by zero, or clip the observation",
        )
    bounds = env.emulated.get("observation_bounds") if env.emulated else None
    if isinstance(bounds, Mapping) and seen.size:
        for field, problem in _outside_fields(seen.view(env.obs_dtype), bounds, ""):
            raise broken(
                env,
                "observations",
                f"{name} must be in the space of the environment, got {problem} in {field}",
                "widen the space or clip the observation",
            )


def _outside_fields(array: Array, bounds: Any, name: str) -> "list[tuple[str, str]]":
    """Return the name and first value of each field that is out of bounds."""
    if isinstance(bounds, Mapping):
        return [
            found
            for field, inner in bounds.items()
            for found in _outside_fields(array[field], inner, f"{name}[{field!r}]")
        ]
    if bounds is None or not array.size or array.dtype.fields:
        return []
    outside = ~(_is_within(array, *bounds) & np.isfinite(array))
    return [(name, str(array[outside].ravel()[0]))] if outside.any() else []


def _is_within(array: Array, low: Array, high: Array) -> npt.NDArray[np.bool_]:
    """Return which elements are within the bounds, up to rounding, as emulation accepts them."""
    low, high = rounded_bounds(low, high, array.dtype)
    within: npt.NDArray[np.bool_] = (array >= low) & (array <= high)
    return within


def _first_number(array: Array, rows: Rows) -> str:
    """Describe the first nonzero number in ``rows`` and its row."""
    row = _first_row(rows & (array != 0))
    return f"{array[row]} in row {row}"


def _first_row(wrong: Rows) -> int:
    """Return the first row with a True value."""
    return int(np.argwhere(wrong)[0][0])


class Changes:
    """Check that at least one observation differs from the previous one in the same episode.

    Tasks without observations pass: a space with only one value, episodes of one step, or a placeholder, which is a
    single number that stays at a bound of a space within 0 and 1.

    Args:
        env: Environment to check.
    """

    def __init__(self, env: Any) -> None:
        space: Box = env.single_observation_space
        self._env = env
        self._may_be_placeholder = space.low.size == 1 and space.low.min() >= 0 and space.high.max() <= 1
        self._is_active = not (space.low == space.high).all()
        self._count = 0

    def look(self, before: dict[str, Array], shown: Shown) -> None:
        """Compare one step with the step ``before`` it."""
        if not self._is_active or shown.is_reset or not before:
            return
        rows = before["masks"] & shown.arrays["masks"] & ~shown.ended
        if "terminals" in before:
            rows &= ~(before["terminals"] | before["truncations"])
        if rows.any():
            self._count += 1
            old, new = before["observations"][rows], shown.arrays["observations"][rows]
            self._is_active = old.tobytes() == new.tobytes()
            self._may_be_placeholder = self._may_be_placeholder and bool(np.isin(new, (0, 1)).all())

    def finish(self) -> None:
        """Raise if no observation changed.

        Raises:
            ContractError: At least ``MIN_STEPS`` steps were compared, and no observation changed.
        """
        if self._is_active and self._count >= MIN_STEPS and not self._may_be_placeholder:
            raise broken(
                self._env,
                "observations",
                "observations must change during an episode, "
                f"got the same ones in each of {self._count} steps within episodes",
                "write the observation in step, or declare the only value as both bounds of the space",
            )
