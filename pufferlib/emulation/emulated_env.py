"""Base of emulated environments: flat spaces, rows of a batch, and the seed of the first episode."""

import dataclasses
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
    """State that Gymnasium's and PettingZoo's emulated environments have alike."""

    env: Any
    observation_layout: Layout
    action_layout: Layout
    single_observation_space: Box
    single_action_space: Space
    _first_seed: int | None = None
    _has_begun = False  # an episode
    _limits: Limits
    _made_with: frozenset[str]

    def _copied_as(self, base: type[Any]) -> tuple[Any, ...]:
        """Recipe for copy and pickle: an environment with rows of its own, around a copy of the wrapped one.

        Args:
            base: Class whose ``__init__`` makes it; those of subclasses may take other arguments.

        Raises:
            APIUsageError: The wrapped environment is copied by making another, and its game is no plain data.
        """
        game = None
        if self._has_begun and not state.may_pickle(self):
            saved = state.save(f"a copy of {type(self).__name__}", self, {"env": self.env}, allow_pickle=False)
            game = getattr(self.env.unwrapped, "spec", None), saved
        return _remake, (type(self), base, self.env, self._limits), (*self._own_state(), game)

    def __setstate__(self, copied: tuple[Any, ...]) -> None:
        """Take the state of ``_copied_as``."""
        *own_state, game = copied
        self._take(*own_state)
        if game is not None:
            spec, saved = game
            if spec is not None:
                self.env.unwrapped.spec = spec
            self.env.reset()  # which makes what the game is loaded into
            where = f"a copy of {type(self).__name__}"
            self.env = state.load(where, self, saved, {"env": self.env}, allow_pickle=False)["env"]

    def _own_state(self) -> tuple[Any, ...]:
        """Everything but the wrapped environment: rows, progress, seed of the first episode, attributes of users."""
        own = {name: value for name, value in vars(self).items() if name not in self._made_with}
        return {name: getattr(self, name).copy() for name in ARRAYS}, self._progress(), self._first_seed, own

    def _take(
        self, rows: dict[str, Array], progress: tuple[Any, ...], first_seed: int | None, own: dict[str, Any]
    ) -> None:
        """Take what ``_own_state`` returned."""
        self._first_seed = first_seed
        for name, array in rows.items():
            getattr(self, name)[...] = array
        self._resume(progress)
        for name, value in own.items():
            setattr(self, name, value)

    def save_state(self, allow_pickle: bool = True) -> bytes:
        """State as bytes, from which ``load_state`` goes on to the same observations and rewards.

        Random generators, wrappers and rows are part of it; what lies in global variables is not. An environment that
        has ``save_state()`` and ``load_state(state)`` itself is asked for its state.

        Args:
            allow_pickle: Pickle an environment that is more than numbers, texts, arrays and objects of its packages.

        Raises:
            APIUsageError: It is neither plain data, nor can it be pickled.
        """
        return state.save(f"{type(self).__name__}.save_state", self, self._contents(), allow_pickle)

    def load_state(self, saved: bytes, allow_pickle: bool = False) -> Array:
        """Go on from where an environment was that ``save_state`` saved, here or in another process.

        Args:
            saved: Of an environment that was made alike.
            allow_pickle: Load pickles too, which may execute anything: only if you know who made them.

        Returns:
            observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: The state is damaged, is a pickle that is not allowed, or is of another environment, of other
                versions, settings or spaces. Nothing is changed then.
        """
        where = f"{type(self).__name__}.load_state"
        contents = state.load(where, self, saved, self._contents(), allow_pickle)
        self._take(*(contents[name] for name in OWN_STATE))
        if contents["env"] is not self.env:
            self.env = contents["env"]
        return self.observations

    def _contents(self) -> dict[str, Any]:
        return {"env": self.env, **dict(zip(OWN_STATE, self._own_state(), strict=True))}

    def _flatten(self, observation_space: Space, action_space: Space, limits: Limits) -> tuple[Layout, Layout]:
        """Set the spaces of one agent and the attributes that describe them; return the layouts of both."""
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
        """Reset the wrapped environment, without a ``seed`` by that of the constructor, once."""
        if self._first_seed is not None:
            seed = self._first_seed if seed is None else seed
            self._first_seed = None
        if not self._has_begun:
            self._has_begun = True
        return two_values(self.env, self.env.reset(seed=seed, options=options))

    def notify(self) -> None:
        """Hear of ``vecenv.notify()``: call ``notify()`` of the wrapped environment, past wrappers that have none.

        Raises:
            NotImplementedError: It has none.
        """
        env = self.env
        while not hasattr(env, "notify") and hasattr(env, "env"):
            env = env.env
        if not hasattr(env, "notify"):
            raise NotImplementedError(f"{type(env).__name__}: define notify()")
        env.notify()

    @property
    def driver_env(self) -> Self:
        """Itself, as the environment that describes the batch."""
        return self


def _remake(cls: Any, base: Any, env: Any, limits: Limits) -> Any:
    made = cls.__new__(cls)
    base.__init__(made, env=env, **dataclasses.asdict(limits))
    return made
