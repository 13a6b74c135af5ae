"""Base class of emulated environments, with spaces, saved states and the seed of the first episode."""

import dataclasses
import operator
from typing import Any, Self, cast

from gymnasium.spaces import Box

from pufferlib.buffers import Array, RowArrays
from pufferlib.emulation import state
from pufferlib.emulation._rows import EmulatedRows
from pufferlib.emulation.construct import two_values
from pufferlib.emulation.layout import Layout, Limits, action_layout, observation_layout
from pufferlib.spaces import Space

__all__ = ["EmulatedEnv"]

ARRAYS = tuple(RowArrays.__annotations__)
OWN_STATE = ("rows", "progress", "first_seed", "own")


class EmulatedEnv(EmulatedRows, RowArrays):
    """State and methods common to emulated Gymnasium and PettingZoo environments."""

    env: Any
    observation_layout: Layout
    action_layout: Layout
    single_observation_space: Box
    single_action_space: Space
    _first_seed: int | None = None
    _has_begun = False  # True after the first reset
    _limits: Limits
    _made_with: frozenset[str]

    def _reduce_as(self, base: type[Any]) -> tuple[Any, ...]:
        """Return the arguments of copy and pickle: an environment with its own rows, around a copy of the wrapped one.

        Args:
            base: Class whose ``__init__`` creates it. The ``__init__`` of subclasses may take other arguments.

        Raises:
            APIUsageError: Copying the wrapped environment would create a new one, and its state is not plain data.
        """
        saved_env = None
        if self._has_begun and not state.may_pickle(self):
            saved = state.save(f"a copy of {type(self).__name__}", self, {"env": self.env}, allow_pickle=False)
            saved_env = getattr(self.env.unwrapped, "spec", None), saved
        return _remake, (type(self), base, self.env, self._limits), (*self._own_state(), saved_env)

    def __setstate__(self, copied: tuple[Any, ...]) -> None:
        """Restore the state of ``_reduce_as``."""
        *own_state, saved_env = copied
        self._set_own_state(*own_state)
        if saved_env is not None:
            spec, saved = saved_env
            if spec is not None:
                self.env.unwrapped.spec = spec
            self.env.reset()  # creates the objects that the state is loaded into
            where = f"a copy of {type(self).__name__}"
            self.env = state.load(where, self, saved, {"env": self.env}, allow_pickle=False)["env"]

    def _own_state(self) -> tuple[Any, ...]:
        """Return rows, progress, seed of the first episode and user attributes, without the wrapped environment."""
        own = {name: value for name, value in vars(self).items() if name not in self._made_with}
        return {name: getattr(self, name).copy() for name in ARRAYS}, self._progress(), self._first_seed, own

    def _set_own_state(
        self, rows: dict[str, Array], progress: tuple[Any, ...], first_seed: int | None, own: dict[str, Any]
    ) -> None:
        """Restore the return value of ``_own_state``."""
        self._first_seed = first_seed
        for name, array in rows.items():
            getattr(self, name)[...] = array
        self._resume(progress)
        for name, value in own.items():
            setattr(self, name, value)

    def save_state(self, allow_pickle: bool = True) -> bytes:
        """Return the state as bytes. After ``load_state``, the environment returns the same observations and rewards.

        The state includes random generators, wrappers and rows, but not global variables. If an environment defines
        ``save_state()`` and ``load_state(state)`` itself, they are used.

        Args:
            allow_pickle: Pickle an environment that is not plain data (numbers, strings, arrays, and objects of classes
                from its packages).

        Raises:
            APIUsageError: The environment is not plain data and cannot be pickled.
        """
        return state.save(f"{type(self).__name__}.save_state", self, self._contents(), allow_pickle)

    def load_state(self, saved: bytes, allow_pickle: bool = False) -> Array:
        """Restore a state of ``save_state``, possibly from another process.

        Args:
            saved: State of an environment that was created in the same way.
            allow_pickle: Also load pickles, which can execute arbitrary code. Use it only for states that you trust.

        Returns:
            observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: The state is damaged, is a pickle although ``allow_pickle`` is False, or comes from a
                different environment, version, setting or space. In this case nothing is changed.
        """
        where = f"{type(self).__name__}.load_state"
        contents = state.load(where, self, saved, self._contents(), allow_pickle)
        self._set_own_state(*(contents[name] for name in OWN_STATE))
        if contents["env"] is not self.env:
            self.env = contents["env"]
        return self.observations

    def _contents(self) -> dict[str, Any]:
        return {"env": self.env, **dict(zip(OWN_STATE, self._own_state(), strict=True))}

    def _flatten(self, observation_space: Space, action_space: Space, limits: Limits) -> tuple[Layout, Layout]:
        """Set the spaces of one agent and the attributes that describe them, and return both layouts."""
        self._limits = limits
        observations, actions = observation_layout(observation_space, limits), action_layout(action_space)
        self.single_observation_space = cast(Box, observations.flat_space)
        self.single_action_space = actions.flat_space
        self.is_obs_emulated = observations.is_emulated
        self.is_atn_emulated = actions.is_emulated
        self.obs_dtype = observations.dtype.base
        self.emulated = observations.emulated
        self.observation_layout, self.action_layout = observations, actions
        return observations, actions

    def _reset_wrapped(self, seed: int | None, options: dict[str, Any] | None) -> tuple[Any, Any]:
        """Reset the wrapped environment. The first reset without a ``seed`` uses the one of the constructor."""
        if self._first_seed is not None:
            seed = self._first_seed if seed is None else seed
            self._first_seed = None
        if not self._has_begun:
            self._has_begun = True
        if seed is not None and hasattr(seed, "__index__"):  # Gymnasium refuses integers of NumPy
            seed = operator.index(seed)
        return two_values(self.env, self.env.reset(seed=seed, options=options))

    def notify(self) -> None:
        """Call ``notify()`` of the wrapped environment, skipping wrappers that do not define it.

        Raises:
            NotImplementedError: The wrapped environment does not define it.
        """
        env = self.env
        while not hasattr(env, "notify") and hasattr(env, "env"):
            env = env.env
        if not hasattr(env, "notify"):
            raise NotImplementedError(f"{type(env).__name__}: define notify()")
        env.notify()

    @property
    def driver_env(self) -> Self:
        """This environment, for compatibility with ``VectorEnv``."""
        return self


def _remake(cls: Any, base: Any, env: Any, limits: Limits) -> Any:
    made = cls.__new__(cls)
    base.__init__(made, env=env, **dataclasses.asdict(limits))
    return made
