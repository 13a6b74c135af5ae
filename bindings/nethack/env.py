"""NetHack's tasks."""

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from nle import nethack
from nle.env import NLE, tasks

from pufferlib.errors import APIUsageError, UnknownNameError

from .._shared.nle.env import Info, Observation, PatchedNLE, check_keys, patched
from .._shared.options import check_counts, check_numbers, check_switches

__all__ = ["make_env"]

DEFAULT_KEYS = ("glyphs", "blstats", "message")
PENALTY_MODES = ("constant", "exp", "square", "linear", "always")
CHALLENGE_STEPS = 50_000
# Allowed parts of a character. NetHack corrects invalid combinations.
ROLES = ["arc", "bar", "cav", "hea", "kni", "mon", "pri", "ran", "rog", "sam", "tou", "val", "wiz"]
TRAITS = ["hum", "elf", "dwa", "gno", "orc", "mal", "fem", "law", "neu", "cha"]


def make_env(
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
    """Make the task ``name``. Options that are None use the task's own value.

    Args:
        name: Official id.
        observation_keys: Keys of the observation, from nle.
        character: Role, race, alignment and gender like "mon-hum-neu-mal", in full or in part, or "@" for a random
            character, as in the Challenge.
        max_episode_steps: Number of steps after which a game is truncated: 5,000, in the Challenge 50,000.
        penalty_mode: Penalty for steps in which no game time passes: "constant", "exp", "square", "linear" or "always".
        penalty_step: Reward for each such step: -0.01, in the Challenge 0.
        penalty_time: Reward for each turn that passes: 0.
        no_progress_timeout: Number of steps without a turn after which a game is truncated, only in the Challenge:
            10,000.
        spawn_monsters: Whether new monsters appear over time.
        allow_all_yn_questions: Whether the agent answers every yes-or-no question. The tasks answer most of them.
        allow_all_modes: Whether the agent handles menus and --More--. The tasks skip them.
        render_mode: None, "rgb_array" (the terminal, uint8 ``(480, 960, 3)``) or "ansi".

    Raises:
        UnknownNameError: An observation key or penalty mode does not exist.
        APIUsageError: A value has the wrong type or is out of range, or the task does not have the option.
    """
    where = f"nethack/{name}"
    task = name.removesuffix("-v0")
    is_challenge = task == "NetHackChallenge"
    if max_episode_steps is None and is_challenge:
        max_episode_steps = CHALLENGE_STEPS
    counts = _without_none(max_episode_steps=max_episode_steps, no_progress_timeout=no_progress_timeout)
    penalties = _without_none(penalty_step=penalty_step, penalty_time=penalty_time)
    switches = _without_none(allow_all_yn_questions=allow_all_yn_questions, allow_all_modes=allow_all_modes)
    check_counts(where, **counts)
    check_numbers(where, **penalties)
    check_switches(where, spawn_monsters=spawn_monsters, **switches)
    named = _without_none(penalty_mode=penalty_mode, character=character)
    given = {**counts, **penalties, **switches, **named, "spawn_monsters": spawn_monsters}
    _check_options(where, given, has_penalty=task != "NetHack", is_challenge=is_challenge)
    keys = check_keys(where, observation_keys, nethack.OBSERVATION_DESC, render_mode)
    drawn = [key for key in PatchedNLE.screen if render_mode and key not in keys]
    env = patched(NLE if task == "NetHack" else getattr(tasks, task))(
        observation_keys=(*keys, *drawn), render_mode=render_mode, fix_moon_phase=True, **given
    )
    env.show(keys)
    return env


def _without_none(**options: Any) -> Info:
    return {option: value for option, value in options.items() if value is not None}


def _check_options(where: str, given: Info, has_penalty: bool, is_challenge: bool) -> None:
    for option in given:
        if option.startswith("penalty") and not has_penalty:
            raise APIUsageError(f"{where}: has no penalty, got {option}={given[option]!r}; use NetHackScore-v0")
        if option == "no_progress_timeout" and not is_challenge:
            raise APIUsageError(f"{where}: only NetHackChallenge-v0 has a {option}; use max_episode_steps")
    if given.get("penalty_mode", "constant") not in PENALTY_MODES:
        raise UnknownNameError.of(where, "penalty_mode", given["penalty_mode"], PENALTY_MODES)
    _check_character(where, given.get("character", "@"))


def _check_character(where: str, character: object) -> None:
    """Raise APIUsageError for an invalid character, for which NetHack would open a menu and nle would hang."""
    parts = character.split("-") if isinstance(character, str) else [""]
    if character != "@" and not (parts[0] in ROLES and set(parts[1:]) <= set(TRAITS)):
        raise APIUsageError(
            f"{where}: character must be '@' or like 'mon-hum-neu-mal', got {character!r}; "
            f"roles: {' '.join(ROLES)}; then any of: {' '.join(TRAITS)}"
        )
