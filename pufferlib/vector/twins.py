"""Copies of an environment in C behind the interface of the Python environments that it equals."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, cast

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.buffers import Array, allocate
from pufferlib.emulation.layout import Layout, action_layout, observation_layout
from pufferlib.env import AutoresetLike, AutoresetMode, EnvIds, Infos
from pufferlib.errors import APIUsageError
from pufferlib.ocean.arguments import checked_threads
from pufferlib.ocean.state import pack, unpack
from pufferlib.registry.in_c import Twin
from pufferlib.vector.arguments import env_specs
from pufferlib.vector.calls import EnvCall, Raised
from pufferlib.vector.specs import EnvDescription, InfoSource, VectorSpec
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["ATTRIBUTES", "TwinEnvs"]

#: Attributes of the Python environments that are known without them.
ATTRIBUTES = ("observation_space", "action_space", "metadata", "render_mode", "np_random_seed")

NO_OBJECTS = "environments in C have no Python objects; make the Python environments with native=False"


@dataclass(frozen=True)
class TwinDescription(EnvDescription):
    """Description of an environment in C.

    Attributes:
        observation_layout: Layout of the observations of the Python environment in a row.
        action_layout: Layout of its actions.
    """

    observation_layout: Layout
    action_layout: Layout


class TwinEnvs(VectorEnv):
    """Copies of one environment in C, stepped together, behind the interface of ``Serial`` with Python environments.

    Seeds and rows are those of ``Serial`` with the Python environments. Infos have the statistics of
    ``EpisodeStats``. There are no Python objects: ``get_attr`` knows the attributes in ``ATTRIBUTES``, and ``call`` and
    ``set_attr`` raise an error.

    Args:
        twin: Environment in C.
        num_envs: Number of copies.
        seed: Base seed. Copy i gets ``env_seed(seed, i)``.
        autoreset: Autoreset mode: "next_step" (default), "same_step" or "disabled", or a member of
            ``gymnasium.vector.AutoresetMode``.
        num_threads: Number of threads that share a step, or "auto" for one per usable core.

    Raises:
        APIUsageError: An argument is wrong.
        PufferError: A helper thread could not be started.
    """

    def __init__(
        self,
        twin: Twin,
        num_envs: int = 1,
        seed: int = 0,
        autoreset: AutoresetLike | None = None,
        num_threads: int | str = 1,
    ) -> None:
        self._twin, self._threads = twin, checked_threads(type(self).__name__, num_threads)
        envs = env_specs(type(twin), None, twin.params, num_envs, seed)
        mode = None if autoreset is None else AutoresetMode.of(type(self).__name__, autoreset)
        self._start(VectorSpec(envs, len(envs), 1, True, mode, seed, None, "raise", False))

    def _start(self, spec: VectorSpec) -> None:
        twin, count = self._twin, len(spec.envs)
        mode = spec.autoreset or AutoresetMode.NEXT_STEP
        self._games = twin.games(count, mode.value, self._threads)
        action_space = twin.action_space
        layout = observation_layout(twin.observation_space)
        space = cast(Box, layout.flat_space)
        description = TwinDescription(
            single_observation_space=space,
            single_action_space=action_space,
            num_agents=1,
            emulated=layout.emulated,
            action_mask=None,
            obs_dtype=layout.dtype.base,
            autoreset=mode,
            metadata={"render_fps": twin.frames_per_second},
            render_mode=None,
            observation_layout=layout,
            action_layout=action_layout(action_space),
        )
        self._set_attributes(spec, description, description)
        self._attributes = {
            "observation_space": twin.observation_space,
            "action_space": action_space,
            "metadata": description.metadata,
            "render_mode": description.render_mode,
        }
        self._rows = rows = allocate(space, action_space, count)
        self._games.bind(
            rows["observations"], rows["final_observations"], rows["actions"], rows["rewards"], rows["terminals"],
            rows["truncations"], rows["masks"],
        )  # fmt: skip
        self._limit = twin.max_steps
        self._all = Batch.block(rows, 0, count)
        self._seeds: list[int | None] = [None] * count
        self._returns, self._lengths = np.zeros(count), np.zeros(count, np.int64)
        self._was_over = np.zeros(count, np.bool_)
        self._reports: dict[int, dict[str, Any]] = {}

    @property
    def envs(self) -> NoReturn:
        """There is no list of environments, as ``Serial`` has it.

        Raises:
            AttributeError: Always.
        """
        raise AttributeError(f"{type(self).__name__}.envs: {NO_OBJECTS}")

    @property
    def reports(self) -> Mapping[int, dict[str, Any]]:
        """Infos of the last step by the copy whose episode ended in it."""
        return self._reports

    @property
    def info_sources(self) -> list[InfoSource]:
        """``InfoSource(env_id, "step")`` for each info of the last batch."""
        return [InfoSource(copy, "step") for copy in self._reports]

    def render(self, env_index: int = 0) -> npt.NDArray[np.uint8]:
        """Draw one copy.

        Toy text, MiniGrid, LunarLander and BipedalWalker have images of their own, which are not the package's.

        Args:
            env_index: Index of the copy.

        Returns:
            Image, uint8 ``(height, width, 3)``.

        Raises:
            APIUsageError: There is no such copy, no episode has begun, or the environments are closed.
            BindingMissing: MuJoCo has no OpenGL library to draw with.
        """
        where = f"{type(self).__name__}.render"
        if not 0 <= env_index < self.num_envs:
            raise APIUsageError(f"{where}: env_index must be at least 0 and below {self.num_envs}, got {env_index}")
        if self._next_call != "send":  # closed, interrupted, or not reset yet
            self._check_was_reset("render")
            raise self._order_error("render")
        return self._games.picture(env_index)

    def _reset(self, seeds: list[int | None], options: list[Any] | None) -> None:
        self._check_options(options)
        self._games.reset(seeds)
        self._forget(range(self.num_envs), seeds)

    def _reset_some(self, calls: Mapping[int, EnvCall]) -> tuple[Batch, Infos]:
        for call in calls.values():  # none if no copy is chosen
            self._check_options(call.values)
            self._games.reset_games(call.positions, call.seeds)
            self._forget(call.positions, call.seeds)
        return self._recv()

    def _check_options(self, options: Any) -> None:
        if options and any(options):
            raise APIUsageError(
                f"{type(self).__name__}.reset: options must be None for environments in C, got {options[0]!r:.80}; "
                "make the Python environments with native=False"
            )

    def _forget(self, copies: Sequence[int], seeds: Sequence[int | None]) -> None:
        """Forget the episodes of copies that were reset with these seeds, and the infos."""
        for copy, seed in zip(copies, seeds, strict=True):
            self._seeds[copy] = self._seeds[copy] if seed is None else seed
            self._returns[copy] = self._lengths[copy] = 0
            self._was_over[copy] = False
        self._reports = {}

    def _send(self, actions: Array) -> None:
        rows = self._rows
        rows["actions"][...] = actions
        self._games.step(rows["actions"])
        self._returns += self._games.exact_rewards
        self._lengths += 1
        if self.autoreset != AutoresetMode.SAME_STEP:  # an ended copy was reset, or has paused
            self._returns[self._was_over] = self._lengths[self._was_over] = 0
        self._reports = {}
        rows["truncations"] |= rows["terminals"] & (self._lengths == self._limit)
        self._was_over = over = rows["terminals"] | rows["truncations"]
        if over.any():
            self._report(np.flatnonzero(over))

    def _report(self, copies: Array) -> None:
        for copy in copies.tolist():
            infos, length = self._games.last_infos(copy), int(self._lengths[copy])
            total = infos.pop("episode_return", float(self._returns[copy]))
            self._reports[copy] = {"score": total, **infos, "episode_return": total, "episode_length": length}
        self._returns[copies] = self._lengths[copies] = 0

    def _recv(self) -> tuple[Batch, Infos]:
        return self._all, list(self._reports.values())

    @property
    def _envs_per_runner(self) -> int:
        return self.num_envs

    def _idle_envs(self) -> range:
        return range(self.num_envs)

    def _call_envs(
        self, where: str, name: str, env_ids: EnvIds, values: Any = (), kind: str | None = None, **arguments: Any
    ) -> list[Any]:
        is_known = name in ATTRIBUTES if where == "get_attr" else name == "has_wrapper_attr"
        if kind is None and not is_known:
            raise APIUsageError(f"{type(self).__name__}.{where}: got {name!r}, but {NO_OBJECTS}")
        return super()._call_envs(where, name, env_ids, values, kind, **arguments)

    def _perform(self, calls: Mapping[int, EnvCall]) -> dict[int, list[Any]]:
        if not calls:  # no copy is chosen
            return {}
        (call,) = calls.values()
        if call.kind == "load":
            return {0: [self._load(copy, state) for copy, state in zip(call.positions, call.values, strict=True)]}
        answers: dict[str, Callable[[int], Any]] = {
            "save": self._saved,
            "get": functools.partial(self._attribute, call.name),
            "call": lambda copy: call.args[0] in ATTRIBUTES,  # has_wrapper_attr
            "wrappers": lambda copy: [],
        }
        return {0: [answers[call.kind](copy) for copy in call.positions]}

    def _attribute(self, name: str, copy: int) -> Any:
        return self._seeds[copy] if name == "np_random_seed" else self._attributes[name]

    def _facts(self) -> dict[str, Any]:
        return {
            "env": self._twin.name,
            "code": self._twin.code,
            "parameters": dict(self._twin.params),
            "autoreset": str(self.autoreset),
        }

    def _saved(self, copy: int) -> bytes:
        episode = {
            "return": float(self._returns[copy]),
            "length": int(self._lengths[copy]),
            "over": bool(self._was_over[copy]),
        }
        return pack({**self._facts(), "episode": episode}, self._games.save_games([copy]))

    def _load(self, copy: int, state: object) -> Raised | None:
        try:
            facts, games = unpack(f"{type(self).__name__}.load_state", state, self._facts())
            self._games.load_games([copy], games)
        except APIUsageError as error:
            return Raised(error)
        episode = facts["episode"]
        self._returns[copy], self._lengths[copy] = episode["return"], episode["length"]
        self._was_over[copy] = episode["over"]
        return None

    def _notify(self) -> None:
        raise NotImplementedError(f"{type(self).__name__}: environments in C have no notify()")

    def _close(self) -> None:
        self._games.close()
