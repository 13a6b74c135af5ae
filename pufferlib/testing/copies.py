"""Checks that compare plays: again, in a copy, beside a copy, in each autoreset mode, and in a larger batch."""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pufferlib.buffers import Array
from pufferlib.env import AUTORESET_MODES
from pufferlib.legal_actions import LegalActions
from pufferlib.testing.arrays import adopting, check_neighbouring_rows, takes
from pufferlib.testing.contract import ContractError, broken
from pufferlib.testing.modes import FirstEnd, check_first_ends
from pufferlib.testing.play import FINAL, MARKS, Differs, Trace, play
from pufferlib.testing.subject import Subject
from pufferlib.testing.values import StepChecks, check_inside

__all__ = ["check_adoption", "check_again", "check_batch", "check_modes", "check_neighbours"]


def check_again(subject: Subject) -> None:
    """Play once more what was played: the same seed, the same bytes."""
    env = subject.env
    try:
        _follow(env, subject.trace, subject)
    except Differs as differs:
        raise _not_the_same(subject, env, differs) from None


def check_adoption(subject: Subject) -> None:
    """Play the same in a second environment, on arrays that it is given."""
    env, batch = adopting(subject.env, subject.make)
    try:
        _follow(env, subject.trace, subject)
        check_neighbouring_rows(env, batch)
    except Differs as differs:
        raise broken(
            env,
            "seed",
            f"the same seed must give the same {differs.name} in every copy, got others in step {differs.index}",
            "draw in __init__ from its seed only, or leave it to reset(seed)",
        ) from None
    finally:
        env.close()


def check_neighbours(subject: Subject) -> None:
    """Play the same again while a copy with another seed takes turns."""
    env = subject.make()
    seed, steps = subject.seed, subject.steps
    try:
        others = play(env, seed + 1, steps + 1, MARKS[1])
        for shown in play(subject.env, seed, steps, MARKS[1]):
            subject.trace.compare(shown)
            for _ in range(1 if shown.index else 2):  # the copy is one step ahead
                next(others)
    except Differs as differs:
        raise broken(
            env,
            "copies",
            f"the same seed must give the same {differs.name} beside another copy that plays, "
            f"got others in step {differs.index}",
            "keep state in self, not in the class or the module, and draw from a generator of self",
        ) from None
    finally:
        env.close()


def check_modes(subject: Subject) -> None:
    """Play each autoreset mode of an environment that takes it as a keyword."""
    assert subject.creator is not None
    ends: dict[str, FirstEnd] = {}
    for mode in AUTORESET_MODES if takes(subject.creator, "autoreset") else ():
        env = subject.make(autoreset=mode)
        try:
            if env.autoreset != mode:
                raise broken(
                    env,
                    "autoreset",
                    f"autoreset must be {mode!r} when asked for, got {env.autoreset!r}",
                    "set self.autoreset",
                )
            trace, end = _recorded(env, subject)
            _follow(env, trace, subject)
            if end is not None:
                ends[mode] = end
        except Differs as differs:
            raise _differs(env, differs) from None
        finally:
            env.close()
    check_first_ends(subject.env, ends)


def check_batch(subject: Subject) -> None:
    """Play the games of the environment again, in a batch that has one more."""
    assert subject.creator is not None
    if not takes(subject.creator, "num_envs"):
        return
    default = inspect.signature(subject.creator).parameters["num_envs"].default
    small, count = subject.env, getattr(subject.env, "num_envs", default)
    if not isinstance(count, int):
        return
    large = subject.make(num_envs=count + 1)
    try:
        if large.num_agents * count == small.num_agents * (count + 1):  # else they are no games of as many agents each
            actions = _actions_for(small, large, subject.seed)
            for shown in play(large, subject.seed, subject.steps, MARKS[1], actions):
                subject.trace.compare(shown, slice(0, small.num_agents))
    except Differs as differs:
        raise broken(
            large,
            "batch",
            f"the same seed must give the same {differs.name} with num_envs={count + 1} as with {count} for the games "
            f"of both, got others in step {differs.index}",
            "give each game a generator of its own, with pufferlib.seeding.env_seed(seed, game)",
        ) from None
    finally:
        large.close()


def _actions_for(small: Any, large: Any, seed: int) -> Callable[[Array], Array]:
    """Draw the actions that ``small`` was given, and for the agents that only ``large`` has those of the first ones."""
    count, more = small.num_agents, large.num_agents - small.num_agents
    first, others = LegalActions(small, count, seed), LegalActions(large, more, seed)

    def actions(observations: Array) -> Array:
        drawn = first.sample(observations[:count])
        rest = others.sample(observations[count:]) if others.has_masks else drawn[:more]
        return np.concatenate([drawn, rest])

    return actions


def _recorded(env: Any, subject: Subject) -> tuple[Trace, FirstEnd | None]:
    """Play with all checks of steps. Returns the digests, and the first end."""
    checks, trace, end = StepChecks(env), Trace(), None
    for shown in play(env, subject.seed, subject.steps, MARKS[0]):
        checks.look(shown)
        trace.add(shown)
        if end is None and shown.ended.any():
            end = FirstEnd(shown)
    checks.finish()
    return trace, end


def _follow(env: Any, trace: Trace, subject: Subject) -> None:
    """Play, and raise Differs where another play showed something else."""
    for shown in play(env, subject.seed, subject.steps, MARKS[1]):
        trace.compare(shown)
        if shown.final and not shown.is_reset:  # by now it is known that they were written
            check_inside(env, FINAL, shown.arrays[FINAL], shown.arrays["truncations"])


def _not_the_same(subject: Subject, env: Any, differs: Differs) -> ContractError:
    """Tell a generator that is not seeded from state that a reset keeps, by one more copy."""
    if subject.creator is None or differs.name == FINAL:
        return _differs(env, differs)
    fresh = subject.make()
    try:
        _follow(fresh, subject.trace, subject)
    except Differs:
        return _differs(env, differs)
    finally:
        fresh.close()
    return broken(
        env,
        "reset",
        f"the same seed must give the same {differs.name} whatever was played before, got others in step "
        f"{differs.index}, but not in a new environment",
        "begin in reset with everything that an episode changes",
    )


def _differs(env: Any, differs: Differs) -> ContractError:
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
        f"with autoreset 'same_step' {FINAL} must have the last observation of an agent that is truncated, "
        f"got row {differs.row} not written in step {differs.index}",
        f"before the next episode begins: self.{FINAL}[rows] = self.observations[rows]",
    )
