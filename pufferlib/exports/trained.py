"""Trained policy with all data that is needed for an export."""

import dataclasses
import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from pufferlib import registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.legal_actions import FIELD as MASK_FIELD
from pufferlib.models import Policy
from pufferlib.registry import creators
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.training.agent import load_policy
from pufferlib.training.normalization import with_moments
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector.leaves import joined_names

__all__ = ["Field", "TrainedPolicy", "in_env_units", "open_trained", "trained_policy"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Field:
    """One array of an observation.

    Attributes:
        name: "observation", or for example "observation.hero.health". No other array has this name.
        path: Keys of Dicts and indices of Tuples that lead to it, or empty if the observation is a single array.
        dtype: Dtype of the array in the environment.
        shape: Shape without the batch dimension.
        offset: Offset in bytes from the start of the observation.
        row_offset: Offset in bytes from the start of the row that the policy reads.
        means: Values to subtract for normalization, float64 ``(size,)``, or None if the array is not normalized.
        scales: Factors to multiply with afterwards, float64 ``(size,)``, or None.
    """

    name: str
    path: tuple[str, ...]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    row_offset: int
    means: Array | None = None
    scales: Array | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class TrainedPolicy:
    """Policy and its environment.

    Attributes:
        policy: Policy on the CPU.
        vecenv: Vector environment with one environment, without normalization.
        normalize: Function from observations ``(rows, *shape)`` of ``vecenv`` to inputs of the policy.
        limit: Largest absolute value after normalization, or 0 without normalization.
        fields: Arrays of an observation.
        name: Name of the environment as a valid file name and identifier, such as "atari_pong".
        env_name: Name of the environment.
        greedy: True if the most likely action is the default.
        score: Score of the checkpoint, from an evaluation during training or from training, or None if it has none.
        seed: Seed of the environment and the actions during the check of the exported file.
    """

    policy: Policy
    vecenv: AnyVectorEnv
    normalize: Any
    limit: float
    fields: tuple[Field, ...]
    name: str
    env_name: str
    greedy: bool
    score: float | None
    seed: int

    @property
    def row_bytes(self) -> int:
        """Size of an observation in bytes."""
        space = self.vecenv.single_observation_space
        return int(np.prod(space.shape, dtype=np.int64)) * int(np.dtype(space.dtype).itemsize)


@contextmanager
def open_trained(config: Config, run: Run, greedy: bool | None = None) -> Iterator[TrainedPolicy]:
    """Load the policy of a run and make one environment for it. The environment is closed at the end.

    Args:
        config: Settings of the run. The device is always the CPU.
        run: Run with the checkpoint to load.
        greedy: Value of ``TrainedPolicy.greedy``, by default the setting of the run's evaluation.
    """
    creator = registry.env_creator(config.env_name)
    kwargs = creators.single_game(creator, config.env)
    config = dataclasses.replace(config, env=kwargs, train=dataclasses.replace(config.train, device="cpu"))
    policy = load_policy(config, run).eval()
    seed = config.eval.seed
    with vector.make(
        creator, env_kwargs=kwargs, num_envs=1, backend="Serial", seed=seed, autoreset=AutoresetMode.SAME_STEP
    ) as vecenv:
        greedy = config.eval.greedy if greedy is None else greedy
        yield trained_policy(policy, vecenv, config.env_name, greedy, run.about().score, seed)


def trained_policy(
    policy: Policy, vecenv: AnyVectorEnv, env_name: str, greedy: bool = True, score: float | None = None, seed: int = 0
) -> TrainedPolicy:
    """Return a ``TrainedPolicy``. Its attributes of the same names describe the arguments."""
    moments: Any = getattr(policy, "observation_moments", None)
    seen = with_moments(vecenv, policy)
    return TrainedPolicy(
        policy=policy,
        vecenv=vecenv,
        normalize=np.ascontiguousarray if moments is None else seen.normalize,
        limit=0.0 if moments is None else float(moments.get_buffer("clip")),
        fields=tuple(_fields(vecenv, seen, policy)),
        name=_identifier(env_name),
        env_name=env_name,
        greedy=greedy,
        score=score,
        seed=seed,
    )


def in_env_units(params: Tensor, num_logits: int, start: Tensor, scale: Tensor) -> Tensor:
    """Convert means and log standard deviations to the units of the action space.

    Args:
        params: Parameters of a distribution, ``(rows, num_logits + 2 * reals)``.
        num_logits: Number of logits, which stay unchanged.
        start: Environment action that corresponds to 0, ``(reals,)``.
        scale: Change of the environment action that corresponds to 1, ``(reals,)``.
    """
    means, log_stds = params[..., num_logits:].chunk(2, -1)
    return torch.cat([params[..., :num_logits], start + scale * means, log_stds + scale.log()], -1).float()


def _identifier(env_name: str) -> str:
    """Convert the name of an environment to a valid file name and identifier."""
    name = re.sub(r"\W+", "_", registry.short_name(env_name).replace(".py", "").removesuffix(".c"), flags=re.ASCII)
    return name.strip("_").lstrip("0123456789_") or "env"


def _fields(vecenv: Any, seen: Any, policy: Any) -> Iterator[Field]:
    """Yield the arrays of an observation of ``vecenv``, with their offsets in ``seen``, which ``policy`` reads."""
    shown, read = (list(_arrays(_row_dtype(env))) for env in (vecenv, seen))
    names = joined_names(path for path, dtype, *_ in shown if not path or dtype.kind == "f")
    inputs = joined_names(("observation", *path) for path, *_ in shown)
    for (path, dtype, shape, offset), (_, read_dtype, _, row_offset) in zip(shown, read, strict=True):
        moments: tuple[Array, ...] = ()
        is_real = read_dtype.kind == "f" and (bool(not path) or dtype.kind == "f")
        if seen is not vecenv and is_real:
            if path == (MASK_FIELD,):  # as in NormalizeObservation, which leaves it as it is
                moments = np.zeros(math.prod(shape)), np.ones(math.prod(shape))
            else:
                moments = _moments(seen, policy, names[path], vecenv.driver_env)
        yield Field(inputs["observation", *path], path, dtype, shape, offset, row_offset, *moments)


def _moments(seen: Any, policy: Any, name: str, env: Any) -> tuple[Array, Array]:
    """Return the values to subtract from an array, and the factors to multiply with afterwards."""
    mean, var = (np.ravel(each[name] if name else each) for each in (seen.mean, seen.var))
    means = mean.copy()
    scales = 1 / np.sqrt(var + float(policy.observation_moments.get_buffer("epsilon")))
    if not env.emulated and env.action_mask is not None:
        means[env.action_mask], scales[env.action_mask] = 0, 1
    return means, scales


def _row_dtype(env: Any) -> np.dtype[Any]:
    """Return the dtype of one row, which has fields if the observation is a Dict or a Tuple."""
    emulated = env.emulated
    if emulated and emulated["emulated_observation_dtype"].names is not None:
        fields: np.dtype[Any] = emulated["emulated_observation_dtype"]
        return fields
    space = env.single_observation_space
    return np.dtype((space.dtype, space.shape))


def _arrays(
    dtype: np.dtype[Any], path: tuple[str, ...] = (), offset: int = 0
) -> Iterator[tuple[tuple[str, ...], np.dtype[Any], tuple[int, ...], int]]:
    """Yield the path, dtype, shape and offset in bytes of each array in a row."""
    if dtype.names is None or dtype.fields is None:
        yield path, dtype.base, dtype.shape, offset
        return
    for name in dtype.names:
        inner, start = dtype.fields[name][:2]
        yield from _arrays(inner, (*path, name), offset + start)
