"""Trained policy as a function from observations to actions."""

import dataclasses
import threading
import warnings
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch

from pufferlib import registry
from pufferlib.emulation._pack import Packer
from pufferlib.emulation.actions import ActionDecoder
from pufferlib.env import env_seeds
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.models.devices import acts_fast_on_cpu, check_device, pick_device
from pufferlib.models.players import PolicyPlayer
from pufferlib.runs import checkpoint
from pufferlib.runs.find import find_run
from pufferlib.runs.folder import RUNS, Run
from pufferlib.runs.versions import versions_of, warn_of_differences
from pufferlib.settings.config import Config, VecConfig
from pufferlib.training.build import build_policy, close_vecenv, make_vecenv
from pufferlib.training.normalization import normalized, with_moments
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector.leaves import view_fields

__all__ = ["Agent", "ObservationCheck", "load", "load_policy"]


Array = npt.NDArray[Any]
Field = tuple[tuple[str, ...], Array, Array]  # names, outermost first, and the lowest and highest values


class ObservationCheck:
    """Conversion of observations to the dtype of a space, with a check that their values are within its bounds.

    Integers and booleans must be within the bounds, and floats must not be NaN. Environments often exceed the bounds of
    floats by a little. Therefore floats cause one warning, and only if they are further outside the bounds than the
    width of the interval.

    Args:
        env: Emulated or native environment whose observations are expected.
    """

    def __init__(self, env: Any) -> None:
        space = env.single_observation_space
        self._dtype = np.dtype(space.dtype)
        self._row_dtype: Any = env.emulated["emulated_observation_dtype"] if env.emulated else self._dtype
        self._fields: list[Field] = [((), space.low, space.high)]
        if self._row_dtype.names is not None:
            self._fields = list(_fields(self._row_dtype, env.emulated["observation_bounds"]))
        self._has_warned = False

    def convert(self, observations: Array) -> Array:
        """Return ``observations`` in the dtype of the space, C-contiguous.

        Raises:
            APIUsageError: The space has integers, and a value cannot be converted without changing it.
        """
        if observations.dtype == self._dtype:
            return np.asarray(observations, order="C")
        if observations.dtype.kind not in "biuf":
            raise APIUsageError(f"Agent: observations must have dtype {self._dtype}, got dtype {observations.dtype}")
        with np.errstate(invalid="ignore", over="ignore"):
            converted = np.asarray(observations, self._dtype, order="C")
        if self._dtype.kind in "biu" and not np.array_equal(converted, observations):
            raise APIUsageError(
                f"Agent: observations must have values that {self._dtype} can hold, got {_span(observations)} in dtype "
                f"{observations.dtype}; pass them as the environment returned them in training, without scaling"
            )
        return converted

    def check(self, rows: Array) -> None:
        """Check converted observations, ``(n, *shape)``.

        Raises:
            APIUsageError: A value is NaN, or an integer is out of bounds.
        """
        for names, low, high in self._fields:
            values = view_fields(rows, self._row_dtype, names) if names else rows
            where = f"observations{''.join(f'[{name!r}]' for name in names)}"
            if values.dtype.kind == "f":
                self._check_reals(where, values, low, high)
            elif np.any(values < low) or np.any(values > high):
                raise APIUsageError(
                    f"Agent: {where} must be within the space, {low.min()} to {high.max()}, got {_span(values)}; pass "
                    "them as the environment returned them in training"
                )

    def _check_reals(self, where: str, values: Array, low: Array, high: Array) -> None:
        if np.isnan(values).any():
            raise APIUsageError(f"Agent: {where} must be numbers, got NaN")
        lowest, highest = float(low.min(initial=np.inf)), float(high.max(initial=-np.inf))
        width = highest - lowest
        if not self._has_warned and np.any((values < lowest - width) | (values > highest + width)):
            self._has_warned = True
            warnings.warn(
                f"Agent: {where} should be within the space, {lowest} to {highest}, got {_span(values)}; pass "
                "them as the environment returned them in training, without scaling",
                stacklevel=4,
            )


def _fields(dtype: Any, bounds: Any, outer: tuple[str, ...] = ()) -> Iterator[Field]:
    """Yield the arrays of a structured row that have bounds."""
    for name in dtype.names if bounds is not None else ():
        inner, within = dtype[name], bounds[name]
        if inner.names is not None:
            yield from _fields(inner, within, (*outer, name))
        elif within is not None:
            yield (*outer, name), np.asarray(within[0]), np.asarray(within[1])


def _span(values: Array) -> str:
    return f"{values.min()} to {values.max()}"


