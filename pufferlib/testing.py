"""The contract of an environment, as a test for your own.

from pufferlib.testing import check_env

def test_my_env():
    check_env(MyEnv)
"""

import inspect
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import allocate, array_specs
from pufferlib.env import AUTORESET_MODES, reset_values, step_values
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.spaces import check_native_spaces, joint_space

__all__ = ["ContractError", "check_env"]

OUTCOMES = ("observations", "rewards", "terminals", "truncations", "masks")
FINAL = "final_observations"
MARKS = 0x55, 0xAA  # two bytes of which no bit is the same
Step = dict[str, npt.NDArray[Any]]


class ContractError(PufferError, AssertionError):
    """An environment breaks the contract; the message says how."""


def check_env(env: Any, *, seed: int = 0, steps: int = 200) -> None:
    """Play random actions and check all that the vector layer and the trainer rely on.

    That is: spaces and arrays fit each other; arrays given as ``buf`` are adopted and always
    written in place; what ``reset`` and ``step`` return shows those arrays; observations stay in
    their space and rewards finite; absent agents have reward 0 and no ends (with "same_step" an
    agent may leave in the step that ends it, and what it earned there counts); infos are dicts;
    and the same seed and actions give the same bytes again. What follows the end of an episode must
    be what ``autoreset`` says, with "same_step" also that a truncation writes ``final_observations``;
    of an environment that takes ``autoreset`` as a keyword, every mode is played. A native environment
    says of each end either that it is terminal or that it is a truncation.

    Args:
        env: A ``PufferEnv`` or emulated environment, or a class or function that makes one; only
            with the latter are ``buf`` and the modes tested, and ``close`` called.
        seed: Of the environment and of the actions.
        steps: To play, twice. Make it long enough for episodes to end: ends that never come are not checked.

    Raises:
        ContractError: The first thing that is wrong.
    """
    if steps < 1:
        raise APIUsageError(f"check_env: steps must be at least 1, got {steps}; take enough for episodes to end")
    if hasattr(env, "step") and not isinstance(env, type):
        _check_running(env, seed, steps)
        return
    if not callable(env):
        raise APIUsageError(
            f"check_env: env must be an environment, or a class or function that makes one, got {env!r}; "
            "of a name, pass pufferlib.env_creator(name)"
        )
    made = env()
    try:
        _check_running(made, seed, steps)
        adopting = _check_adoption(made, env)
    finally:
        made.close()
    try:
        _check_running(adopting, seed, steps)
    finally:
        adopting.close()
    for mode in AUTORESET_MODES if _takes(env, "autoreset") else ():
        _check_mode(env, mode, seed, steps)


def _check_running(env: Any, seed: int, steps: int) -> None:
    _check_spaces(env)
    _check_arrays(env)
    if not _takes_seed(env.reset):
        raise _broken(env, "reset must take a seed", "define reset(self, seed=None)")
    first, second = (list(_play(env, seed, steps, mark)) for mark in MARKS)
    for index, (before, after) in enumerate(zip(first, second, strict=True)):
        for name in before:
            if before[name].tobytes() != after[name].tobytes():
                raise _differs(env, name, index, before[name], after[name])
        if FINAL in before:
            _check_inside(env, FINAL, before[FINAL], before["truncations"])

    if not env.emulated:  # of those the loop around them resets
        _check_ends(env, first)


def _differs(env: Any, name: str, index: int, before: npt.NDArray[Any], after: npt.NDArray[Any]) -> ContractError:
    if name != FINAL:
        return _broken(
            env, f"the same seed must give the same {name}, got others in step {index}", "draw only from seed"
        )
    row = next(
        row for row, pair in enumerate(zip(before, after, strict=True)) if pair[0].tobytes() != pair[1].tobytes()
    )
    return _broken(
        env,
        f"with autoreset 'same_step' {FINAL} must have the last observation of an agent that is truncated, "
        f"got row {row} not written in step {index}",
        f"before the next episode begins: self.{FINAL}[rows] = self.observations[rows]",
    )


