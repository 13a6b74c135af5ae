"""Base of the wrappers: a vector environment around another one, on any backend."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.env import Infos, PufferEnv, Received, Stepped, check_env_ids
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, joint_space
from pufferlib.vector.proxy import VectorProxy
from pufferlib.vector.vector_env import VectorEnv
from pufferlib.wrappers.vector.transitions import EpisodeTracker, Transitions

__all__ = ["EnvView", "VectorWrapper"]


class EnvView:
    """One environment as it is seen through wrappers.

    Args:
        env: The environment, or a description of it.
        changes: Attributes that the wrappers give other values.
    """

    def __init__(self, env: Any, changes: Mapping[str, Any]) -> None:
        self._env = env
        vars(self).update(changes)

    def __getattr__(self, name: str) -> Any:
        if name == "_env":  # while it is copied there is none yet
            raise AttributeError(name)
        return getattr(self._env, name)


class VectorWrapper(VectorProxy):
    """A vector environment around another one: all that a subclass does not change is that of ``vecenv``.

    A subclass defines ``transform``, which puts arrays of its own into the transitions of each batch, or
    ``transform_actions``. To ``isinstance`` it is also what it wraps.

    Args:
        vecenv: Of ``pufferlib.vector.make``, on any backend, native or wrapped.

    Attributes:
        transitions: Of the last batch.

    Raises:
        APIUsageError: ``vecenv`` is something else.
    """

    transitions: Transitions

    def __init__(self, vecenv: Any) -> None:
        if not isinstance(vecenv, VectorEnv) and not (isinstance(vecenv, PufferEnv) and not vecenv.emulated):
            raise APIUsageError(
                f"{type(self).__name__}: vecenv must be what pufferlib.vector.make returns, got "
                f"{type(vecenv).__name__}; make a batch even of one environment, "
                "pufferlib.vector.make(creator, backend='Serial'), and wrap it before to_gymnasium or to_sb3"
            )
        super().__init__(vecenv)
        self._is_training = True
        self._changes: dict[str, Any] = {}  # of driver_env
        # Those outside follow the account of the innermost.
        self._tracker: EpisodeTracker | None = None if _is_wrapper(vecenv) else EpisodeTracker(vecenv)

    def transform(self, transitions: Transitions) -> None:
        """Transform a batch that was received, in place; those whose arrays it gets are overwritten by the next."""

    def transform_actions(self, actions: Any) -> Any:
        """Return what the environments are sent instead of ``actions``."""
        return actions

    def _settings(self) -> dict[str, Any]:
        """Arguments on which the meaning of the state depends, as numbers or arrays."""
        return {}

    def _state(self) -> dict[str, Any]:
        """Statistics that are saved, as numbers or arrays of fixed shapes."""
        return {}

    def _load(self, state: Mapping[str, Array]) -> None:
        """Take the statistics of ``_state``."""

    def _episode_arrays(self) -> dict[str, Array] | None:
        """Arrays, as they are used, that change with the episodes in progress; None: there is more to those."""
        return None

    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        """Start new episodes, as ``VectorEnv.reset`` does."""
        observations, infos = self.vecenv.reset(seed, **others)
        if self._tracker is None:
            found = self._finish(self.vecenv.transitions)
        else:
            inner, env_ids = self.vecenv, others.get("env_ids")
            flags = inner.rewards, inner.terminals, inner.truncations
            received = (observations, *flags, infos, inner.agent_ids, inner.masks)
            if env_ids is None:
                self._tracker.reset()
                found = self._finish(self._tracker.after(received))
            else:
                found = self._finish(self._tracker.after_reset_of(_agents_of(inner, env_ids), received))
        return found.observations, found.infos

    def step(self, actions: Any) -> Stepped:
        """Act once with every agent of the last batch."""
        outcome = self.vecenv.step(self.transform_actions(actions))
        if self._tracker is None:
            found = self._finish(self.vecenv.transitions)
        else:
            found = self._finish(self._tracker.after((*outcome, self.vecenv.agent_ids, self.vecenv.masks)))
        return found.observations, found.rewards, found.terminals, found.truncations, found.infos

    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        """Start new episodes; ``recv`` returns their first observations."""
        self.vecenv.async_reset(seed, *options, **more)
        if self._tracker is not None:
            self._tracker.reset()

    def send(self, actions: Any) -> None:
        """Act once with every agent of the last batch; ``recv`` returns what comes of it, or another batch."""
        self.vecenv.send(self.transform_actions(actions))

    def recv(self) -> Received:
        """The next batch."""
        received = self.vecenv.recv()
        found = self._finish(self.vecenv.transitions if self._tracker is None else self._tracker.after(received))
        ends = found.terminals, found.truncations
        return found.observations, found.rewards, *ends, found.infos, found.agent_ids, found.masks

    def _finish(self, transitions: Transitions) -> Transitions:
        self.transform(transitions)
        self.transitions = transitions
        return transitions

    def get_attr(self, name: str, *env_ids: Any, **more: Any) -> list[Any]:
        """Return an attribute of environments; instead of their ``observation_space`` what becomes of it here."""
        values: list[Any] = self.vecenv.get_attr(name, *env_ids, **more)
        return [self._seen_space(value) for value in values] if name == "observation_space" else values

    def _seen_space(self, space: Any) -> Any:
        """An environment's own observation space, nested as it is, after this wrapper."""
        return space

    @property
    def driver_env(self) -> Any:
        """One environment, as it is seen through the wrappers."""
        driver = self.vecenv.driver_env
        return EnvView(driver, self._changes) if self._changes else driver

    def _show(self, space: Box, emulated: Any, **changes: Any) -> None:
        """From now on, have other observations, and arrays for them.

        Args:
            space: Of one agent.
            emulated: Their dtypes and bounds, as emulated environments have them; of others False.
            **changes: Other attributes of ``driver_env``.
        """
        rows = self.vecenv.agents_per_batch
        self.single_observation_space, self.emulated = space, emulated
        self.observation_space = joint_space(space, rows)
        self.observations = np.zeros((rows, *space.shape), space.dtype)
        self.final_observations = np.zeros_like(self.observations)
        if emulated:
            changes["obs_dtype"] = emulated["emulated_observation_dtype"].base
        self._changes |= {
            "single_observation_space": space,
            "observation_space": joint_space(space, int(self.vecenv.driver_env.num_agents)),
            "emulated": emulated,
            **changes,
        }

    def _take_actions(self, space: Space) -> None:
        """From now on, take other actions: of ``space``, one agent's."""
        self.single_action_space = space
        self.action_space = joint_space(space, self.vecenv.agents_per_batch)
        driver_space = joint_space(space, int(self.vecenv.driver_env.num_agents))
        self._changes |= {"single_action_space": space, "action_space": driver_space}

    @property
    def training(self) -> bool:
        """True if statistics learn from what passes; setting it sets it for the wrappers inside as well."""
        return self._is_training

    @training.setter
    def training(self, is_training: bool) -> None:
        for wrapper in self._stack():
            wrapper._is_training = bool(is_training)

    def state_dict(self) -> dict[str, Array]:
        """Statistics and settings of this wrapper and those inside, as arrays: for ``numpy.savez`` or safetensors.

        Keys are ``<place>.<class>.<name>``; the innermost wrapper has place 0.
        """
        return {
            f"{place}.{type(wrapper).__name__}.{name}": np.array(value)
            for place, wrapper in enumerate(self._stack())
            for name, value in {**wrapper._settings(), **wrapper._state()}.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take the statistics of ``state_dict``, of the same wrappers around the same spaces.

        Raises:
            APIUsageError: They are of other wrappers, spaces or settings; nothing is changed then.
        """
        stack = self._stack()
        given = {key: np.array(value) for key, value in state.items()}
        _check_state(self.state_dict(), given, stack)
        for place, wrapper in enumerate(stack):
            start = f"{place}.{type(wrapper).__name__}."
            wrapper._load({name: given[start + name] for name in wrapper._state()})

    def episode_arrays(self) -> dict[str, Array] | None:
        """Arrays that say where the wrappers are in the episodes in progress.

        They are those in use: who lets the environments go on from states saved before writes into them what they held
        then. Keys are those of ``state_dict``.

        Returns:
            None if one of the wrappers has more than arrays, like a video.
        """
        found: dict[str, Array] = {}
        for place, wrapper in enumerate(self._stack()):
            arrays = wrapper._episode_arrays()
            if arrays is None:
                return None
            if wrapper._tracker is not None:
                arrays = {**arrays, "idle": wrapper._tracker.idle}
            found |= {f"{place}.{type(wrapper).__name__}.{name}": array for name, array in arrays.items()}
        return found

    def _stack(self) -> list["VectorWrapper"]:
        """This wrapper and those inside, the innermost first."""
        inside = self.vecenv._stack() if _is_wrapper(self.vecenv) else []
        return [*inside, self]


def _is_wrapper(vecenv: object) -> bool:
    return isinstance(vecenv, VectorWrapper)


def _agents_of(vecenv: Any, env_ids: Any) -> Array:
    """Agents of the environments ``env_ids``, int64."""
    chosen = np.array(check_env_ids("reset", env_ids, vecenv.num_envs), np.int64)
    each = vecenv.num_agents // vecenv.num_envs
    agents: Array = (chosen[:, None] * each + np.arange(each)).ravel()
    return agents


def _check_state(expected: Mapping[str, Array], given: Mapping[str, Array], stack: list[VectorWrapper]) -> None:
    """Raise APIUsageError unless ``given`` is a state of the wrappers ``stack``, whose own is ``expected``."""
    where = "load_state_dict"
    if expected.keys() != given.keys():
        raise APIUsageError(
            f"{where}: the state must be of {_named(expected)}, got that of {_named(given)}, which differs in "
            f"{min(expected.keys() ^ given.keys())}; wrap the environments as they were when it was saved"
        )
    for key, value in expected.items():
        place, _, name = key.split(".", 2)
        got = given[key]
        if got.shape != value.shape:
            raise APIUsageError(
                f"{where}: {key} must have the shape {value.shape}, got {got.shape}; the spaces and arguments must be "
                "those with which it was saved"
            )
        if name in stack[int(place)]._settings() and not np.array_equal(got, value):
            raise APIUsageError(
                f"{where}: {key} must be {value.tolist()!r:.80}, got {got.tolist()!r:.80}; wrap the environments as "
                "they were when it was saved"
            )


def _named(state: Mapping[str, Any]) -> str:
    """The wrappers that a state is of, in words."""
    names = dict.fromkeys(".".join(key.split(".")[:2]) for key in state)
    return ", ".join(names) or "no wrapper"
