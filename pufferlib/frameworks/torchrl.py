"""TorchRL ``EnvBase`` around vector environments, for its collectors, transforms and losses.

Source: Bou et al., "TorchRL: A data-driven decision-making library for PyTorch" (2023).
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.mixed_actions import actions_of
from pufferlib.frameworks.rows import check_rows, observations_of, resets_some, whole_envs
from pufferlib.legal_actions import FIELD as MASK, mask_reader, num_choices
from pufferlib.spaces import Space
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["TorchRLEnv", "to_torchrl"]


@contextmanager
def _absent(name: str) -> Iterator[None]:
    """Make the package ``name`` look as if it was not installed, unless it is already loaded."""
    hides = name not in sys.modules
    if hides:
        sys.modules[name] = None  # type: ignore[assignment]  # makes import raise
    try:
        yield
    finally:
        if hides:
            del sys.modules[name]


# TorchRL imports Procgen if it is installed, which fails without the old gym package.
with _absent("procgen"):
    from tensordict import TensorDict, TensorDictBase
    from torchrl.data import Binary, Bounded, Categorical, Composite, MultiCategorical, TensorSpec, Unbounded
    from torchrl.envs import EnvBase

_TAKEN = {"action", MASK, "done", "next", "reward", "terminated", "truncated"}
_ATTRIBUTES = {"device", "dtype", "shape", "space"}  # attributes of a Composite, not allowed as keys at any depth

Rows = npt.NDArray[np.bool_]


def to_torchrl(vecenv: AnyVectorEnv, *, device: torch.device | str = "cpu") -> "TorchRLEnv":
    """Wrap a vector environment in a TorchRL ``EnvBase`` whose batch has one row for each agent.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with any backend and autoreset "same_step". The result
            owns it.
        device: Device of the returned tensors.

    Raises:
        APIUsageError: The autoreset mode is not "same_step", batches hold only some of the agents, an environment has
            several agents that come and go, or a tensordict cannot hold the observation space.
    """
    return TorchRLEnv(vecenv, device=device)


class TorchRLEnv(EnvBase):  # type: ignore[misc]  # torchrl has no types
    """TorchRL environment around a vector environment, created by ``to_torchrl``.

    Observations are tensors under "observation". Observations of a Dict space are under its keys, with the same
    nesting. Actions are integers (``Categorical``), not one-hot vectors. Actions of a Dict space with integers and
    floats are under "action" with its keys, and those of a Tuple space with the keys "0", "1" and so on. If
    observations hold an action mask, it is under "action_mask".

    When an episode ends, the step returns its last observation. The environment has then already started the next
    episode, and the next ``reset`` of this row returns its first observation. Resetting any other row restarts its
    environment.

    Attributes:
        vecenv: Wrapped vector environment.
        infos: Infos of the last step or reset, a list of dicts.
    """

    def __init__(self, vecenv: AnyVectorEnv, *, device: torch.device | str = "cpu") -> None:
        check_rows("to_torchrl", vecenv)
        if vecenv.autoreset != AutoresetMode.SAME_STEP:
            raise APIUsageError(
                f'to_torchrl: autoreset must be "same_step", got {vecenv.autoreset!r}, in which TorchRL would take '
                'steps that reset for steps that act; make it with autoreset="same_step"'
            )
        space, restore = observations_of("to_torchrl", vecenv)
        action_space, self._flatten = actions_of("to_torchrl", vecenv, name_tuples=True)
        num_rows = int(vecenv.num_agents)
        super().__init__(device=device, batch_size=[num_rows])
        self._legal_actions = mask_reader(vecenv)
        if self._legal_actions is not None and isinstance(space, Dict):  # the mask is not an input of policies
            space = Dict({key: part for key, part in space.spaces.items() if key != MASK})
        self.vecenv: Any = vecenv
        self._space, self._restore, self._action_space = space, restore, action_space
        self.infos: Infos = []
        self._next_seed: int | None = None
        self._observations: Array = np.empty(0)  # current observations of the batch
        self._ended = np.zeros(num_rows, bool)
        self._set_specs()

    def _set_specs(self) -> None:
        num_rows = len(self._ended)
        parts = _specs_of(self._space if isinstance(self._space, Dict) else Dict(observation=self._space), num_rows)
        if self._legal_actions is not None:
            size = num_choices(self.vecenv.single_action_space)
            parts[MASK] = Categorical(2, shape=(num_rows, size), dtype=torch.bool)
        flags = {
            name: Categorical(2, shape=(num_rows, 1), dtype=torch.bool) for name in ("done", "terminated", "truncated")
        }
        self.observation_spec = Composite(parts, shape=(num_rows,), device=self.device)
        actions = {"action": _spec_of(self._action_space, num_rows, "action")}
        self.full_action_spec = Composite(actions, shape=(num_rows,), device=self.device)
        self.reward_spec = Unbounded((num_rows, 1), device=self.device)
        self.full_done_spec = Composite(flags, shape=(num_rows,), device=self.device)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        if self._ended.any():
            self._check_ended(tensordict.get("_step", None))
        given = tensordict.get("action")
        actions = given.numpy(force=True) if self._flatten is None else self._flatten(_arrays_of(given))
        observations, rewards, terminals, truncations, self.infos = self.vecenv.step(actions)
        self._observations, self._ended = observations, terminals | truncations
        if self._ended.any():
            observations = observations.copy()
            observations[self._ended] = self.vecenv.final_observations[self._ended]
        return self._outcome(observations, self._ended, terminals, truncations, reward=rewards)

    def _reset(
        self, tensordict: "TensorDictBase | None" = None, *, options: Mapping[str, Any] | None = None, **_: Any
    ) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        rows = np.ones(len(self._ended), bool) if mask is None else mask.numpy(force=True).reshape(-1)
        if mask is None or (rows & ~self._ended).any():
            self._restart(rows, rows & ~self._ended, options)
        self._ended = self._ended & ~rows
        none = np.zeros(len(rows), bool)
        return self._outcome(self._observations, none, none, none)

    def _restart(self, rows: Rows, unfinished: Rows, options: Mapping[str, Any] | None) -> None:
        """Start new episodes in all rows, or in the environments of the ``unfinished`` rows."""
        more: dict[str, Any] = {} if options is None else {"options": options}
        if rows.all():
            seed, self._next_seed = self._next_seed, None
            self._observations, self.infos = self.vecenv.reset(seed, **more)
            return
        if not resets_some(self.vecenv):
            raise APIUsageError(
                f"to_torchrl: {type(self.vecenv).__name__} resets all its agents at once, got rows "
                f"{_first(unfinished)} with unfinished episodes; let its reset take env_ids, or choose backend=Serial"
            )
        per_env = len(rows) // int(self.vecenv.num_envs)
        others = ~np.repeat(unfinished.reshape(-1, per_env).any(1), per_env)  # already started by autoreset
        env_ids = whole_envs("to_torchrl", "_reset", rows & ~others, per_env)
        self._observations, self.infos = self.vecenv.reset(env_ids=env_ids, **more)

    def _set_seed(self, seed: int | None) -> None:
        """Store the base seed for the next ``reset`` of all rows."""
        self._next_seed = seed

    def close(self, *, raise_if_closed: bool = True) -> None:
        """Close the wrapped vector environment."""
        super().close(raise_if_closed=raise_if_closed)
        self.vecenv.close()

    def _check_ended(self, stepping: torch.Tensor | None) -> None:
        """Raise if ended rows are stepped before a reset. Rows that TorchRL masks out of the step are exempt."""
        late = self._ended if stepping is None else self._ended & stepping.numpy(force=True).reshape(-1)
        if late.any():
            raise APIUsageError(
                f"to_torchrl: episodes that ended must be reset before the next step, got rows {_first(late)}; use "
                "step_and_maybe_reset, or reset with their rows in the entry _reset (FrameSkipTransform steps past "
                "ends: repeat actions in the environment instead)"
            )

    def _outcome(
        self, observations: Array, ended: Rows, terminals: Rows, truncations: Rows, **numbers: Array
    ) -> TensorDict:
        columns = {"done": ended, "terminated": terminals, "truncated": truncations, **numbers}
        found = {name: torch.from_numpy(column[:, None].copy()) for name, column in columns.items()}
        if self._legal_actions is not None:
            found[MASK] = torch.from_numpy(self._legal_actions(observations))
        parts = _tensors(self._space, observations if self._restore is None else self._restore(observations))
        found.update(parts if isinstance(parts, dict) else {"observation": parts})
        return TensorDict(found, batch_size=self.batch_size, device=self.device)


def _arrays_of(actions: TensorDictBase) -> dict[str, Any]:
    """Return the arrays of nested actions by key."""
    return {
        key: _arrays_of(part) if isinstance(part, TensorDictBase) else part.numpy(force=True)
        for key, part in actions.items()
    }


def _tensors(space: Space, rows: Any) -> Any:
    """Copy rows to a tensor or a dict of tensors, in the dtypes of their space."""
    if isinstance(space, Dict):
        return {key: _tensors(part, rows[key]) for key, part in space.spaces.items()}
    return torch.from_numpy(np.array(rows, space.dtype, order="C"))


def _spec_of(space: Space, num_rows: int, name: str) -> TensorSpec:
    """Return the spec of ``num_rows`` samples of a space. Integers that do not start at 0 become bounded integers."""
    shape = (num_rows, *(space.shape or ()))
    if isinstance(space, Dict):
        return Composite(_specs_of(space, num_rows, f"{name}."), shape=(num_rows,))
    if isinstance(space, Tuple):
        raise APIUsageError(
            f"to_torchrl: observations must be arrays or Dicts of them, got {space} as {name}; a tensordict has a name "
            "for each part, so make it a Dict with gymnasium.wrappers.TransformObservation"
        )
    if isinstance(space, Discrete) and space.start == 0:
        return Categorical(int(space.n), shape=shape, dtype=torch.int64)
    if isinstance(space, MultiDiscrete) and len(shape) == 2 and not space.start.any():
        return MultiCategorical(space.nvec.tolist(), shape=shape, dtype=torch.int64)
    dtype = torch.from_numpy(np.empty(0, space.dtype)).dtype
    if isinstance(space, MultiBinary):
        return Binary(shape=shape, dtype=dtype)
    if isinstance(space, Box) and not (space.bounded_below.any() or space.bounded_above.any()):
        return Unbounded(shape, dtype=dtype)
    low, high = (torch.from_numpy(np.array(bound, space.dtype)).expand(shape) for bound in _bounds(space))
    return Bounded(low, high, shape=shape, dtype=dtype)


def _specs_of(space: Dict, num_rows: int, prefix: str = "") -> dict[str, TensorSpec]:
    for key in space.spaces:
        if not isinstance(key, str) or key in _ATTRIBUTES or (not prefix and key in _TAKEN):
            raise APIUsageError(
                "to_torchrl: a Dict of observations must have string keys that TorchRL does not use itself, "
                f"got {key!r} in {prefix[:-1] or 'the observation'}; rename it with "
                "gymnasium.wrappers.TransformObservation"
            )
    return {key: _spec_of(part, num_rows, prefix + key) for key, part in space.spaces.items()}


def _bounds(space: Any) -> tuple[Array, Array]:
    if isinstance(space, Box):
        return space.low, space.high
    return np.asarray(space.start), np.asarray(
        space.start + (space.n if isinstance(space, Discrete) else space.nvec) - 1
    )


def _first(rows: Rows) -> list[int]:
    return [int(row) for row in np.flatnonzero(rows)[:8]]
