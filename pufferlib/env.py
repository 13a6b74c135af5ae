"""``PufferEnv``: base class of all environments. One step acts with all agents of the environment."""

import functools
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, MultiDiscrete
from gymnasium.vector import AutoresetMode as GymnasiumAutoresetMode

from pufferlib.actions import action_array
from pufferlib.buffers import Array, BufferSource, RowArrays, set_buffers
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.seeding import env_seed
from pufferlib.spaces import Space, check_native_spaces, joint_space

__all__ = [
    "Autoreset",
    "AutoresetLike",
    "AutoresetMode",
    "EnvIds",
    "HasSpaces",
    "Infos",
    "PufferEnv",
    "Received",
    "Seeds",
    "Stepped",
    "check_env_ids",
    "env_seeds",
    "per_env",
    "reset_values",
    "step_values",
]

Infos = list[dict[str, Any]]
Stepped = tuple[Array, Array, Array, Array, Infos]
Received = tuple[Array, Array, Array, Array, Infos, npt.NDArray[np.int64], Array]

Seeds = int | Sequence[int | None] | npt.NDArray[np.integer[Any]] | None
SEEDS = range(1 << 63)  # seeds of single environments
EnvIds = int | Sequence[int] | npt.NDArray[np.generic] | None


class AutoresetMode(StrEnum):
    """Behavior of an environment after an episode ends. Each mode is equal to its name, ``"same_step"`` for example.

    Arguments called ``autoreset`` also accept the members of ``gymnasium.vector.AutoresetMode``.
    """

    NEXT_STEP = "next_step"
    """The next step resets the environment. It ignores its actions and has reward 0."""
    SAME_STEP = "same_step"
    """The step returns the first observation of the next episode, and keeps the last one in ``final_observations``."""
    DISABLED = "disabled"
    """Nothing happens until ``reset``."""

    def __repr__(self) -> str:
        return repr(self.value)

    @classmethod
    def _missing_(cls, value: object) -> "AutoresetMode | None":
        """Convert a member of ``gymnasium.vector.AutoresetMode``, which has the same names and other values."""
        return cls.__members__.get(value.name) if isinstance(value, GymnasiumAutoresetMode) else None

    @classmethod
    def of(cls, where: str, mode: Any) -> "AutoresetMode":
        """Return the mode for a member, its name, or a member of ``gymnasium.vector.AutoresetMode``.

        Raises:
            UnknownNameError: There is no such mode. ``where`` starts the message.
        """
        try:
            return cls(mode)
        except ValueError:
            raise UnknownNameError.of(where, "autoreset", mode, cls) from None


Autoreset = AutoresetMode | Literal["next_step", "same_step", "disabled"]
AutoresetLike = Autoreset | GymnasiumAutoresetMode


class HasSpaces(Protocol):
    """Environment, vector environment, or description of one, from which a policy reads the spaces of one agent."""

    @property
    def single_observation_space(self) -> Box:
        """Observation space of one agent."""

    @property
    def single_action_space(self) -> Space:
        """Action space of one agent."""

    @property
    def emulated(self) -> Any:
        """Description of how emulation flattened the spaces, or False for native environments."""


BEFORE_SUPER = ("single_observation_space", "single_action_space", "num_agents")


