"""Functions ``check_env``, which stops at the first failed check, and ``examine``, which runs all checks."""

import contextlib
import io
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from pufferlib.machine.output import flush_output, redirected
from pufferlib.testing import copies
from pufferlib.testing.arrays import (
    check_arrays,
    check_autoreset,
    check_rows_are_filled,
    check_spaces,
    check_takes_seed,
)
from pufferlib.testing.contract import CONTRACT, ContractError, broken
from pufferlib.testing.leaks import check_close, check_leaks, open_handles
from pufferlib.testing.play import MARKS, play
from pufferlib.testing.resets import check_own_resets
from pufferlib.testing.subject import Subject
from pufferlib.testing.values import StepChecks
from pufferlib.vector.env_runner import exits_raise

__all__ = ["Captured", "CheckResult", "captured_output", "check_env", "examine"]


LONGEST_LINE = 60  # maximum length of an environment's output in a message
LONGEST_EPISODE = 10_000  # steps within which an episode must end, if the first play is not longer
LONGEST_SEARCH_S = 5.0  # time limit for the search for the first end


@exits_raise
def check_env(env: Any, *, seed: int = 0, steps: int = 200, continuing: bool = False) -> None:
    """Check by random play that an environment meets the contract that vectorization and training rely on.

    The lines of the contract are in docs/contract.md and in ``CONTRACT``. If ``env`` is a class or function, several
    environments are played: on arrays of a batch, side by side, in every autoreset mode if ``autoreset`` is a
    parameter, and with one environment more in the batch if ``num_envs`` is a parameter. Plays are compared by 32-bit
    digests to save memory.

    Args:
        env: ``PufferEnv`` or emulated environment, or a class or function that makes one. For an environment that is
            already made, ``buf``, copies and autoreset modes are not checked, and ``close`` is not called.
        seed: Seed of the environment and the actions.
        steps: Number of steps of each play. It should be long enough for episodes to end. If none ends, another play
            searches for the first end, for up to 10,000 steps or 5 seconds.
        continuing: True if the task has no end. By default it is an error if no episode ends within 10,000 steps.

    Raises:
        ContractError: The environment breaks the contract. The first problem found is reported.
    """
    with Subject(env, seed, steps, continuing) as subject:
        for check in CHECKS:
            if check.suits(subject):
                check.look(subject)


@dataclass(frozen=True)
class CheckResult:
    """Result for one line of the contract.

    Attributes:
        line: Name of the line in ``CONTRACT``.
        state: "kept", "broken", or "unknown" if it could not be checked or no episode ended.
        message: Problem and advice if the line is broken, or the reason if it is unknown.
    """

    line: str
    state: Literal["kept", "broken", "unknown"]
    message: str = ""


@exits_raise
def examine(env: Any, *, seed: int = 0, steps: int = 200, continuing: bool = False) -> list[CheckResult]:
    """Check an environment like ``check_env``, but continue after a failed check.

    Args:
        env: Environment, or a class or function that makes one, as for ``check_env``.
        seed: Seed of the environment and the actions.
        steps: Number of steps of each play.
        continuing: True if the task has no end, as for ``check_env``.

    Returns:
        Results for all lines of the contract, in order.

    Raises:
        Exception: The environment raised an error.
    """
    broken_lines: dict[str, str] = {}
    looked_at: set[str] = set()
    with (
        captured_output(),
        Subject(env, seed, steps, continuing) as subject,
    ):  # its output would hide the results
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
    no_end = "" if subject.ended else "no episode ended: use more steps"
    if no_end and subject.first_end is not None:
        no_end += f", at least {subject.first_end}"
    return [_result(line, broken_lines, looked_at, no_end) for line in CONTRACT]


def _result(line: str, broken_lines: dict[str, str], looked_at: set[str], no_end: str) -> CheckResult:
    if line in broken_lines:
        return CheckResult(line, "broken", broken_lines[line])
    if line not in looked_at:
        return CheckResult(line, "unknown", "could not be checked")
    if no_end and line in ("ends", "autoreset"):
        return CheckResult(line, "unknown", no_end)
    return CheckResult(line, "kept")


@dataclass(frozen=True)
class Check:
    """One check of the contract.

    Attributes:
        lines: Lines of the contract that it checks.
        look: Function that runs the check and raises ContractError.
        needs_creator: True if it must be able to make more environments.
        needs_play: True if the first play must be complete.
        needs_repeat: True if the first play must have been repeated with the same results.
        is_first: True if no other check is possible after it fails.
    """

    lines: tuple[str, ...]
    look: Callable[[Subject], None]
    needs_creator: bool = False
    needs_play: bool = False
    needs_repeat: bool = False
    is_first: bool = False

    def suits(self, subject: Subject) -> bool:
        """Return True if this check can run now."""
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
            "remove the print or use logging; for code that is not yours, use contextlib.redirect_stdout",
        )


def _check_filled_rows(subject: Subject) -> None:
    if not subject.env.emulated:  # emulation always packs whole rows
        check_rows_are_filled(subject.env, subject.seed)


def _check_own_resets(subject: Subject) -> None:
    check_own_resets(subject.env, subject.seed, subject.steps)


def _check_first_end(subject: Subject) -> None:
    """Play until an episode ends, and raise if none does."""
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
        "set terminals or truncations in the last step of an episode, use more steps if episodes are longer, "
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


# The order matters: later checks assume that earlier ones have passed.
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


class Captured:
    """Captured output. ``text`` is set when the capture ends."""

    text = ""


@contextlib.contextmanager
def captured_output() -> Iterator[Captured]:
    """Capture standard output and error. Python warnings are printed after the capture."""
    captured, texts, warned = Captured(), io.StringIO(), io.StringIO()
    flush_output()
    with tempfile.TemporaryFile() as file:
        try:
            with contextlib.ExitStack() as stack:
                for descriptor in (1, 2):
                    stack.enter_context(redirected(descriptor, file.fileno()))
                stack.enter_context(contextlib.redirect_stdout(texts))
                stack.enter_context(contextlib.redirect_stderr(texts))
                stack.enter_context(_warnings_to(warned))
                stack.callback(flush_output)
                yield captured
        finally:
            sys.stderr.write(warned.getvalue())
            file.seek(0)
            captured.text = texts.getvalue() + file.read().decode(errors="replace")


@contextlib.contextmanager
def _warnings_to(stream: io.StringIO) -> Iterator[None]:
    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        stream.write(warnings.formatwarning(message, category, filename, lineno, line))

    before, warnings.showwarning = warnings.showwarning, show
    try:
        yield
    finally:
        warnings.showwarning = before
