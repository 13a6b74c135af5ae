"""A trained policy with all that its copies outside of this library have to know."""

import dataclasses
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib import registry, vector
from pufferlib.models import Policy
from pufferlib.registry import creators
from pufferlib.training.config import Config
from pufferlib.training.normalization import with_moments
from pufferlib.training.runs import Run, load_policy
from pufferlib.wrappers.vector.leaves import joined_names

__all__ = ["Field", "TrainedPolicy", "open_trained", "trained_policy"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Field:
    """One array of an observation.

    Attributes:
        path: Names of the Dicts and places in Tuples that lead to it; none where the observation is an array.
        dtype: Of its numbers, as the environment has them.
        shape: Without the batch.
        offset: Bytes from the start of the observation.
        row_offset: Bytes from the start of the row that the policy reads.
        means: float64 ``(size,)``, subtracted from normalized numbers; None where they stay as they are.
        scales: float64 ``(size,)``, multiplied with the difference.
    """

    path: tuple[str, ...]
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    offset: int
    row_offset: int
    means: Array | None = None
    scales: Array | None = None

    @property
    def name(self) -> str:
        """Its path in words: "observation", or "observation.hero.health"."""
        return ".".join(("observation", *self.path))

    @property
    def size(self) -> int:
        """Numbers."""
        return int(np.prod(self.shape, dtype=np.int64))


@dataclass(frozen=True)
class TrainedPolicy:
    """A policy, and environments that it plays in.

    Attributes:
        policy: On the CPU.
        vecenv: One environment, whose observations are as it shows them.
        normalize: Turns observations ``(rows, *shape)`` of ``vecenv`` into those that the policy reads.
        limit: Largest magnitude of normalized numbers; 0 where nothing is normalized.
        fields: Arrays of an observation.
        name: Of the environment, as a file and an identifier may have it: "atari_pong".
        env_name: Of the environment.
        greedy: Play the likeliest actions, where nobody says otherwise.
        score: Of the checkpoint, in training; None without one.
        seed: Of environment and actions while the exported policy is checked.
    """

    policy: Policy
    vecenv: Any
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
        """Bytes of an observation."""
        space = self.vecenv.single_observation_space
        return int(np.prod(space.shape, dtype=np.int64)) * int(np.dtype(space.dtype).itemsize)


@contextmanager
def open_trained(config: Config, run: Run, greedy: bool | None = None) -> Iterator[TrainedPolicy]:
    """Load the policy of a run, and make one environment for it, which is closed in the end.

    Args:
        config: Settings of the run; whatever device they name, it is the CPU here.
        run: Its checkpoint is read.
        greedy: See ``TrainedPolicy``; None: as the run's evaluation does.
    """
    creator = registry.env_creator(config.env_name)
    kwargs = creators.single_game(creator, config.env)
    config = dataclasses.replace(config, env=kwargs, train=dataclasses.replace(config.train, device="cpu"))
    policy = load_policy(config, run).eval()
    seed = config.eval.seed
    with vector.make(
        creator, env_kwargs=kwargs, num_envs=1, backend="Serial", seed=seed, autoreset="same_step"
    ) as vecenv:
        greedy = config.eval.greedy if greedy is None else greedy
        yield trained_policy(policy, vecenv, config.env_name, greedy, run.about().score, seed)


def trained_policy(
    policy: Policy, vecenv: Any, env_name: str, greedy: bool = True, score: float | None = None, seed: int = 0
) -> TrainedPolicy:
    """Describe a policy and the environments that it plays in; the arguments are as in ``TrainedPolicy``."""
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


def _identifier(env_name: str) -> str:
    """The name of an environment, as files and identifiers may have it."""
    name = re.sub(r"\W+", "_", registry.short_name(env_name).replace(".py", "").removesuffix(".c"), flags=re.ASCII)
    return name.strip("_").lstrip("0123456789_") or "env"


def _fields(vecenv: Any, seen: Any, policy: Any) -> Iterator[Field]:
    """The arrays of an observation of ``vecenv``, and their places in what ``policy`` reads, ``seen``."""
    shown, read = (list(_arrays(_row_dtype(env))) for env in (vecenv, seen))
    names = joined_names(path for path, dtype, *_ in shown if not path or dtype.kind == "f")
    for (path, dtype, shape, offset), (_, read_dtype, _, row_offset) in zip(shown, read, strict=True):
        moments: tuple[Array, ...] = ()
        is_real = read_dtype.kind == "f" and (bool(not path) or dtype.kind == "f")
        if seen is not vecenv and is_real:
            moments = _moments(seen, policy, names[path], vecenv.driver_env)
        yield Field(path, dtype, shape, offset, row_offset, *moments)


def _moments(seen: Any, policy: Any, name: str, env: Any) -> tuple[Array, Array]:
    """Numbers subtracted from an array, and factors of what remains."""
    mean, var = (np.ravel(each[name] if name else each) for each in (seen.mean, seen.var))
    means = mean.copy()
    scales = 1 / np.sqrt(var + float(policy.observation_moments.get_buffer("epsilon")))
    if not env.emulated and env.action_mask is not None:
        means[env.action_mask], scales[env.action_mask] = 0, 1
    return means, scales


def _row_dtype(env: Any) -> np.dtype[Any]:
    """The dtype of one row: with fields where the observation is a Dict or a Tuple."""
    emulated = env.emulated
    if emulated and emulated["emulated_observation_dtype"].names is not None:
        fields: np.dtype[Any] = emulated["emulated_observation_dtype"]
        return fields
    space = env.single_observation_space
    return np.dtype((space.dtype, space.shape))


def _arrays(
    dtype: np.dtype[Any], path: tuple[str, ...] = (), offset: int = 0
) -> Iterator[tuple[tuple[str, ...], np.dtype[Any], tuple[int, ...], int]]:
    """Path, dtype, shape and offset in bytes of each array of a row."""
    if dtype.names is None or dtype.fields is None:
        yield path, dtype.base, dtype.shape, offset
        return
    for name in dtype.names:
        inner, start = dtype.fields[name][:2]
        yield from _arrays(inner, (*path, name), offset + start)
