"""Specs that ``make`` gives a backend, commands to its workers, and what environments report about themselves."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import ArraySpecs, HasBuffers, array_specs
from pufferlib.env import AUTORESET_MODES, Autoreset
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, compact_box, joint_space, same_space

__all__ = [
    "AUTORESET_MODES",
    "ON_CRASH",
    "PHASES",
    "RESET",
    "RESTART",
    "STEP",
    "Autoreset",
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

RESTART = -1  # source of an info about a restart, among those of ``EnvLoop.sources``


@dataclass(frozen=True)
class EnvSpec:
    """One environment to build: ``creator(*args, buf=..., **kwargs)``, and ``seed=seed`` if it takes one."""

    index: int
    creator: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    seed: int


@dataclass(frozen=True)
class VectorSpec:
    """The checked arguments of ``make``.

    Attributes:
        envs: The environments, in the order of their rows.
        batch_size: Environments that one ``recv`` returns.
        num_workers: Processes; it divides the number of environments, and a batch is whole workers.
        zero_copy: Whether a batch is a contiguous block of rows, or whoever is first, copied.
        autoreset: What follows a finished episode; None leaves it to the kind of environment.
        seed: Seed of the first reset that gives none.
        timeout_s: Longest that building, resetting or stepping one environment may take; None: for ever.
        on_crash: Whether a worker (``Serial``: an environment) that fails is replaced, or its failure raised.
        hide_output: Whether nothing of what the environments print is to be seen.
    """

    envs: tuple[EnvSpec, ...]
    batch_size: int
    num_workers: int
    zero_copy: bool
    autoreset: Autoreset | None
    seed: int
    timeout_s: float | None
    on_crash: OnCrash
    hide_output: bool


class InfoSource(NamedTuple):
    """Source of an info.

    Attributes:
        env_id: Environment, among all; of a restart the first one of the worker that was replaced.
        kind: "step" or "reset"; "restart" tells of a worker or environment that was replaced.
    """

    env_id: int
    kind: Literal["step", "reset", "restart"]


def info_sources(codes: Sequence[int], first: int) -> list[InfoSource]:
    """Sources of which ``EnvLoop.sources`` has the ``codes``, in a runner whose first environment is ``first``."""
    return [
        InfoSource(first, "restart")
        if code == RESTART
        else InfoSource(first + code // 2, "reset" if code % 2 else "step")
        for code in codes
    ]


@dataclass(frozen=True)
class RowSpec:
    """Spaces and number of agents of one environment: its rows in a batch, on which all of a batch must agree."""

    observation_space: Box
    action_space: Space
    num_agents: int

    @classmethod
    def of(cls, env: HasBuffers) -> "RowSpec":
        """The spec of an environment whose spaces and number of agents are set."""
        return cls(compact_box(env.single_observation_space), env.single_action_space, int(env.num_agents))

    def arrays(self, num_envs: int) -> ArraySpecs:
        """Shape and dtype of every array of ``num_envs`` such environments."""
        return array_specs(self.observation_space, self.action_space, self.num_agents * num_envs)

    def check_same(self, other: "RowSpec", index: int) -> None:
        """Raise unless ``other``, of environment ``index``, can share arrays with this one."""
        for name in ("observation_space", "action_space", "num_agents"):
            expected, got = getattr(self, name), getattr(other, name)
            if not same_space(expected, got):
                raise APIUsageError(
                    f"vector.make: all environments must have the {name} of environment 0, {expected}, "
                    f"got {got} in environment {index}; make one vector environment per kind"
                )


@dataclass(frozen=True)
class EnvDescription:
    """An environment that lives in a worker, as seen from outside: all that a policy needs to know.

    Attributes:
        single_observation_space: Of one agent, as it stands in the batch.
        single_action_space: Of one agent, as it stands in the batch.
        num_agents: Rows of one environment.
        emulated: False for a native environment, else how its spaces were flattened.
        action_mask: Which elements of an observation say what is legal; see ``PufferEnv``.
        obs_dtype: dtype of one agent's observation before it was flattened.
        autoreset: What follows a finished episode.
        metadata: All that the environment says of itself, ``render_fps`` above all.
        render_mode: What ``render`` gives; None for nothing.
    """

    single_observation_space: Box
    single_action_space: Space
    num_agents: int
    emulated: Any
    action_mask: slice | None
    obs_dtype: np.dtype[Any]
    autoreset: Autoreset
    metadata: dict[str, Any]
    render_mode: str | None

    @property
    def observation_space(self) -> Space:
        """Space of the observations of all agents of one environment."""
        return joint_space(self.single_observation_space, self.num_agents)

    @property
    def action_space(self) -> Space:
        """Space of the actions of all agents of one environment."""
        return joint_space(self.single_action_space, self.num_agents)


@dataclass(frozen=True)
class Ready:
    """Worker to parent: the environments are built."""

    row_spec: RowSpec
    description: EnvDescription
