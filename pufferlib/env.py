"""PufferEnv: the contract that every environment meets, one step for all of its agents at once."""

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, MultiDiscrete

from pufferlib.actions import action_array
from pufferlib.buffers import Array, BufferSource, RowArrays, set_buffers
from pufferlib.errors import APIUsageError
from pufferlib.seeding import env_seed
from pufferlib.spaces import Space, check_native_spaces, joint_space

__all__ = [
    "AUTORESET_MODES",
    "Autoreset",
    "EnvIds",
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

Seeds = int | Sequence[int | None] | None
EnvIds = int | Sequence[int] | npt.NDArray[np.generic] | None

Autoreset = Literal["next_step", "same_step", "disabled"]
AUTORESET_MODES: tuple[Autoreset, ...] = ("next_step", "same_step", "disabled")

BEFORE_SUPER = ("single_observation_space", "single_action_space", "num_agents")


class PufferEnv(RowArrays):
    """A vector environment that writes into shared arrays, in place.

    Define ``single_observation_space`` (Box), ``single_action_space`` (Discrete, MultiDiscrete
    or Box) and ``num_agents``, then call ``super().__init__(buf)``. That sets the joint
    ``observation_space`` and ``action_space`` and the arrays of ``pufferlib.buffers.array_specs``:
    ``observations``, ``actions``, ``rewards``, ``terminals``, ``truncations``, ``masks`` and
    ``final_observations``, each with ``num_agents`` rows.

    Args:
        buf: Arrays to write into, as ``vector.make`` passes them; None allocates new ones.

    Raises:
        APIUsageError: An attribute is missing before ``super().__init__``, a space is of a kind
            that a native environment may not have, or a joint space was defined by hand.
    """

    single_observation_space: Box
    single_action_space: Space
    num_agents: int
    observation_space: Space
    action_space: Space

    # What follows a finished episode: "same_step" shows the next one's first observation at once
    # and keeps the last one in final_observations; "next_step" spends a step on the reset; with
    # "disabled" a game that is over stands still until reset. An environment that knows several
    # takes `autoreset` as a keyword, which vector.make then passes on.
    autoreset: Autoreset = "same_step"

    # Which elements of an agent's flattened observation say what it may do: one for each value of each
    # part of the action, not 0 where that is legal. None: everything is. Policies choose legal actions.
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
        """Start new episodes. Returns ``observations (num_agents, *shape)`` and a list of dicts."""
        raise NotImplementedError(f"{type(self).__name__}: define reset(seed=None)")

    def step(self, actions: Any) -> Stepped:
        """Act with every agent once.

        Args:
            actions: ``(num_agents, *action_shape)``, integers or the dtype of a Box.

        Returns:
            observations ``(num_agents, *shape)``, rewards float32 ``(num_agents,)``, terminals
            and truncations bool ``(num_agents,)``, and a list of dicts.
        """
        raise NotImplementedError(f"{type(self).__name__}: define step(actions)")

    def close(self) -> None:
        """Release what the environment holds."""
        raise NotImplementedError(f"{type(self).__name__}: define close()")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def notify(self) -> None:
        """Hear of ``vecenv.notify()``; an environment defines for itself what that means, a new map for instance."""
        raise NotImplementedError(f"{type(self).__name__}: define notify()")

    def _check_action_mask(self, where: str) -> None:
        if self.action_mask is None:
            return
        space: Any = self.single_action_space
        sizes = 0 if isinstance(space, Box) else space.nvec if isinstance(space, MultiDiscrete) else space.n
        choices, elements = int(np.sum(sizes)), range(int(np.prod(self.single_observation_space.shape)))
        if choices == 0 or len(elements[self.action_mask]) != choices:
            raise APIUsageError(
                f"{where}: action_mask must select {choices} of the {len(elements)} elements of an observation, one "
                f"for each value of each part of an action, got {self.action_mask}; a Box action can have no mask"
            )

    @property
    def emulated(self) -> Any:
        """False, since a native environment needs no translation of its spaces."""
        return False

    @property
    def done(self) -> bool:
        """False, since a native environment starts its next episodes itself."""
        return False

    @property
    def driver_env(self) -> "PufferEnv":
        """This environment, which describes the batch."""
        return self

    @property
    def agents_per_batch(self) -> int:
        """Rows that one ``recv`` returns."""
        return int(self.num_agents)

    def call(self, name: str, /, *args: Any, **kwargs: Any) -> list[Any]:
        """Call a method, as ``VectorEnv.call`` does; returns a list of its one result."""
        return [getattr(self, name)(*args, **kwargs)]

    def get_attr(self, name: str) -> list[Any]:
        """Return a list of one attribute, as ``VectorEnv.get_attr`` does."""
        return [getattr(self, name)]

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute, to the value of a list or tuple of one, as ``VectorEnv.set_attr`` does."""
        setattr(self, name, values[0] if isinstance(values, list | tuple) else values)

    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes; ``recv`` returns their first observations.

        Raises:
            APIUsageError: ``reset`` does not return two values.
        """
        _, self._infos = reset_values(self, self.reset(seed))
        self.rewards[:] = 0
        self.terminals[:] = False
        self.truncations[:] = False
        self._ready = True

    def send(self, actions: Any) -> None:
        """Act with every agent once; ``recv`` returns the outcome.

        Raises:
            APIUsageError: What came before was not received, or ``step`` does not return five values.
        """
        if self._ready:
            raise APIUsageError(
                f"{type(self).__name__}.send: the next call must be recv, got send; call recv and send in turns"
            )
        if not isinstance(actions, np.ndarray):
            actions = action_array(f"{type(self).__name__}.send", actions)
        outcome = self.step(actions)
        if type(outcome) is not tuple or len(outcome) != 5:  # asked here, since a call costs as much as the rest
            outcome = step_values(self, outcome)
        self._infos = outcome[4]
        self._ready = True

    def recv(self) -> Received:
        """The outcome of the last ``async_reset`` or ``send``.

        Returns:
            observations, rewards, terminals, truncations, infos, agent ids int64
            ``(num_agents,)``, masks bool ``(num_agents,)``.

        Raises:
            APIUsageError: Nothing was sent, or ``step`` returned infos that are not a list.
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
    """The observations and infos that ``env.reset`` returned.

    Raises:
        APIUsageError: It returned something else.
    """
    if isinstance(outcome, tuple | list) and len(outcome) == 2:
        return outcome[0], outcome[1]
    raise APIUsageError(
        f"{type(env).__name__}: reset must return observations and infos, got {type(outcome).__name__}; "
        "return self.observations, []"
    )


def step_values(env: object, outcome: Any) -> tuple[Any, ...]:
    """The observations, rewards, terminals, truncations and infos that ``env.step`` returned.

    Raises:
        APIUsageError: It returned something else.
    """
    if isinstance(outcome, tuple | list) and len(outcome) == 5:
        return tuple(outcome)
    got = f"{len(outcome)} values" if isinstance(outcome, tuple | list) else f"{outcome!r:.80}"
    raise APIUsageError(
        f"{type(env).__name__}: step must return observations, rewards, terminals, truncations and infos, got {got}; "
        "return exactly these five"
    )


def env_seeds(where: str, seed: Seeds, env_ids: Sequence[int]) -> list[int | None]:
    """Seeds of the environments ``env_ids``, of one for all or of a list with one for each.

    Raises:
        APIUsageError: A seed is no int, or the list has another length.
    """
    is_one = not isinstance(seed, list | tuple | np.ndarray) or getattr(seed, "ndim", 1) == 0
    seeds = per_env(where, "seed", seed, len(env_ids), is_one=is_one)
    for each in seeds:
        if each is not None and (isinstance(each, bool) or not isinstance(each, int | np.integer)):
            raise APIUsageError(
                f"{where}: seed must be an int or None, got {each!r}; one seed serves all environments, a list has "
                "one for each"
            )
    ints = [None if each is None else int(each) for each in seeds]
    if not is_one:
        return ints
    return [None if each is None else env_seed(each, env_id) for each, env_id in zip(ints, env_ids, strict=True)]


def per_env(where: str, what: str, values: Any, count: int, *, is_one: bool) -> list[Any]:
    """``values`` as a list with one for each of ``count`` environments; ``is_one``: they are one value for all.

    Raises:
        APIUsageError: They are of another number.
    """
    if is_one:
        return [values] * count
    found = list(values)
    if len(found) != count:
        raise APIUsageError(f"{where}: {what} must be one for all, or a list of {count}, got {len(found)}")
    return found


def check_env_ids(where: str, env_ids: Any, num_envs: int) -> list[int]:
    """The environments that ``env_ids`` names: None for all, a list of ints, or a mask, bool ``(num_envs,)``.

    Raises:
        APIUsageError: It is none of these, or names one that is not there, or one twice.
    """
    if env_ids is None:
        return list(range(num_envs))
    if type(env_ids) is int and 0 <= env_ids < num_envs:  # the quickest answer to the commonest question
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