def _takes_seed(reset: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(reset).parameters.values()
    except (TypeError, ValueError):  # written in C: it does not say, and may
        return True
    return any(each.name == "seed" or each.kind is each.VAR_KEYWORD for each in parameters)


def _takes(creator: Callable[..., Any], keyword: str) -> bool:
    try:
        return keyword in inspect.signature(creator).parameters
    except (TypeError, ValueError):  # written in C: it does not say
        return False


def _check_mode(creator: Callable[..., Any], mode: str, seed: int, steps: int) -> None:
    env = creator(autoreset=mode)
    try:
        if env.autoreset != mode:
            raise _broken(
                env, f"autoreset must be {mode!r} when asked for, got {env.autoreset!r}", "set self.autoreset"
            )
        _check_running(env, seed, steps)
    finally:
        env.close()


def _check_ends(env: Any, played: list[Step]) -> None:
    """Check the steps after an episode's end, the step in which all agents of an environment end."""
    games = getattr(env, "num_envs", 1)
    games = games if env.num_agents % games == 0 else 1
    over = np.zeros(games, bool)
    for before, after in pairwise(played[1:]):  # the first has no ends
        ended = (before["terminals"] | before["truncations"]).reshape(games, -1).all(axis=1)
        over = ended | (over & (env.autoreset == "disabled"))
        rows = np.repeat(over, env.num_agents // games)
        if env.autoreset != "same_step" and rows.any():
            _check_pause(env, before, after, rows)


def _check_pause(env: Any, before: Step, after: Step, rows: npt.NDArray[np.bool_]) -> None:
    quiet = ["rewards", "terminals", "truncations", *(["masks"] if env.autoreset == "disabled" else [])]
    for name in quiet:
        if after[name][rows].any():
            raise _broken(
                env,
                f"with autoreset {env.autoreset!r} {name} must be 0 in the step after the end, "
                f"got {_first(after[name], rows)}",
                "leave the rows of a game that is over alone",
            )
    if env.autoreset == "disabled" and before["observations"][rows].tobytes() != after["observations"][rows].tobytes():
        raise _broken(
            env,
            "with autoreset 'disabled' a game that is over must keep its last observation, got another",
            "leave its rows alone",
        )


def _check_spaces(env: Any) -> None:
    for name in ("single_observation_space", "single_action_space", "num_agents", "emulated", "done"):
        if not hasattr(env, name):
            raise _broken(env, f"{name} is missing", "call super().__init__(buf), or wrap it with pufferlib.emulation")
    try:
        check_native_spaces(type(env).__name__, env.single_observation_space, env.single_action_space)
    except APIUsageError as error:
        raise ContractError(str(error)) from None


def _check_arrays(env: Any) -> None:
    for name, (shape, dtype) in array_specs(
        env.single_observation_space, env.single_action_space, env.num_agents
    ).items():
        array = getattr(env, name, None)
        if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != dtype:
            got = f"{array.dtype} {array.shape}" if isinstance(array, np.ndarray) else repr(array)
            raise _broken(
                env, f"{name} must be an array {dtype} {shape}, got {got}", "leave it to super().__init__(buf)"
            )


def _check_adoption(made: Any, creator: Callable[..., Any]) -> Any:
    """An environment made on given arrays, which it must adopt."""
    buf = allocate(made.single_observation_space, made.single_action_space, made.num_agents)
    env = creator(buf=buf)
    for name, array in buf.items():
        if getattr(env, name) is not array:
            raise _broken(
                env, f"{name} must be the array given in buf, got another", "pass buf on: super().__init__(buf)"
            )
    return env


def _play(env: Any, seed: int, steps: int, mark: int) -> Iterator[Step]:
    """Yield copies of the arrays after a reset and after each step.

    Before each step ``final_observations`` is filled with the byte ``mark``. What a truncation leaves of
    it differs between two plays with different marks, as nothing else may.
    """
    arrays = {name: getattr(env, name) for name in (*OUTCOMES, FINAL)}
    actions = joint_space(env.single_action_space, env.num_agents)
    actions.seed(seed)
    acted = np.zeros(env.num_agents, bool)
    same_step = not env.emulated and env.autoreset == "same_step"
    for index in range(steps + 1):
        if index == 0 or env.done:
            observations, infos = _values(reset_values, env, env.reset(seed=None if index else seed))
            returned = {"observations": observations}
        else:
            arrays[FINAL].reshape(-1).view(np.uint8)[:] = mark
            *values, infos = _values(step_values, env, env.step(actions.sample()))
            returned = dict(zip(OUTCOMES, values, strict=False))
        _check_result(env, arrays, returned, infos, arrays["masks"] | acted)
        acted = arrays["masks"] & same_step
        shown = {name: arrays[name].copy() for name in {"masks", *returned}}  # after a reset nobody looks at the others
        if same_step and "truncations" in shown:
            shown[FINAL] = arrays[FINAL].copy()
            shown[FINAL][~shown["truncations"]] = 0
        yield shown


def _values(values_of: Callable[..., tuple[Any, ...]], env: Any, outcome: Any) -> tuple[Any, ...]:
    try:
        return values_of(env, outcome)
    except APIUsageError as error:
        raise ContractError(str(error)) from None


def _check_result(
    env: Any, arrays: Step, returned: dict[str, Any], infos: Any, involved: npt.NDArray[np.bool_]
) -> None:
    for name, array in arrays.items():
        if getattr(env, name) is not array:
            raise _broken(env, f"{name} must stay the same array, got another", f"write in place: self.{name}[:] = ...")
    _check_values(env, arrays, involved)
    if env.emulated:  # returns one row, or dicts of rows
        if not isinstance(infos, dict):
            raise _broken(env, f"the info must be a dict, got {infos!r}", "return {} when there is nothing to say")
        return
    for name, value in returned.items():
        if not isinstance(value, np.ndarray) or not np.shares_memory(value, arrays[name]):
            raise _broken(env, f"{name} must be returned as self.{name}, got another object", f"return self.{name}")
    if not isinstance(infos, list) or not all(isinstance(info, dict) for info in infos):
        raise _broken(env, f"infos must be a list of dicts, got {infos!r}", "return [] when there is nothing to say")


def _check_values(env: Any, arrays: Step, involved: npt.NDArray[np.bool_]) -> None:
    _check_inside(env, "observations", arrays["observations"], arrays["masks"])
    unreal = ~np.isfinite(arrays["rewards"])
    if unreal.any():
        raise _broken(
            env, f"rewards must be finite, got {_first(arrays['rewards'], unreal)}", "look for a division by zero"
        )
    for name in ("rewards", "terminals", "truncations"):
        if arrays[name][~involved].any():
            raise _broken(
                env,
                f"{name} of absent agents must be 0, got {_first(arrays[name], ~involved)}",
                "clear the rows of masked agents",
            )
    both = arrays["terminals"] & arrays["truncations"]
    if both.any() and not env.emulated:
        raise _broken(
            env,
            f"an episode has one end, terminal or truncation, got both in row {_first_row(both)}",
            "what has ended by itself was not cut off: self.truncations[:] = late & ~self.terminals",
        )


def _check_inside(env: Any, name: str, observations: npt.NDArray[Any], rows: npt.NDArray[np.bool_]) -> None:
    space: Box = env.single_observation_space
    seen = observations[rows]
    outside = ~((seen >= space.low) & (seen <= space.high))
    if outside.any():
        row = np.flatnonzero(rows)[_first_row(outside)]
        raise _broken(
            env,
            f"{name} must be in {space}, got {seen[outside][0]} in row {row}",
            "widen the space or clip the observation",
        )


def _first(array: npt.NDArray[Any], rows: npt.NDArray[np.bool_]) -> str:
    """The first number of ``rows`` that is not 0, and where it is."""
    row = _first_row(rows & (array != 0))
    return f"{array[row]} in row {row}"


def _first_row(wrong: npt.NDArray[np.bool_]) -> int:
    return int(np.argwhere(wrong)[0][0])


def _broken(env: Any, problem: str, advice: str) -> ContractError:
    return ContractError(f"{type(env).__name__}: {problem}; {advice}")
