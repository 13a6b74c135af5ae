"""Stable-Baselines3 ``VecEnv`` around vector environments, and image networks for SB3 policies.

Both also work with the algorithms of sb3-contrib.

Source: Raffin et al., "Stable-Baselines3: Reliable Reinforcement Learning Implementations" (2021).
"""

import functools
import time
import warnings
from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
import torch
from gymnasium.spaces import Discrete
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecEnv

from pufferlib.buffers import Array
from pufferlib.env import AutoresetMode, Infos
from pufferlib.errors import APIUsageError
from pufferlib.frameworks.rows import check_rows, frames_of, observations_of, resets_some, row_of, rows_per_game
from pufferlib.frameworks.zero_based import zero_based_actions, zero_based_observations
from pufferlib.legal_actions import mask_reader
from pufferlib.machine.cpus import warn_without_bfloat16
from pufferlib.models import make_policy
from pufferlib.spaces import MixedBox
from pufferlib.vector import VectorEnv
from pufferlib.vector._copies import copied
from pufferlib.vector.proxy import AnyVectorEnv

__all__ = ["ImageFeatures", "SB3VecEnv", "image_policy_kwargs", "to_sb3"]

Indices = int | Iterable[int] | None

METHOD = "action_masks"  # called by sb3-contrib


def to_sb3(vecenv: AnyVectorEnv, *, monitor: bool = True) -> "SB3VecEnv":
    """Wrap a vector environment in a ``VecEnv`` of Stable-Baselines3 with one row for each agent.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with any backend and autoreset "same_step". The result
            owns it.
        monitor: Whether to add ``"episode"`` to the infos of ended episodes for SB3's logs, as its ``Monitor`` does.

    Raises:
        APIUsageError: The autoreset mode is not "same_step", batches hold only some of the agents, an environment has
            several agents that come and go, or SB3 does not support the observation or action space.
    """
    return SB3VecEnv(vecenv, monitor=monitor)