WHERE = "pufferlib.load"


def load(
    run: Path | str,
    *,
    best: bool = False,
    greedy: bool | None = None,
    seed: int | None = 0,
    device: str = "auto",
    runs: Path | str = RUNS,
) -> "Agent":
    """Load a trained agent.

    The settings of the run name the environment, which is made once, with the arguments in the settings. Only load runs
    and files whose source you trust.

    Args:
        run: Folder of a run, a checkpoint, a policy file, or the name of an environment. A name loads the latest run,
            or the agent that ships with the environment if there is no run.
        best: Load the checkpoint with the best score instead of the latest. The score is from evaluations during
            training if there were any.
        greedy: Take the most likely action instead of sampling. None uses ``eval.greedy`` of the run.
        seed: Seed for sampling actions, or None for a random one.
        device: Device of the policy. "auto" is CUDA if there is a GPU and the policy is large or of a class of its own.
            Small policies act several times faster on the CPU, in C.
        runs: Folder that contains the runs.

    Raises:
        APIUsageError: There is no such run, or it has no complete checkpoint.
        BindingMissing: The package of the environment is not installed. It is needed to read the spaces, unless the
            environment is also written in C.
    """
    if not isinstance(run, str | PathLike):
        raise APIUsageError(
            f"{WHERE}: run must be a folder, a file or the name of an environment, got {type(run).__name__}; for the "
            "result of pufferlib.train, pass result.run.folder"
        )
    found = find_run(WHERE, str(run), Path(runs), best)
    config = found.settings({"train.device": device})
    policy, vecenv = _open_policy(config, found)
    try:
        if device != "auto":
            policy.to(pick_device(device))
        return Agent(policy, vecenv, config.eval.greedy if greedy is None else greedy, seed, config)
    finally:
        close_vecenv(vecenv)


