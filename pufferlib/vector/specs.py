"""Data passed between ``make``, the backends and their workers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import ArraySpecs, HasBuffers, array_specs
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, compact_box, joint_space, same_space

__all__ = [
    "ON_CRASH",
    "PHASES",
    "RESET",
    "RESTART",
    "STEP",
    "AutoresetMode",
    "EnvDescription",
    "EnvSpec",
    "InfoSource",
    "OnCrash",
    "Ready",
    "RowSpec",
    "VectorSpec",
    "info_sources",
]

OnCrash = Literal["raise", "restart"]
ON_CRASH: tuple[OnCrash, ...] = ("raise", "restart")

# Commands to a worker.
RESET, STEP = 1, 2
PHASES = {RESET: "reset", STEP: "step"}

RESTART = -1  # code in ``EnvLoop.sources`` for an info about a restart


@dataclass(frozen=True)
class EnvSpec:
    """One environment to build with ``creator(*args, buf=..., **kwargs)``, and with ``seed`` if it takes one."""

    index: int
    creator: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class VectorSpec:
    """Checked arguments of ``make``.

    Attributes:
        envs: Specs of the environments, in the order of their rows.
        batch_size: Number of environments per ``recv``.
        num_workers: Number of workers. It divides the number of environments, and batches consist of whole workers.
        zero_copy: If True, a batch is a contiguous block of rows. If False, it is copied from the first workers to
            finish.
        autoreset: Autoreset mode. None uses the default of the environment.
        seed: Base seed of the first reset, if that is called without a seed.
        timeout_s: Time limit in seconds for building, resetting or stepping one environment. None disables it.
        on_crash: "restart" to replace a worker (``Serial``: an environment) that fails, or "raise".
        hide_output: Whether to discard the output of the environments.
    """

    envs: tuple[EnvSpec, ...]
    batch_size: int
    num_workers: int
    zero_copy: bool
    autoreset: AutoresetMode | None
    seed: int
    timeout_s: float | None
    on_crash: OnCrash
    hide_output: bool


class InfoSource(NamedTuple):
    """Source of an info.

    Attributes:
        env_id: Index of the environment. For a restart, the first environment of the replaced worker.
        kind: "step", "reset", or "restart" if a worker or environment was replaced.
    """

    env_id: int
    kind: Literal["step", "reset", "restart"]


def info_sources(codes: Sequence[int], first: int) -> list[InfoSource]:
    """Convert codes of ``EnvLoop.sources`` from a runner whose first environment is ``first``."""
    return [
        InfoSource(first, "restart")
        if code == RESTART
        else InfoSource(first + code // 2, "reset" if code % 2 else "step")
        for code in codes
    ]


@dataclass(frozen=True)
class RowSpec:
    """Spaces and number of agents of one environment. All environments of a batch must have the same."""

    observation_space: Box
    action_space: Space
    num_agents: int

    @classmethod
    def of(cls, env: HasBuffers) -> "RowSpec":
        """Return the spec of an environment whose spaces and number of agents are set."""
        return cls(compact_box(env.single_observation_space), env.single_action_space, int(env.num_agents))

    def arrays(self, num_envs: int) -> ArraySpecs:
        """Return shape and dtype of every array for ``num_envs`` such environments."""
        return array_specs(self.observation_space, self.action_space, self.num_agents * num_envs)

    def check_same(self, other: "RowSpec", index: int) -> None:
        """Raise unless ``other``, the spec of environment ``index``, can share arrays with this one."""
        for name in ("observation_space", "action_space", "num_agents"):
            expected, got = getattr(self, name), getattr(other, name)
            if not same_space(expected, got):
                raise APIUsageError(
                    f"vector.make: all environments must have the {name} of environment 0, {expected}, "
                    f"got {got} in environment {index}; make one vector environment per kind"
                )


@dataclass(frozen=True)
class EnvDescription:
    """Description of an environment that lives in a worker, with everything that a policy needs.

    Attributes:
        single_observation_space: Observation space of one agent in the batch.
        single_action_space: Action space of one agent in the batch.
        num_agents: Number of agents of one environment.
        emulated: Description of how emulation flattened the spaces, or False for native environments.
        action_mask: Elements of an observation that hold the action mask. See ``PufferEnv``.
        obs_dtype: Dtype of one agent's observation before it is flattened.
        autoreset: Autoreset mode.
        metadata: Metadata of the environment, such as ``render_fps``.
        render_mode: Render mode of the environment, or None.
    """

    single_observation_space: Box
    single_action_space: Space
    num_agents: int
    emulated: Any
    action_mask: slice | None
    obs_dtype: np.dtype[Any]
    autoreset: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None

    @property
    def observation_space(self) -> Space:
        """Joint observation space of all agents of one environment."""
        return joint_space(self.single_observation_space, self.num_agents)

    @property
    def action_space(self) -> Space:
        """Joint action space of all agents of one environment."""
        return joint_space(self.single_action_space, self.num_agents)


@dataclass(frozen=True)
class Ready:
    """Message from worker to parent: the environments are built."""

    row_spec: RowSpec
    description: EnvDescription