class SB3VecEnv(VecEnv):
    """Stable-Baselines3 ``VecEnv`` around a vector environment, created by ``to_sb3``.

    Stable-Baselines3 expects integers that start at 0 and have one axis. Other Discrete and MultiDiscrete spaces are
    converted to such spaces, and actions are converted back. A Box of integers becomes a Box of float32, and its
    actions are rounded.

    Infos are new dicts in each step, which callers may keep and change, as with ``DummyVecEnv``. The infos of a native
    environment describe all of its games and are in its first row.

    Attributes:
        vecenv: Wrapped vector environment.
    """

    def __init__(self, vecenv: AnyVectorEnv, *, monitor: bool = True) -> None:
        check_rows("to_sb3", vecenv)
        if vecenv.autoreset != AutoresetMode.SAME_STEP:
            raise APIUsageError(
                f'to_sb3: autoreset must be "same_step", which SB3 expects, got {vecenv.autoreset!r}; '
                'make it with autoreset="same_step"'
            )
        self.vecenv: Any = vecenv
        self._is_native = not isinstance(vecenv, VectorEnv)
        num_rows = int(vecenv.num_agents)
        self._rows_per_env = num_rows if self._is_native else rows_per_game(vecenv)
        self._rows_per_seed = rows_per_game(vecenv) if resets_some(vecenv) else num_rows
        space, self._restore = observations_of("to_sb3", vecenv)
        _check_space(space)
        self._legal_actions = mask_reader(vecenv)
        space, self._to_zero_based = zero_based_observations(space)
        if isinstance(vecenv.single_action_space, MixedBox):
            raise APIUsageError(
                "to_sb3: Stable-Baselines3 has integer actions or float actions, got both in "
                f"{vecenv.single_action_space}; train with puffer train, or use to_torchrl or to_rllib"
            )
        action_space, self._from_zero_based = zero_based_actions("to_sb3", vecenv.single_action_space)
        self._returns = np.zeros(num_rows) if monitor else None
        self._lengths = np.zeros(num_rows, np.int64)
        self._start_s = time.monotonic()
        self._actions: Array
        super().__init__(num_rows, space, action_space)
        # If the environments define the method themselves, it has priority, as in SB3's own vector environments.
        if self._legal_actions and vecenv.emulated and all(self._call_envs(None, "call", "has_wrapper_attr", METHOD)):
            self._legal_actions = None

    def set_options(self, options: list[dict[str, Any]] | dict[str, Any] | None = None) -> None:
        """Set the options of the next ``reset``: a dict for all rows, or a list with one for each row.

        Raises:
            APIUsageError: The vector environment is native, and its ``reset`` takes no options.
        """
        if options and self._is_native:
            raise APIUsageError(
                f"to_sb3: a native environment has keywords instead of options, got options={options!r:.80}; make it "
                "with these keywords, or choose backend=Serial if its reset takes options"
            )
        super().set_options(options)

    def reset(self) -> Any:
        """Start new episodes in all rows, with the seeds and options set before. Return the observations."""
        seeds = [seed for seed in self._seeds[:: self._rows_per_seed] if seed is not None]
        if self._is_native:
            observations, infos = self.vecenv.reset(seeds if len(seeds) > 1 else seeds[0] if seeds else None)
        else:
            options = self._options[:: self._rows_per_env]
            observations, infos = self.vecenv.reset(seeds or None, options=options if any(options) else None)
        self._reset_seeds()
        self._reset_options()
        self.reset_infos = [{} for _ in range(self.num_envs)]
        for info, row, _ in self._with_rows(infos):
            self.reset_infos[row] = info
        if self._returns is not None:
            self._returns[:] = 0
        self._lengths[:] = 0
        return self._prepare_observations(observations)

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Store the actions for ``step_wait``."""
        self._actions = actions

    def step_wait(self) -> tuple[Any, npt.NDArray[np.float32], npt.NDArray[np.bool_], list[dict[str, Any]]]:
        """Take one step in every row. Return observations, rewards, dones, and an info for each row."""
        actions = self._actions if self._from_zero_based is None else self._from_zero_based(self._actions)
        observations, rewards, terminals, truncations, infos = self.vecenv.step(actions)
        ends = terminals | truncations
        if self._returns is not None:
            self._returns += rewards
            self._lengths += 1
        found: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        if infos or np.count_nonzero(ends):  # any() is three times slower
            self._add_infos(found, infos, ends, terminals)
        return self._prepare_observations(observations), rewards.copy(), ends, found

    def close(self) -> None:
        """Close the wrapped vector environment."""
        self.vecenv.close()

    def get_attr(self, attr_name: str, indices: Indices = None) -> list[Any]:
        """Return an attribute of the environments of some rows. ``render_mode`` is None if they do not define it."""
        if attr_name == "render_mode":
            return [getattr(self.vecenv.driver_env, "render_mode", None)] * len(self._rows(indices))
        if attr_name == METHOD and self._legal_actions:
            return [functools.partial(self._action_mask, row) for row in self._rows(indices)]
        return self._call_envs(indices, "get_attr", attr_name)

    def has_attr(self, attr_name: str) -> bool:
        """Return whether all environments have an attribute. Its value need not be picklable."""
        is_legal_actions = attr_name == METHOD and self._legal_actions
        if is_legal_actions or attr_name == "render_mode" or not self.vecenv.emulated:
            return super().has_attr(attr_name)
        return all(self._call_envs(None, "call", "has_wrapper_attr", attr_name))

    def set_attr(self, attr_name: str, value: Any, indices: Indices = None) -> None:
        """Set an attribute of the environments of some rows. All get the same value, also if it is a list."""
        if self._is_native:
            self.vecenv.set_attr(attr_name, [value])
            return
        env_ids = sorted({row // self._rows_per_env for row in self._rows(indices)})
        self.vecenv.set_attr(attr_name, [value] * len(env_ids), env_ids=env_ids)

    def env_method(
        self, method_name: str, *method_args: Any, indices: Indices = None, **method_kwargs: Any
    ) -> list[Any]:
        """Call a method of the environments of some rows. ``action_masks`` is read from their observations."""
        if method_name == METHOD and self._legal_actions:
            return list(self._legal_actions(self.vecenv.observations)[self._rows(indices)])
        return self._call_envs(indices, "call", method_name, *method_args, **method_kwargs)

    def env_is_wrapped(
        self, wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]], indices: Indices = None
    ) -> list[bool]:
        """Return for each row whether its environment has this wrapper. True for ``Monitor`` if ``monitor`` is set."""
        if wrapper_class is Monitor and self._returns is not None:
            return [True for _ in self._rows(indices)]
        if self._is_native:
            return [False for _ in self._rows(indices)]
        name = f"{wrapper_class.__module__}.{wrapper_class.__qualname__}"
        return [name in names for names in self._call_envs(indices, "wrapper_names")]

    def get_images(self) -> Sequence[npt.NDArray[np.uint8] | None]:
        """Return an image of each row, or None for each row without the ``render_mode`` "rgb_array"."""
        if self.render_mode != "rgb_array":
            warnings.warn(f"get_images: render_mode must be 'rgb_array', got {self.render_mode!r}", stacklevel=2)
            return [None] * self.num_envs
        return frames_of(self.vecenv)

    def _action_mask(self, row: int) -> npt.NDArray[np.bool_]:
        assert self._legal_actions is not None
        mask: npt.NDArray[np.bool_] = self._legal_actions(self.vecenv.observations[row : row + 1])[0]
        return mask

    def _rows(self, indices: Indices) -> list[int]:
        rows = range(self.num_envs)
        if indices is None:
            return list(rows)
        chosen = [indices] if isinstance(indices, int | np.integer) else list(indices)
        try:
            return [rows[row] for row in chosen]  # negative indices count from the end
        except IndexError:
            raise APIUsageError(
                f"to_sb3: indices must be from {-len(rows)} to {len(rows) - 1}, got {chosen[:8]}"
            ) from None

    def _call_envs(self, indices: Indices, how: str, *args: Any, **kwargs: Any) -> list[Any]:
        rows = self._rows(indices)
        ask = getattr(self.vecenv, how)
        if self._is_native:
            return (ask(*args, **kwargs) or []) * len(rows)
        env_ids = sorted({row // self._rows_per_env for row in rows})
        results = dict(zip(env_ids, ask(*args, env_ids=env_ids, **kwargs) or env_ids, strict=True))
        return [results[row // self._rows_per_env] for row in rows]

    def _prepare_observations(self, observations: Array) -> Any:
        return self._convert_observations(observations.copy())

    def _convert_observations(self, observations: Array) -> Any:
        shown = observations if self._restore is None else self._restore(observations)
        return shown if self._to_zero_based is None else self._to_zero_based(shown)

    def _with_rows(self, infos: Infos) -> Iterable[tuple[dict[str, Any], int, str]]:
        if not infos:
            return
        infos = copied(infos) if self._is_native else infos
        sources = [(0, "step")] * len(infos) if self._is_native else self.vecenv.info_sources
        for info, (env_id, kind) in zip(infos, sources, strict=True):
            yield info, env_id * self._rows_per_env, kind

    def _add_infos(
        self,
        found: list[dict[str, Any]],
        infos: Infos,
        ends: npt.NDArray[np.bool_],
        terminals: npt.NDArray[np.bool_],
    ) -> None:
        for info, row, kind in self._with_rows(infos):
            if kind == "reset":
                self.reset_infos[row] = info
            else:
                found[row].update(info)
                found[row]["TimeLimit.truncated"] = False  # overrides a key of this name in the environment's info
        rows = np.flatnonzero(ends)
        last = self._convert_observations(self.vecenv.final_observations[rows])
        for place, row in enumerate(rows.tolist()):
            found[row]["TimeLimit.truncated"] = not terminals[row]
            found[row]["terminal_observation"] = row_of(last, place)
            if self._returns is not None and "episode" not in found[row]:
                elapsed_s = round(time.monotonic() - self._start_s, 6)
                found[row]["episode"] = {"r": float(self._returns[row]), "l": int(self._lengths[row]), "t": elapsed_s}
        if self._returns is not None:
            self._returns[rows] = 0
        self._lengths[rows] = 0


def image_policy_kwargs(
    network: str = "NatureCNN", hidden_size: int = 512, precision: str = "float32"
) -> dict[str, Any]:
    """Return ``policy_kwargs`` for an SB3 policy that encodes images with ``ImageFeatures``.

    ``PPO("CnnPolicy", envs, policy_kwargs=image_policy_kwargs())`` has the same layers as SB3's own ``NatureCNN``. It
    trains faster, because convolutions use a more efficient memory layout.

    Args:
        network: "NatureCNN" or "ResNet".
        hidden_size: Number of features passed to the policy.
        precision: "float32", or "bfloat16" for matrix products and convolutions. A warning is issued if there is no
            GPU and the CPU has no bfloat16 instructions.

    Raises:
        APIUsageError: The network or precision is unknown.
    """
    for name, value, allowed in (
        ("network", network, ("NatureCNN", "ResNet")),
        ("precision", precision, ("float32", "bfloat16")),
    ):
        if value not in allowed:
            raise APIUsageError(f"image_policy_kwargs: {name} must be {' or '.join(map(repr, allowed))}, got {value!r}")
    if precision == "bfloat16" and not torch.cuda.is_available():
        warn_without_bfloat16("image_policy_kwargs: precision")
    return {
        "features_extractor_class": ImageFeatures,
        "features_extractor_kwargs": {"network": network, "hidden_size": hidden_size, "precision": precision},
        "normalize_images": False,  # done by the network
    }


class ImageFeatures(BaseFeaturesExtractor):
    """SB3 features extractor with the encoder of a ``pufferlib`` network. See ``image_policy_kwargs``."""

    def __init__(self, observation_space: gymnasium.Space[Any], network: str, hidden_size: int, precision: str) -> None:
        super().__init__(observation_space, hidden_size)
        described = SimpleNamespace(
            single_observation_space=observation_space,
            single_action_space=Discrete(2),  # not used, because SB3 has its own heads
            emulated=False,
            action_mask=None,
        )
        self.network = make_policy(described, network, hidden_size)
        self.network.decoder = torch.nn.Identity()  # type: ignore[assignment]
        # SB3 initializes the layers again, which requires contiguous weights.
        self.network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]  # torch forgot it
        self._is_bfloat16 = precision == "bfloat16"

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        """Encode images ``(rows, ...)`` with values from 0 to 255 as features ``(rows, hidden_size)``."""
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._is_bfloat16):
            return self.network.encode_observations(images).float()


def _check_space(space: gymnasium.Space[Any]) -> None:
    parts = space.spaces.items() if isinstance(space, gymnasium.spaces.Dict) else [("observation", space)]
    for name, part in parts:
        if isinstance(part, gymnasium.spaces.Dict | gymnasium.spaces.Tuple):
            raise APIUsageError(
                f"to_sb3: observations must be arrays or one Dict of them, got {part} as {name}; flatten the "
                "environment's space, or let it stay flat in a native environment"
            )