class Agent:
    """Trained policy as a function: ``action = agent(observation)``.

    The agent takes observations as the environment returns them, of one or of many agents, and returns as many actions.
    A recurrent policy keeps a memory for each row until ``reset``. Threads may share an agent without a memory. Each
    process must load its own agent.

    Args:
        policy: Policy.
        vecenv: Vector environment of the policy. Its spaces are read.
        greedy: Take the most likely action instead of sampling.
        seed: Seed for sampling actions, or None for a random one.
        config: Settings of the run.

    Attributes:
        policy: Policy. After changing its weights, call ``reset``.
        config: Settings of the run, or None.
    """

    def __init__(
        self,
        policy: Policy,
        vecenv: AnyVectorEnv,
        greedy: bool = False,
        seed: int | None = 0,
        config: Config | None = None,
    ) -> None:
        self.policy, self.config = policy.eval(), config
        self._greedy = greedy
        (own_seed,) = env_seeds("Agent", seed, [0])
        self._generator = torch.Generator(next(policy.parameters()).device)
        self._generator.seed() if own_seed is None else self._generator.manual_seed(own_seed)
        env: Any = vecenv.driver_env
        self._space, self._action_space = env.single_observation_space, env.single_action_space
        self._check = ObservationCheck(env)
        seen = with_moments(vecenv, policy)
        self._normalize = None if seen is vecenv else seen.normalize
        layout = env.observation_layout if env.emulated else None
        self._packer = Packer(layout) if layout is not None and layout.is_emulated else None
        self._decoder = ActionDecoder("Agent", env.action_layout) if env.emulated else None
        self._player: PolicyPlayer | None = None
        self._rows = 0
        self._lock = threading.Lock()  # the player reuses its arrays, so one thread at a time may act

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Agent cannot be pickled or copied; load it in each process: pufferlib.load(run)")

    def __call__(self, observation: Any) -> Any:
        """Choose an action.

        Args:
            observation: Observation of one agent, as its environment returns it. For n agents: an array
                ``(n, *shape)``, as a vector environment returns it, or a list of observations.

        Returns:
            One action, in the format of the environment. For an array of observations, an array
            ``(n, *action_shape)``. For a list, a list.

        Raises:
            APIUsageError: The shape is wrong, a value is NaN, or an integer is outside the observation space. With a
                recurrent policy, also if the number of observations changed since the last ``reset``.
        """
        if isinstance(observation, list):
            if not observation:  # all agents of a PettingZoo environment have left
                return []
            rows = np.concatenate([self._as_row(each) for each in observation])
            return [self._decode(action) for action in self._act(rows)]
        array = None if isinstance(observation, dict | tuple) else np.asarray(observation)
        if array is not None and array.ndim == len(self._space.shape) + 1 and array.shape[1:] == self._space.shape:
            return self._act(self._check.convert(array))
        return self._decode(self._act(self._as_row(observation))[0])

    def reset(self, rows: Any = None) -> None:
        """Start new episodes and clear the memory of the policy.

        Args:
            rows: Agents whose episodes ended, as a mask of all agents or as indices. None resets all agents and allows
                another number of agents.

        Raises:
            APIUsageError: There are no such agents.
        """
        if rows is None:
            self._player = None
        elif self._player is not None:
            self._player.begin(torch.from_numpy(_ended_agents(rows, self._rows)))

    def _as_row(self, observation: Any) -> npt.NDArray[Any]:
        """Return one observation as a row, ``(1, *shape)``."""
        row = np.zeros((1, *self._space.shape), self._space.dtype)
        array = None if isinstance(observation, dict | tuple) else np.asarray(observation)
        if array is not None and array.shape == self._space.shape:
            row[0] = self._check.convert(array)
        elif self._packer is not None:
            self._packer.pack(row, 0, observation)
        else:
            shape = "no array" if array is None else f"shape {array.shape}"
            raise APIUsageError(
                f"Agent: an observation must be of shape {self._space.shape}, or of shape (n, "
                f"{', '.join(map(str, self._space.shape))}) for n agents, got {shape}"
            )
        return row

    def _act(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the actions of the flat action space, one for each row."""
        with self._lock:
            return self._play(rows)

    def _play(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._check.check(rows)
        if not len(rows):
            return np.zeros((0, *self._action_space.shape), self._action_space.dtype)
        if self._player is None:
            self._player, self._rows = PolicyPlayer(self.policy, len(rows), self._generator, self._greedy), len(rows)
        elif len(rows) != self._rows and self.policy.initial_state(1):
            raise APIUsageError(
                f"Agent: the policy has a memory for {self._rows} agents, got {len(rows)} observations; "
                "call agent.reset() before changing the number of agents"
            )
        actions: npt.NDArray[Any] = self._player.act(rows if self._normalize is None else self._normalize(rows))
        return actions

    def _decode(self, action: Any) -> Any:
        """Return one action in the format of the environment."""
        return action if self._decoder is None else self._decoder.decode(action)


def _ended_agents(rows: Any, count: int) -> npt.NDArray[np.bool_]:
    """Convert ``rows``, a mask or indices, to a mask of ``count`` agents."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (count,):
        return given
    if given.ndim <= 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
        indices = given.astype(np.int64).ravel()
        if ((indices >= 0) & (indices < count)).all():
            mask = np.zeros(count, np.bool_)
            mask[indices] = True
            return mask
    raise APIUsageError(
        f"Agent.reset: rows must be a mask of {count} agents, as many as acted last, or indices from 0 to {count - 1}, "
        f"got {rows!r}"
    )


def load_policy(config: Config, run: Run) -> Policy:
    """Return the trained network of a run. Warn about versions that differ from the versions at training.

    A small network is on the CPU, where it acts faster, any other one on the device of ``config``.

    Args:
        config: Settings of the run.
        run: Run whose checkpoint is loaded.

    Raises:
        APIUsageError: The checkpoint is missing, damaged, or does not fit ``config``.
    """
    policy, vecenv = _open_policy(config, run)
    close_vecenv(vecenv)
    return policy


def _open_policy(config: Config, run: Run) -> tuple[Policy, Any]:
    """Load a policy and make environments for it, without normalization. The caller closes them."""
    path = run.checkpoint
    check_device(config.train.device)
    about, weights = checkpoint.read_about(path), checkpoint.read_policy(path)
    on_cpu = dataclasses.replace(config.train, device="cpu")
    if path != registry.agent_file(config.env_name):  # shipped agents are tested against their published scores
        warn_of_differences(path, about.versions, versions_of(config.env_name))
    if config.vec.backend not in ("native", "PufferEnv"):  # one environment is enough to build the policy
        whole = dataclasses.replace(config.train, overlap="none")  # batches of halves need workers
        config = dataclasses.replace(config, vec=VecConfig(backend="Serial"), train=whole)
    vecenv = make_vecenv(config)
    try:
        policy = build_policy(dataclasses.replace(config, train=on_cpu), normalized(vecenv, config.train))
        checkpoint.check_spaces(policy, about, path)
        checkpoint.load_weights(policy, weights, path, about.env_name)
        if not acts_fast_on_cpu(policy):
            policy.to(pick_device(config.train.device))
    except BaseException:
        vecenv.close()
        raise
    return policy, vecenv
