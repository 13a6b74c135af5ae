"""``check_env``: every check in order, the cheapest first; ``examine`` goes on after one that fails."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from pufferlib.testing import copies
from pufferlib.testing.arrays import (
    check_arrays,
    check_autoreset,
    check_rows_are_filled,
    check_spaces,
    check_takes_seed,
)
from pufferlib.testing.contract import CONTRACT, ContractError, broken
from pufferlib.testing.ends import check_own_resets
from pufferlib.testing.leaks import check_close, check_leaks, open_handles
from pufferlib.testing.output import captured_output
from pufferlib.testing.play import MARKS, play
from pufferlib.testing.subject import Subject
from pufferlib.testing.values import StepChecks

__all__ = ["CheckResult", "check_env", "examine"]

LONGEST_LINE = 60  # of what an environment printed, in a message
LONGEST_EPISODE = 10_000  # steps in which an episode ends, or the first play
LONGEST_SEARCH_S = 5.0  # for the first end


def check_env(env: Any, *, seed: int = 0, steps: int = 200, continuing: bool = False) -> None:
    """Play random actions and check all that the vector layer and the trainer rely on: the contract.

    Its lines are in docs/contract.md, and in ``CONTRACT``. With a class or function that makes environments several
    are played: on arrays of a batch, side by side, in every autoreset mode that is taken as a keyword, and, of
    environments that take ``num_envs``, in a batch that has one game more. A play is compared with another by digests
    of 32 bits, so that it needs no memory.

    Args:
        env: A ``PufferEnv`` or emulated environment, or a class or function that makes one; only
            with the latter are ``buf``, the modes and copies tested, and ``close`` called.
        seed: Of the environment and of the actions.
        steps: Number of steps of each play. Make it long enough for episodes to end. If none ends, one more play looks
            for the first end, for up to 10,000 steps or 5 seconds.
        continuing: Whether the task goes on forever. False raises if no episode ends in 10,000 steps.

    Raises:
        ContractError: The first thing that is wrong.
    """
    with Subject(env, seed, steps, continuing) as subject:
        for check in CHECKS:
            if check.suits(subject):
                check.look(subject)


@dataclass(frozen=True)
class CheckResult:
    """Result for one line of the contract.

    Attributes:
        line: Its name in ``CONTRACT``.
        state: "kept", "broken", or "unknown" where nothing could look at it, or no episode ended.
        message: The problem and its remedy, if it is broken; the reason, if it is unknown.
    """

    line: str
    state: Literal["kept", "broken", "unknown"]
    message: str = ""


def examine(env: Any, *, seed: int = 0, steps: int = 200, continuing: bool = False) -> list[CheckResult]:
    """Check an environment as ``check_env`` does, but go on after a line that is broken.

    Args:
        env: As for ``check_env``.
        seed: Of the environment and of the actions.
        steps: Number of steps of each play.
        continuing: Whether the task goes on forever, as for ``check_env``.

    Returns:
        One for each line of the contract, in order.

    Raises:
        Exception: The environment raised.
    """
    broken_lines: dict[str, str] = {}
    looked_at: set[str] = set()
    with (
        captured_output(),
        Subject(env, seed, steps, continuing) as subject,
    ):  # or what it prints would bury the findings
        for check in CHECKS:
            if not check.suits(subject):
                continue
            try:
                check.look(subject)
                looked_at.update(check.lines)
            except ContractError as error:
                broken_lines.setdefault(error.line, str(error))
                if check.is_first:
                    break
    no_end = "" if subject.ended else "no episode ended: take more steps"
    if no_end and subject.first_end is not None:
        no_end += f", at least {subject.first_end}"
    return [_result(line, broken_lines, looked_at, no_end) for line in CONTRACT]


def _result(line: str, broken_lines: dict[str, str], looked_at: set[str], no_end: str) -> CheckResult:
    if line in broken_lines:
        return CheckResult(line, "broken", broken_lines[line])
    if line not in looked_at:
        return CheckResult(line, "unknown", "could not be looked at")
    if no_end and line in ("ends", "autoreset"):
        return CheckResult(line, "unknown", no_end)
    return CheckResult(line, "kept")


@dataclass(frozen=True)
class Check:
    """A part of the contract, and how it is looked at.

    Attributes:
        lines: Lines that hold if it passes.
        look: Raises ContractError.
        needs_creator: More than one environment must be made.
        needs_play: The first play must have come to its end.
        needs_repeat: It must have been repeated, or every comparison would find what is known already.
        is_first: Nothing else can be looked at when it fails.
    """

    lines: tuple[str, ...]
    look: Callable[[Subject], None]
    needs_creator: bool = False
    needs_play: bool = False
    needs_repeat: bool = False
    is_first: bool = False

    def suits(self, subject: Subject) -> bool:
        """Tell if the subject can be looked at so, by what is known of it by now."""
        missing = (
            self.needs_creator and subject.creator is None,
            self.needs_play and len(subject.trace.steps) <= subject.steps,
            self.needs_repeat and not subject.repeats,
        )
        return not any(missing)


def _check_spaces_and_arrays(subject: Subject) -> None:
    subject.create()
    check_spaces(subject.env)
    check_arrays(subject.env)
    check_autoreset(subject.env)
    check_takes_seed(subject.env)


def _check_first_play(subject: Subject) -> None:
    env = subject.env
    checks = StepChecks(env)
    found: ContractError | None = None
    with captured_output() as captured:
        try:
            for shown in play(env, subject.seed, subject.steps, MARKS[0]):
                try:
                    if found is None:
                        checks.look(shown)
                except ContractError as error:  # the play continues, so that other lines can be checked
                    found = error
                subject.trace.add(shown)
        except Exception:
            if found is None:
                raise
    subject.printed, subject.first_end = captured.text, checks.first_end
    if found is not None:
        raise found
    subject.finish = checks.finish


def _check_whole_play(subject: Subject) -> None:
    subject.finish()


def _check_silence(subject: Subject) -> None:
    if subject.printed:
        text = subject.printed.strip().partition("\n")[0]
        raise broken(
            subject.env,
            "silence",
            f"reset and step must write nothing to the terminal, got {text[:LONGEST_LINE]!r}",
            "take the print out, or give it to logging; of code that is not yours: contextlib.redirect_stdout",
        )


def _check_filled_rows(subject: Subject) -> None:
    if not subject.env.emulated:  # whose rows are packed as a whole
        check_rows_are_filled(subject.env, subject.seed)


def _check_own_resets(subject: Subject) -> None:
    check_own_resets(subject.env, subject.seed, subject.steps)


def _check_first_end(subject: Subject) -> None:
    """Play on until an episode ends, and raise if none does."""
    if subject.ended or subject.continuing:
        return
    most, start = max(subject.steps, LONGEST_EPISODE), time.monotonic()
    with captured_output():
        for shown in play(subject.env, subject.seed, most, MARKS[0]):
            if shown.ended.any():
                subject.first_end = shown.index
                return
            if time.monotonic() - start > LONGEST_SEARCH_S:
                return
    raise broken(
        subject.env,
        "ends",
        f"an episode must end, got no terminal and no truncation in {most} steps",
        "set terminals or truncations in the step in which an episode ends, take more steps if episodes are longer, "
        "or pass continuing=True (puffer check --continuing) if the task has no end",
    )


def _check_leaks(subject: Subject) -> None:
    check_leaks(subject.env, subject.seed, subject.steps, subject.first_end if subject.ended else None)


def _check_adoption(subject: Subject) -> None:
    before = open_handles()
    copies.check_adoption(subject)
    subject.repeats = True
    after = open_handles()
    if any(after[name] > before[name] for name in before):
        check_close(subject.make, subject.seed)


# In this order; what a later one takes for granted, an earlier one has looked at.
CHECKS = (
    Check(("spaces", "arrays"), _check_spaces_and_arrays, is_first=True),
    Check(("observations", "rewards", "ends", "autoreset", "absent", "infos"), _check_first_play),
    Check((), _check_whole_play, needs_play=True),
    Check(("silence",), _check_silence, needs_play=True),
    Check(("seed", "reset", "autoreset"), copies.check_again, needs_play=True),
    Check(("seed", "arrays", "leaks"), _check_adoption, needs_creator=True, needs_play=True),
    Check(("copies",), copies.check_neighbours, needs_creator=True, needs_repeat=True),
    Check(("rewards", "ends"), _check_own_resets, needs_play=True),
    Check(("autoreset",), copies.check_modes, needs_creator=True, needs_play=True),
    Check(("batch",), copies.check_batch, needs_creator=True, needs_repeat=True),
    Check(("observations",), _check_filled_rows, needs_play=True),
    Check(("leaks",), _check_leaks, needs_play=True),
    Check(("ends",), _check_first_end, needs_play=True),
)
