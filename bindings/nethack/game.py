"""NetHack's tasks with seeds that hold, ends that tell the truth, and pictures."""

import functools
from collections.abc import Sequence
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Dict
from nle import nethack
from nle.env import NLE, tasks

from pufferlib.errors import APIUsageError, UnknownNameError

from .._terminal import draw_terminal

__all__ = ["Mended", "check_counts", "check_keys", "make_game", "mended"]

Info = dict[str, Any]
Observation = dict[str, npt.NDArray[Any]]

RENDER_MODES = (None, "rgb_array", "ansi")
SCREEN = ("tty_chars", "tty_colors", "tty_cursor")
DEFAULT_KEYS = ("glyphs", "blstats", "message")
PENALTY_MODES = ("constant", "exp", "square", "linear", "always")
CHALLENGE_STEPS = 50_000
# What the parts of a character may be; NetHack mends combinations that it does not know.
ROLES = ["arc", "bar", "cav", "hea", "kni", "mon", "pri", "ran", "rog", "sam", "tou", "val", "wiz"]
TRAITS = ["hum", "elf", "dwa", "gno", "orc", "mal", "fem", "law", "neu", "cha"]
MAX_SEED = 1 << 62


def make_game(
    name: str,
    *,
    observation_keys: Sequence[str] = DEFAULT_KEYS,
    character: str | None = None,
    max_episode_steps: int | None = None,
    penalty_mode: str | None = None,
    penalty_step: float | None = None,
    penalty_time: float | None = None,
    no_progress_timeout: int | None = None,
    spawn_monsters: bool = True,
    allow_all_yn_questions: bool | None = None,
    allow_all_modes: bool | None = None,
    render_mode: str | None = None,
) -> gymnasium.Env[Observation, np.int64]:
    """The task ``name``, one of the binding's names; None leaves an option as the task has it.

    Args:
        name: An official id.
        observation_keys: What is seen: keys of nle.
        character: "mon-hum-neu-mal" (role, race, alignment, gender), in part, or "@" for a random
            one, as in the Challenge.
        max_episode_steps: The step after which a game is cut off: 5,000, in the Challenge 50,000.
        penalty_mode: How steps in which no time passes are punished: "constant", "exp", "square",
            "linear" or "always".
        penalty_step: For each such step, -0.01; in the Challenge 0.
        penalty_time: For each turn that passes, 0.
        no_progress_timeout: Only in the Challenge: steps without a turn that cut it off, 10,000.
        spawn_monsters: Whether new monsters appear over time.
        allow_all_yn_questions: Show the agent every yes-or-no question. The tasks answer most.
        allow_all_modes: Show the agent menus and --More--. The tasks click them away.
        render_mode: None, "rgb_array" (the terminal, uint8 ``(480, 960, 3)``) or "ansi".

    Raises:
        UnknownNameError: An observation key or a penalty mode that does not exist.
        APIUsageError: A value of the wrong kind, or an option that the task does not have.
    """
    where = f"nethack/{name}"
    task = name.removesuffix("-v0")
    is_challenge = task == "NetHackChallenge"
    if max_episode_steps is None and is_challenge:
        max_episode_steps = CHALLENGE_STEPS
    counts = {"max_episode_steps": max_episode_steps, "no_progress_timeout": no_progress_timeout}
    penalties = {"penalty_mode": penalty_mode, "penalty_step": penalty_step, "penalty_time": penalty_time}
    switches = {"allow_all_yn_questions": allow_all_yn_questions, "allow_all_modes": allow_all_modes}
    given = {**counts, **penalties, **switches, "spawn_monsters": spawn_monsters, "character": character}
    given = {option: value for option, value in given.items() if value is not None}
    _check_options(where, given, has_penalty=task != "NetHack", is_challenge=is_challenge)
    keys = check_keys(where, observation_keys, nethack.OBSERVATION_DESC, render_mode)
    drawn = [key for key in SCREEN if render_mode and key not in keys]
    env = mended(NLE if task == "NetHack" else getattr(tasks, task))(
        observation_keys=(*keys, *drawn), render_mode=render_mode, fix_moon_phase=True, **given
    )
    env.show(keys)
    return env


@functools.cache
def mended(task: type[NLE], by: type["Mended"] | None = None) -> type["Mended"]:
    """The class ``task`` of nle, mended, ``by`` a class that mends more, if given."""
    return type(task.__name__, (by or Mended, task), {})


