"""Checks that compare plays: repeated, in a copy, beside a copy, in each autoreset mode, and in a larger batch."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode
from pufferlib.legal_actions import LegalActions
from pufferlib.testing.arrays import adopting, check_neighbouring_rows, takes
from pufferlib.testing.contract import ContractError, broken
from pufferlib.testing.play import FINAL, MARKS, Differs, Trace, play
from pufferlib.testing.resets import FirstEnd, check_first_ends
from pufferlib.testing.subject import Subject
from pufferlib.testing.values import StepChecks, check_inside

__all__ = ["check_adoption", "check_again", "check_batch", "check_modes", "check_neighbours"]


def check_again(subject: Subject) -> None:
    """Repeat the first play with the same seed, and raise unless it gives the same bytes."""
    env = subject.env
    try:
        _compare_play(env, subject.trace, subject)
    except Differs as differs:
        raise _repetition_error(subject, env, differs) from None


def check_adoption(subject: Subject) -> None:
    """Repeat the first play in a second environment, on arrays passed as ``buf``."""
    env, batch = adopting(subject.env, subject.make)
    try:
        _compare_play(env, subject.trace, subject)
        check_neighbouring_rows(env, batch)
    except Differs as differs:
        raise broken(
            env,
            "seed",
            f"the same seed must give the same {differs.name} in every copy, got others in step {differs.index}",
            "in __init__ draw random numbers only from its seed, or draw them in reset(seed)",
        ) from None
    finally:
        env.close()


def check_neighbours(subject: Subject) -> None:
    """Repeat the first play while a copy with another seed is stepped in turn."""
    env, first = subject.make(), subject.make()  # not subject.env, whose reset may be broken
    seed, steps = subject.seed, subject.steps
    try:
        others = play(env, seed + 1, steps + 1, MARKS[1])
        for shown in play(first, seed, steps, MARKS[1]):
            subject.trace.compare(shown)
            for _ in range(1 if shown.index else 2):  # the copy is one step ahead
                next(others)
    except Differs as differs:
        raise broken(
            env,
            "copies",
            f"the same seed must give the same {differs.name} while another copy plays, "
            f"got others in step {differs.index}",
            "keep state in self, not in the class or the module, and draw from a generator in self",
        ) from None
    finally:
        env.close()
        first.close()


def check_modes(subject: Subject) -> None:
    """Play in each autoreset mode, if the environment accepts ``autoreset`` as a keyword argument."""
    assert subject.creator is not None
    ends: dict[str, FirstEnd] = {}
    for mode in AutoresetMode if takes(subject.creator, "autoreset") else ():
        env = subject.make(autoreset=mode)
        try:
            if env.autoreset != mode:
                raise broken(
                    env,
                    "autoreset",
                    f"autoreset must be {mode!r} when passed to the environment, got {env.autoreset!r}",
                    "set self.autoreset",
                )
            trace, end = _record_play(env, subject)
            _compare_play(env, trace, subject)
            if end is not None:
                ends[mode] = end
        except Differs as differs:
            raise _difference_error(env, differs) from None
        finally:
            env.close()
    check_first_ends(subject.env, ends)


def check_batch(subject: Subject) -> None:
    """Repeat the first play in a batch with one more environment."""
    assert subject.creator is not None
    if not takes(subject.creator, "num_envs"):
        return
    default = inspect.signature(subject.creator).parameters["num_envs"].default
    small, count = subject.env, getattr(subject.env, "num_envs", default)
    if not isinstance(count, int):
        return
    large = subject.make(num_envs=count + 1)
    try:
        if large.num_agents * count == small.num_agents * (count + 1):  # else agents are not evenly divided
            actions = _actions_for(small, large, subject.seed)
            for shown in play(large, subject.seed, subject.steps, MARKS[1], actions):
                subject.trace.compare(shown, slice(0, small.num_agents))
    except Differs as differs:
        raise broken(
            large,
            "batch",
            f"the same seed must give the same {differs.name} with num_envs={count + 1} as with {count} in the "
            f"environments of both, got others in step {differs.index}",
            "give each environment its own generator, with pufferlib.seeding.env_seed(seed, index)",
        ) from None
    finally:
        large.close()


def _actions_for(small: Any, large: Any, seed: int) -> Callable[[Array], Array]:
    """Return a function that draws the actions of ``small``, and actions for the additional agents of ``large``."""
    count, more = small.num_agents, large.num_agents - small.num_agents
    first, others = LegalActions(small, count, seed), LegalActions(large, more, seed)

    def actions(observations: Array) -> Array:
        drawn = first.sample(observations[:count])
        rest = others.sample(observations[count:]) if others.has_masks else drawn[:more]
        return np.concatenate([drawn, rest])

    return actions


def _record_play(env: Any, subject: Subject) -> tuple[Trace, FirstEnd | None]:
    """Play with all checks of single steps, and return the digests and the first end."""
    checks, trace, end = StepChecks(env), Trace(), None
    for shown in play(env, subject.seed, subject.steps, MARKS[0]):
        checks.look(shown)
        trace.add(shown)
        if end is None and shown.ended.any():
            end = FirstEnd(shown)
    checks.finish()
    return trace, end


def _compare_play(env: Any, trace: Trace, subject: Subject) -> None:
    """Play, and raise Differs at the first difference from ``trace``."""
    for shown in play(env, subject.seed, subject.steps, MARKS[1]):
        trace.compare(shown)
        if shown.final and not shown.is_reset:  # they were written, or compare would have raised
            check_inside(env, FINAL, shown.arrays[FINAL], shown.arrays["truncations"])


def _repetition_error(subject: Subject, env: Any, differs: Differs) -> ContractError:
    """Return the error for a repetition that differs.

    If a new environment does not differ, a reset keeps state. Otherwise some generator is not seeded.
    """
    if subject.creator is None or differs.name == FINAL:
        return _difference_error(env, differs)
    fresh = subject.make()
    try:
        _compare_play(fresh, subject.trace, subject)
    except Differs:
        return _difference_error(env, differs)
    finally:
        fresh.close()
    return broken(
        env,
        "reset",
        f"the same seed must give the same {differs.name} after any earlier episodes, got others in step "
        f"{differs.index}, but not in a new environment",
        "reset everything that an episode changes",
    )


def _difference_error(env: Any, differs: Differs) -> ContractError:
    if differs.name != FINAL:
        return broken(
            env,
            "seed",
            f"the same seed must give the same {differs.name}, got others in step {differs.index}",
            "draw only from seed",
        )
    return broken(
        env,
        "autoreset",
        f"with autoreset 'same_step' {FINAL} must have the last observation of a truncated agent, "
        f"got row {differs.row} not written in step {differs.index}",
        f"before the next episode starts, set self.{FINAL}[rows] = self.observations[rows]",
    )