class PufferEnv(RowArrays):
    """Vector environment that writes into shared arrays, in place.

    Define ``single_observation_space`` (Box), ``single_action_space`` (Discrete, MultiDiscrete
    or Box) and ``num_agents``, then call ``super().__init__(buf)``. This sets the joint ``observation_space`` and
    ``action_space``, ``agent_ids``, and the arrays of ``pufferlib.buffers.array_specs``:
    ``observations``, ``actions``, ``rewards``, ``terminals``, ``truncations``, ``masks`` and
    ``final_observations``, each with ``num_agents`` rows.

    Args:
        buf: Arrays to write into, as passed by ``vector.make``. None allocates new ones.

    Raises:
        APIUsageError: An attribute is not defined before ``super().__init__``, a space has a type that native
            environments do not support, a joint space is defined by hand, ``num_agents`` is not a positive int, or
            ``action_mask`` or ``buf`` does not fit the spaces.
    """

    single_observation_space: Box
    single_action_space: Space
    num_agents: int
    observation_space: Space
    action_space: Space

    # An environment with several modes takes `autoreset` as a keyword argument, which vector.make passes on.
    autoreset: Autoreset = AutoresetMode.SAME_STEP

    # Elements of an agent's flattened observation that hold its action mask: one for each value of each part of
    # the action, nonzero if it is legal. None: all actions are legal. Policies only choose legal actions.
    action_mask: slice | None = None

    def __init__(self, buf: BufferSource = None) -> None:
        where = type(self).__name__
        for name in BEFORE_SUPER:
            if not hasattr(self, name):
                raise APIUsageError(
                    f"{where}: {name} is not defined; you are calling super().__init__() before you have assigned it"
                )
        for name in ("observation_space", "action_space"):
            if hasattr(self, name):
                raise APIUsageError(f"{where}: {name} is derived; define only single_{name}, of one agent")
        if not isinstance(self.num_agents, int | np.integer) or self.num_agents < 1:
            raise APIUsageError(f"{where}: num_agents must be an int >= 1, got {self.num_agents!r}")
        check_native_spaces(where, self.single_observation_space, self.single_action_space)
        self._check_action_mask(where)

        self.observation_space = joint_space(self.single_observation_space, self.num_agents)
        self.action_space = joint_space(self.single_action_space, self.num_agents)
        self.agent_ids = np.arange(self.num_agents)
        self._infos: Infos = []
        self._ready = False
        set_buffers(self, buf)

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new episodes. Return ``observations (num_agents, *shape)`` and a list of info dicts."""
        raise NotImplementedError(f"{type(self).__name__}: define reset(seed=None)")

    def step(self, actions: Any) -> Stepped:
        """Take one step with every agent.

        Args:
            actions: Actions ``(num_agents, *action_shape)``, integers or the dtype of a Box.

        Returns:
            observations ``(num_agents, *shape)``, rewards float32 ``(num_agents,)``, terminals
            and truncations bool ``(num_agents,)``, and a list of info dicts.
        """
        raise NotImplementedError(f"{type(self).__name__}: define step(actions)")

    def close(self) -> None:
        """Release all resources of the environment."""
        raise NotImplementedError(f"{type(self).__name__}: define close()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def pending_infos(self) -> Infos:
        """Return the infos that no step has returned yet, and forget them.

        An environment that reports its episodes at intervals overrides this method. A training calls it in its last
        update, so that the last episodes are reported too.
        """
        return []

    def notify(self) -> None:
        """Handle ``vecenv.notify()``. The environment defines the meaning, for instance to load a new map."""
        raise NotImplementedError(f"{type(self).__name__}: define notify()")

    def _check_action_mask(self, where: str) -> None:
        if self.action_mask is None:
            return
        space: Any = self.single_action_space
        sizes = space.nvec if isinstance(space, MultiDiscrete) else getattr(space, "sizes", getattr(space, "n", 0))
        choices, elements = int(np.sum(sizes)), range(int(np.prod(self.single_observation_space.shape)))
        if choices == 0 or len(elements[self.action_mask]) != choices:
            raise APIUsageError(
                f"{where}: action_mask must select {choices} of the {len(elements)} elements of an observation, one "
                f"for each value of each part of an action, got {self.action_mask}; a Box action can have no mask"
            )

    @property
    def emulated(self) -> Any:
        """False, because a native environment needs no conversion of its spaces."""
        return False

    @functools.cached_property  # which a class may also assign
    def obs_dtype(self) -> np.dtype[Any]:
        """Dtype of one agent's observation, for compatibility with emulated environments."""
        return np.dtype(self.single_observation_space.dtype)

    @property
    def done(self) -> bool:
        """False, because a native environment resets itself."""
        return False

    @property
    def driver_env(self) -> "PufferEnv":
        """This environment, for compatibility with ``VectorEnv``."""
        return self

    @property
    def agents_per_batch(self) -> int:
        """Number of rows that one ``recv`` returns."""
        return int(self.num_agents)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method. Return a list with the one result, like ``VectorEnv.call``."""
        return [getattr(self, name)(*args, **kwargs)]

    def get_attr(self, name: str) -> list[Any]:
        """Return an attribute in a list of length 1, like ``VectorEnv.get_attr``."""
        return [getattr(self, name)]

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute. A list or tuple must hold one value, as in ``VectorEnv.set_attr``.

        Raises:
            APIUsageError: A list or tuple holds more values, or none.
        """
        if isinstance(values, list | tuple):
            if len(values) != 1:
                raise APIUsageError(
                    f"set_attr: this environment is one object for all rows, so a list must hold one value, got "
                    f"{len(values)} for {name!r}; to set the list itself, pass [values]"
                )
            (values,) = values
        setattr(self, name, values)

    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes. ``recv`` returns the first observations.

        Raises:
            APIUsageError: ``reset`` does not return two values.
        """
        _, self._infos = reset_values(self, self.reset(seed))
        self.rewards[:] = 0
        self.terminals[:] = False
        self.truncations[:] = False
        self._ready = True

    def send(self, actions: Any) -> None:
        """Take one step with every agent. ``recv`` returns the outcome.

        Raises:
            APIUsageError: The last outcome was not received, or ``step`` does not return five values.
        """
        if self._ready:
            raise APIUsageError(
                f"{type(self).__name__}.send: the next call must be recv, got send; call recv and send in turns"
            )
        if not isinstance(actions, np.ndarray):
            actions = action_array(f"{type(self).__name__}.send", actions)
        outcome = self.step(actions)
        if type(outcome) is not tuple or len(outcome) != 5:  # inlined, because a call costs as much as this method
            outcome = step_values(self, outcome)
        self._infos = outcome[4]
        self._ready = True

    def recv(self) -> Received:
        """Return the outcome of the last ``async_reset`` or ``send``.

        Returns:
            observations, rewards, terminals, truncations, infos, agent ids int64
            ``(num_agents,)``, masks bool ``(num_agents,)``.

        Raises:
            APIUsageError: Nothing was sent, or ``reset`` or ``step`` returned infos that are not a list.
        """
        if not self._ready:
            raise APIUsageError(f"{type(self).__name__}.recv: nothing to receive; call async_reset or send first")
        self._ready = False
        if not isinstance(self._infos, list):
            raise APIUsageError(
                f"{type(self).__name__}: infos must be a list of dicts, got {type(self._infos).__name__}"
            )
        return (
            self.observations,
            self.rewards,
            self.terminals,
            self.truncations,
            self._infos,
            self.agent_ids,
            self.masks,
        )


def reset_values(env: object, outcome: Any) -> tuple[Any, Any]:
    """Return the observations and infos from the return value of ``env.reset``.

    Raises:
        APIUsageError: ``outcome`` is not a pair.
    """
    if isinstance(outcome, tuple | list) and len(outcome) == 2:
        return outcome[0], outcome[1]
    raise APIUsageError(
        f"{type(env).__name__}: reset must return observations and infos, got {type(outcome).__name__}; "
        "return self.observations, []"
    )


def step_values(env: object, outcome: Any) -> tuple[Any, ...]:
    """Return the observations, rewards, terminals, truncations and infos from the return value of ``env.step``.

    Raises:
        APIUsageError: ``outcome`` does not hold five values.
    """
    if isinstance(outcome, tuple | list) and len(outcome) == 5:
        return tuple(outcome)
    got = f"{len(outcome)} values" if isinstance(outcome, tuple | list) else f"{outcome!r:.80}"
    raise APIUsageError(
        f"{type(env).__name__}: step must return observations, rewards, terminals, truncations and infos, got {got}; "
        "return exactly these five"
    )


def env_seeds(where: str, seed: Seeds, env_ids: Sequence[int]) -> list[int | None]:
    """Return the seed of each environment of ``env_ids``.

    Args:
        where: Name of the calling function, for errors.
        seed: Base seed, from which each environment gets ``env_seed(seed, env_id)``, or a list of their seeds.
        env_ids: Environments to seed.

    Raises:
        APIUsageError: A seed is not an int, the list has the wrong length, or one of it is not in ``SEEDS``.
    """
    is_one = not isinstance(seed, list | tuple | range | np.ndarray) or getattr(seed, "ndim", 1) == 0
    seeds = per_env(where, "seed", seed, len(env_ids), is_one=is_one)
    for each in seeds:
        if each is not None and (isinstance(each, bool) or not isinstance(each, int | np.integer)):
            raise APIUsageError(
                f"{where}: seed must be an int or None, got {each!r}; give one seed for all environments, or a list "
                "with one for each"
            )
    ints = [None if each is None else int(each) for each in seeds]
    if not is_one:
        if wrong := [each for each in ints if each is not None and each not in SEEDS]:
            raise APIUsageError(
                f"{where}: the seed of an environment must be from 0 to 2**63 - 1, got {wrong[0]}; give one int of any "
                "size for all environments instead, from which their seeds are computed"
            )
        return ints
    return [None if each is None else env_seed(each, env_id) for each, env_id in zip(ints, env_ids, strict=True)]


def per_env(where: str, what: str, values: Any, count: int, *, is_one: bool) -> list[Any]:
    """Return ``values`` as a list with one value for each of ``count`` environments.

    Args:
        where: Name of the calling function, for errors.
        what: Name of the argument, for errors.
        values: One value for all environments, or a list of values.
        count: Number of environments.
        is_one: Whether ``values`` is one value for all environments.

    Raises:
        APIUsageError: The list does not have ``count`` values.
    """
    if is_one:
        return [values] * count
    found = list(values)
    if len(found) != count:
        raise APIUsageError(f"{where}: {what} must be one for all, or a list of {count}, got {len(found)}")
    return found


def check_env_ids(where: str, env_ids: Any, num_envs: int) -> list[int]:
    """Return the environments selected by ``env_ids``: None for all, an int, a list of ints, or a boolean mask.

    Raises:
        APIUsageError: ``env_ids`` has another type, or holds an index that is out of range or duplicate.
    """
    if env_ids is None:
        return list(range(num_envs))
    if type(env_ids) is int and 0 <= env_ids < num_envs:  # fast path for the most common case
        return [env_ids]
    array = np.asarray(env_ids)
    if array.dtype == bool and array.shape == (num_envs,):
        return [int(number) for number in np.flatnonzero(array)]
    if array.ndim > 1 or (array.dtype.kind not in "iu" and array.size):
        raise APIUsageError(
            f"{where}: env_ids must be an int, a list of ints below {num_envs}, or a mask of {num_envs} bools, "
            f"got {env_ids!r:.80}"
        )
    found = [int(number) for number in np.atleast_1d(array)]
    wrong = [number for number in found if not 0 <= number < num_envs]
    if wrong or len(set(found)) < len(found):
        raise APIUsageError(
            f"{where}: env_ids must name environments 0 to {num_envs - 1}, each once, got {wrong or found}"
        )
    return found