class Mended(NLE):  # type: ignore[misc]  # nle has no types
    """What all tasks of nle share; a class that has it before a task's class plays that task."""

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}
    observation_space: Dict
    last_observation: Sequence[npt.NDArray[Any]]

    def show(self, keys: tuple[str, ...]) -> None:
        """Let observations consist of ``keys``."""
        self._original_observation_keys = keys
        self.observation_space = Dict({key: self.observation_space[key] for key in keys})

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Observation, Info]:
        """Start a game. The arrays of the observation are overwritten by the next step."""
        gymnasium.Env.reset(self, seed=seed)
        self.seed_game(*self.np_random.integers(MAX_SEED, size=2).tolist())
        observation, _ = super().reset()
        return observation, {}

    def seed_game(self, core: int, display: int) -> None:
        """Seed the two streams of the next game: what happens, and what is merely shown."""
        # Of the class, because the Challenge forbids its own object to. False: NetHack must not reseed itself.
        nethack.Nethack.set_initial_seeds(self.nethack, core, display, False)

    def step(self, action: np.int64) -> tuple[Observation, float, bool, bool, Info]:
        """Press a key. The arrays of the observation are overwritten by the next step."""
        before = list(self.last_observation)
        for index in (self._blstats_index, self._internal_index):  # all that rewards compare
            before[index] = before[index].copy()
        observation, is_over = self.nethack.step(self.actions[action])
        if not self._allow_all_modes or observation[self._program_state_index][0] == 1:  # 1: the game is over
            observation, is_over = self._perform_known_steps(observation, is_over)
        self._steps += 1
        self.last_observation = observation
        status = self.StepStatus(is_over or self._is_episode_end(observation))
        terminated = status != self.StepStatus.RUNNING
        truncated = not terminated and self._check_abort(observation)
        outcome = self.StepStatus.ABORTED if truncated else status
        reward = float(self._reward_fn(before, action, observation, outcome))
        info = self._summary(before if is_over else observation, outcome) if terminated or truncated else {}
        return self._get_observation(observation), reward, terminated, truncated, info

    def render(self) -> npt.NDArray[np.uint8] | str | None:
        """The terminal: uint8 ``(480, 960, 3)``, or text with colours; None without a ``render_mode``."""
        if self.render_mode is None:
            return None
        chars, colors, cursor = (self.last_observation[self._observation_keys.index(key)] for key in SCREEN)
        if self.render_mode == "ansi":
            text: str = nethack.tty_render(chars, colors, cursor)
            return text
        return draw_terminal(chars, colors, tuple(cursor))

    def _summary(self, observation: Sequence[npt.NDArray[Any]], outcome: Any) -> Info:
        """How far a game came; when it is over, its numbers are those of the moment before."""
        numbers = observation[self._blstats_index]
        goal = getattr(self.StepStatus, "TASK_SUCCESSFUL", None)
        return {
            **({} if goal is None else {"success": outcome == goal}),
            "points": int(numbers[nethack.NLE_BL_SCORE]),
            "depth": int(numbers[nethack.NLE_BL_DEPTH]),
            "level": int(numbers[nethack.NLE_BL_XP]),
            "turns": int(numbers[nethack.NLE_BL_TIME]),
            "ascended": self.nethack.how_done() == nethack.ASCENDED,
        }


def check_keys(where: str, keys: Sequence[str], known: Any, render_mode: str | None) -> tuple[str, ...]:
    """``keys`` of an observation as a tuple, if they and ``render_mode`` make sense."""
    if isinstance(keys, str) or not keys or len(set(keys)) != len(keys):
        raise APIUsageError(f"{where}: observation_keys must be a list of different names, got {keys!r}")
    for key in keys:
        if key not in known:
            raise UnknownNameError.of(where, "observation key", key, known)
    if render_mode not in RENDER_MODES:
        raise APIUsageError(f"{where}: render_mode must be None, 'rgb_array' or 'ansi', got {render_mode!r}")
    return tuple(keys)


def check_counts(where: str, given: Info, *options: str) -> None:
    """Those of ``options`` that are given must be whole numbers from 1."""
    for option in options:
        value = given.get(option, 1)
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
            raise APIUsageError(f"{where}: {option} must be an int >= 1, got {value!r}")


def _check_options(where: str, given: Info, has_penalty: bool, is_challenge: bool) -> None:
    for option in given:
        if option.startswith("penalty") and not has_penalty:
            raise APIUsageError(f"{where}: has no penalty, got {option}={given[option]!r}; use NetHackScore-v0")
        if option == "no_progress_timeout" and not is_challenge:
            raise APIUsageError(f"{where}: only NetHackChallenge-v0 has a {option}; use max_episode_steps")
    check_counts(where, given, "max_episode_steps", "no_progress_timeout")
    for option in ("allow_all_yn_questions", "allow_all_modes", "spawn_monsters"):
        if not isinstance(given.get(option, True), bool | np.bool_):
            raise APIUsageError(f"{where}: {option} must be True or False, got {given[option]!r}")
    for option in ("penalty_step", "penalty_time"):
        value = given.get(option, 0.0)
        if isinstance(value, bool) or not isinstance(value, int | float) or not np.isfinite(value):
            raise APIUsageError(f"{where}: {option} must be a number, got {value!r}")
    if given.get("penalty_mode", "constant") not in PENALTY_MODES:
        raise UnknownNameError.of(where, "penalty_mode", given["penalty_mode"], PENALTY_MODES)
    _check_character(where, given.get("character", "@"))


def _check_character(where: str, character: object) -> None:
    """What NetHack cannot read it answers with a menu that nle would wait for without an end."""
    parts = character.split("-") if isinstance(character, str) else [""]
    if character != "@" and not (parts[0] in ROLES and set(parts[1:]) <= set(TRAITS)):
        raise APIUsageError(
            f"{where}: character must be '@' or like 'mon-hum-neu-mal', got {character!r}; "
            f"roles: {' '.join(ROLES)}; then any of: {' '.join(TRAITS)}"
        )
