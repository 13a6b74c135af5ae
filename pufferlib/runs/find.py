"""Finding the run that a folder, a checkpoint, a name or an environment means."""

import dataclasses
import math
import os
from pathlib import Path

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError, nearest
from pufferlib.machine.commands import as_typed
from pufferlib.machine.paths import user_path
from pufferlib.runs.folder import CHECKPOINTS, POLICY, SEED, STAMP_WIDTH, Run, all_runs, plain_name, plain_text
from pufferlib.settings.sections import own_names
from pufferlib.settings.sources import env_name_in
from pufferlib.settings.toml import read_toml

__all__ = ["find_run", "shipped_agent"]


def find_run(where: str, target: str, runs: Path, best: bool = False, shipped: bool = True) -> Run:
    """Find the run that ``target`` names: its folder, one of its checkpoints, or the latest run of an environment.

    If there is no run of an environment, the agent that ships with it is used, if there is one.

    Args:
        where: Start of error messages.
        target: Folder, checkpoint, environment, name of a run, or path of a shared policy file. If it means several
            seeds, the seed with the best evaluation is used.
        runs: Folder of all runs.
        best: Use the checkpoint with the best score instead of the latest.
        shipped: Whether to use agents that ship with environments.

    Raises:
        UsageError: ``target`` is none of these.
        APIUsageError: The run has no checkpoint, or ``best`` is set and no checkpoint has a score.
    """
    runs = user_path(runs)
    folder = user_path(target)
    of_seeds = [Run.at(path.parent) for path in folder.glob(f"{SEED}*/{CHECKPOINTS}")]
    run = _best_seed(of_seeds) or _run_at(where, folder, runs) or _latest_run(where, target, runs, shipped)
    return _with_best(where, run) if best else run


def _run_at(where: str, path: Path, runs: Path) -> Run | None:
    """Return the run, checkpoint or policy at ``path``, or None."""
    is_env = registry.full_name(str(path)) in registry.list_envs()  # such as a program named breakout
    if path.is_file() and path.suffix not in (".py", ".c") and not is_env:  # Python and C files are environments
        if path.name != POLICY:
            return Run(path.parent, path)
        path = path.parent
    elif path.is_dir():
        folder = Path(os.path.normpath(path / "..")) if path.absolute().name == CHECKPOINTS else path
        if (run := Run.at(folder)).has_checkpoint:  # before POLICY: a resumed checkpoint is also a run
            return run
    else:
        return None
    if (path / POLICY).is_file():
        in_run = path.absolute().parent.name == CHECKPOINTS
        return Run(Path(os.path.normpath(path / ".." / "..")) if in_run else path, path)
    if (path / "checkpoint.pt").is_file():
        raise APIUsageError(
            f"{where}: {path} is a run of an earlier version, whose checkpoint.pt may contain code and is not read; "
            "train again"
        )
    if is_env:
        return None
    raise APIUsageError(f"{where}: {path} has no {CHECKPOINTS}; expected the folder of a run, as in {runs}/")


def _best_seed(runs: list[Run]) -> Run | None:
    """Return the run with the best evaluation among several seeds. Without evaluations it is the first, or None."""
    runs = sorted((run for run in runs if run.has_checkpoint), key=lambda run: run.folder.name)
    return max(runs, key=_score_of, default=None)


def _score_of(run: Run) -> float:
    score = run.result().get("score")
    return float(score) if isinstance(score, int | float) else -math.inf


def _with_best(where: str, run: Run) -> Run:
    from pufferlib.runs import checkpoint

    found = checkpoint.best(run.checkpoints) if run.chosen is None else None
    if found is None:
        raise APIUsageError(
            f"{where}: best needs a run with a checkpoint that has a score, got {run.chosen or run.folder}; "
            "leave out best"
        )
    return dataclasses.replace(run, chosen=found)


def _latest_run(where: str, target: str, runs: Path, shipped: bool) -> Run:
    env_name = registry.full_name(target.removeprefix("puffer_"))
    names = registry.names_of_file(env_name)
    of_env = [run for run in _all_runs(runs) if any(_is_of(run, name) for name in names)] or [
        run for run in _all_runs(runs) if _has_name(run, target)
    ]
    known = registry.list_envs()
    if not of_env and env_name not in known and not _is_known(env_name):
        close = nearest(target, [*known, *(str(run.folder) for run in _all_runs(runs))])
        hint = (
            f"did you mean {' or '.join(map(repr, close))}?"
            if close
            else as_typed("puffer list shows the environments")
        )
        raise UsageError(f"{where}: {target!r} is not a run, a checkpoint or an environment; {hint}")
    if not of_env and shipped and (agent := _shipped(env_name)):
        return agent
    if not of_env:
        raise APIUsageError(f"{where}: no run of {env_name} in {runs}; train one: {as_typed('puffer train', env_name)}")
    latest = max(of_env, key=lambda run: run.checkpoints.stat().st_mtime)
    seeds = [run for run in of_env if run.is_seed and run.folder.parent == latest.folder.parent]
    return (_best_seed(seeds) if latest.is_seed else None) or latest


def shipped_agent(where: str, target: str) -> Run:
    """Return the trained agent that ships with an environment, as a run.

    Args:
        where: Start of error messages.
        target: Name of the environment.

    Raises:
        UnknownNameError: There is no such environment.
        APIUsageError: No agent ships with it.
    """
    registry.env_creator(target, where)
    env_name = registry.full_name(target.removeprefix("puffer_"))
    if agent := _shipped(env_name):
        return agent
    raise APIUsageError(f"{where}: no agent ships with {env_name}; train one: {as_typed('puffer train', env_name)}")


def _shipped(env_name: str) -> Run | None:
    is_task = env_name.partition("/")[0] in registry.binding_facts()
    full = own_names(env_name)[-1] if is_task else env_name  # "classic/CartPole-v1" for "classic/CartPole"
    file = registry.agent_file(full)
    return Run(file.parent, file) if file.is_file() else None


def _all_runs(runs: Path) -> list[Run]:
    return [run for run in all_runs(runs, CHECKPOINTS) if run.has_checkpoint]


def _title(run: Run) -> str:
    """Return the part of the folder name with the environment and the name of the run."""
    folder = run.folder.parent if run.is_seed else run.folder
    return folder.name[STAMP_WIDTH:]


def _is_of(run: Run, env_name: str) -> bool:
    """Return whether ``run`` is a run of this environment. Equal file names in two folders are two environments."""
    if _title(run) == plain_name(env_name) and not env_name.startswith("/"):
        return True
    may_be = _title(run).startswith(plain_name(env_name))
    if not may_be or not run.config.is_file():
        return False
    own = env_name_in(run.config) or ""
    return own == env_name or registry.moved_name(own, (run.folder, Path.cwd())) == env_name


def _has_name(run: Run, name: str) -> bool:
    if not _title(run).endswith(f"-{plain_text(name)}") or not run.config.is_file():
        return False
    return bool(read_toml(run.config).get("track", {}).get("name") == name)


def _is_known(env_name: str) -> bool:
    try:
        registry.env_creator(env_name)
    except UnknownNameError:
        return False
    return True
