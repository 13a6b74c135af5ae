"""Differences between runs."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from pufferlib.errors import UnknownNameError
from pufferlib.runs.listing import RunSummary, differing_settings
from pufferlib.runs.resume import is_free
from pufferlib.settings.suggestions import suggest

__all__ = ["find_setting", "group_runs", "short_names", "value_text"]


SEED = "train.seed"


def group_runs(runs: Sequence[RunSummary], by: str = "") -> dict[str, list[RunSummary]]:
    """Group runs that repeat each other. Return the groups by label.

    Of several runs with the same settings and seed, only the run with the most steps counts, and of equal ones the
    latest.

    Args:
        runs: Runs of one environment.
        by: Setting by whose value the runs are grouped. "" groups runs that differ only in their seed, and in where and
            how they were computed and evaluated.
    """
    runs = _each_seed_once(runs)
    if by:
        name = by.rpartition(".")[2]
        return _alike(runs, lambda run: f"{name} {value_text(run.settings.get(by))}")
    groups = _alike(runs, _identity)
    several = list(groups.values())
    differing = differing_settings([alike[0] for alike in several])
    names = short_names([name for name in differing if name != SEED and not is_free(name)])
    labels: dict[str, list[RunSummary]] = {}
    for alike in several:
        label = (_label(alike[0], names) if alike[0].settings else "") or alike[0].title
        labels.setdefault(label, []).extend(alike)
    return labels


def find_setting(name: str, runs: Iterable[RunSummary]) -> str:
    """Return the full name of a setting: "train.learning_rate" for "learning-rate".

    Raises:
        UnknownNameError: No run has the setting. The message suggests similar ones.
    """
    known = dict.fromkeys(key for run in runs for key in run.settings)
    wanted = name.lstrip("-").replace("-", "_")
    found = [key for key in known if key == wanted] or [key for key in known if key.endswith(f".{wanted}")]
    if not found:
        raise UnknownNameError.of("by", "setting", name, known, suggest(wanted, known))
    return found[0]


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the last part of each name if it is unique, otherwise the whole name.

    ``policy.name`` keeps its section, because runs have names too.
    """
    last = [name.rpartition(".")[2] for name in names]
    pairs = zip(names, last, strict=True)
    return {name: end if last.count(end) == 1 and end != "name" else name for name, end in pairs}


def value_text(value: Any) -> str:
    """Format a setting for tables and legends."""
    return "unset" if value is None else str(value)


def _alike(runs: Sequence[RunSummary], key: Callable[[RunSummary], str]) -> dict[str, list[RunSummary]]:
    groups: dict[str, list[RunSummary]] = {}
    for run in runs:
        groups.setdefault(key(run), []).append(run)
    return groups


def _each_seed_once(runs: Sequence[RunSummary]) -> list[RunSummary]:
    """Return the runs without repetitions of the same settings and seed.

    Repetitions would make a confidence band narrower without adding information.
    """
    furthest: dict[str, RunSummary] = {}
    for run in runs:
        key = f"{run.settings.get(SEED)} {_identity(run)}"
        other = furthest.setdefault(key, run)
        if (run.agent_steps, run.title) > (other.agent_steps, other.title):
            furthest[key] = run
    return list(furthest.values())


def _identity(run: RunSummary) -> str:
    """Return a text that runs share if they differ only in their seed. Runs without readable settings share none."""
    return f"{run.name} {sorted(_learning_settings(run).items())}" if run.settings else str(run.folder)


def _learning_settings(run: RunSummary) -> dict[str, Any]:
    """Return the settings that affect what is learned, except the seed."""
    return {name: value for name, value in run.settings.items() if name != SEED and not is_free(name)}


def _label(run: RunSummary, names: dict[str, str]) -> str:
    values = [f"{short} {value_text(run.settings.get(name))}" for name, short in names.items()]
    return ", ".join([*([run.name] if run.name else []), *values])
