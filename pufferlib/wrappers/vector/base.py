"""Base class of the wrappers around vector environments."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box

from pufferlib.buffers import Array
from pufferlib.env import EnvIds, Infos, PufferEnv, Received, Stepped, check_env_ids
from pufferlib.errors import APIUsageError
from pufferlib.spaces import Space, joint_space
from pufferlib.vector.proxy import AnyVectorEnv, VectorProxy
from pufferlib.vector.vector_env import VectorEnv
from pufferlib.wrappers.vector.transitions import EpisodeTracker, Transitions

__all__ = ["EnvView", "VectorWrapper"]


class EnvView:
    """View of one environment with the attributes that wrappers change.

    Args:
        env: Environment, or a description of it.
        changes: Changed attributes, from name to value.
    """

    def __init__(self, env: Any, changes: Mapping[str, Any]) -> None:
        self._env = env
        vars(self).update(changes)

    def __getattr__(self, name: str) -> Any:
        if name == "_env":  # not set yet while the object is copied
            raise AttributeError(name)
        return getattr(self._env, name)

    @property
    def driver_env(self) -> "EnvView":
        """This view, and not the environment without the changes."""
        return self


class VectorWrapper(VectorProxy):
    """Base class of wrappers. Everything that a subclass does not define is forwarded to ``vecenv``.

    A subclass defines ``transform``, which replaces arrays in the transitions of each batch, or ``transform_actions``.
    ``isinstance`` also accepts a wrapper as an instance of the class of ``vecenv``.

    Args:
        vecenv: Vector environment of ``pufferlib.vector.make`` with any backend, native or wrapped.

    Attributes:
        transitions: Transitions of the last batch.

    Raises:
        APIUsageError: ``vecenv`` is not a vector environment.
    """

    transitions: Transitions

    def __init__(self, vecenv: AnyVectorEnv) -> None:
        if not isinstance(vecenv, VectorEnv) and not (isinstance(vecenv, PufferEnv) and not vecenv.emulated):
            raise APIUsageError(
                f"{type(self).__name__}: vecenv must be what pufferlib.vector.make returns, got "
                f"{type(vecenv).__name__}; make a batch even of one environment, "
                "pufferlib.vector.make(creator, backend='Serial'), and wrap it before to_gymnasium or to_sb3"
            )
        super().__init__(vecenv)
        self._is_training = True
        self._changes: dict[str, Any] = {}  # changed attributes of driver_env
        # Only the innermost wrapper tracks episodes. The others use its transitions.
        self._tracker: EpisodeTracker | None = None if _is_wrapper(vecenv) else EpisodeTracker(vecenv)

    def transform(self, transitions: Transitions) -> None:
        """Transform a received batch by replacing arrays. Arrays may be overwritten by the next batch."""

    def transform_actions(self, actions: Any) -> Any:
        """Return the actions to send to the environments instead of ``actions``."""
        return actions

    def _settings(self) -> dict[str, Any]:
        """Return the settings that a saved state depends on, as numbers or arrays."""
        return {}

    def _state(self) -> dict[str, Any]:
        """Return the statistics to save, as numbers or arrays of fixed shapes."""
        return {}

    def _load(self, state: Mapping[str, Array]) -> None:
        """Restore the statistics of ``_state``."""

    def _episode_arrays(self) -> dict[str, Array] | None:
        """Return the arrays, not copies, that hold the state of running episodes. None if there is other state too."""
        return None

    def reset(self, seed: Any = None, **others: Any) -> tuple[Array, Infos]:
        """Start new episodes. See ``VectorEnv.reset``."""
        observations, infos = self.vecenv.reset(seed, **others)
        found = self._begin(observations, infos, others.get("env_ids"))
        return found.observations, found.infos

    def load_state(self, states: bytes | Sequence[bytes], env_ids: EnvIds = None, **others: Any) -> Array:
        """Restore environments. See ``VectorEnv.load_state``.

        The states contain nothing of the wrappers, for which new episodes start. To continue their episodes too, write
        into ``episode_arrays`` afterwards.
        """
        observations = self.vecenv.load_state(states, env_ids, **others)
        return self._begin(observations, [], range(self.vecenv.num_envs) if env_ids is None else env_ids).observations

    def _begin(self, observations: Array, infos: Infos, env_ids: EnvIds) -> Transitions:
        """Return the transitions after new episodes started in all environments, or in ``env_ids``."""
        if self._tracker is None:
            return self._finish(self.vecenv.transitions)
        inner = self.vecenv
        flags = inner.rewards, inner.terminals, inner.truncations
        received = (observations, *flags, infos, inner.agent_ids, inner.masks)
        if env_ids is None:
            self._tracker.reset()
            return self._finish(self._tracker.after(received))
        return self._finish(self._tracker.after_reset_of(_agents_of(inner, env_ids), received))

    def step(self, actions: Any) -> Stepped:
        """Take one step with every agent of the last batch."""
        outcome = self.vecenv.step(self.transform_actions(actions))
        if self._tracker is None:
            found = self._finish(self.vecenv.transitions)
        else:
            found = self._finish(self._tracker.after((*outcome, self.vecenv.agent_ids, self.vecenv.masks)))
        return found.observations, found.rewards, found.terminals, found.truncations, found.infos

    def async_reset(self, seed: Any = None, *options: Any, **more: Any) -> None:
        """Start new episodes. ``recv`` returns the first observations."""
        self.vecenv.async_reset(seed, *options, **more)
        if self._tracker is not None:
            self._tracker.reset()

    def send(self, actions: Any) -> None:
        """Start one step with every agent of the last batch. ``recv`` returns its outcome, or another batch."""
        self.vecenv.send(self.transform_actions(actions))

    def recv(self) -> Received:
        """Wait for the next batch and return it."""
        received = self.vecenv.recv()
        found = self._finish(self.vecenv.transitions if self._tracker is None else self._tracker.after(received))
        ends = found.terminals, found.truncations
        return found.observations, found.rewards, *ends, found.infos, found.agent_ids, found.masks

    def _finish(self, transitions: Transitions) -> Transitions:
        self.transform(transitions)
        self.transitions = transitions
        return transitions

    def get_attr(self, name: str, *env_ids: Any, **more: Any) -> list[Any]:
        """Return an attribute of the environments. ``observation_space`` is returned as this wrapper changes it."""
        values: list[Any] = self.vecenv.get_attr(name, *env_ids, **more)
        return [self._converted_space(value) for value in values] if name == "observation_space" else values

    def _converted_space(self, space: Any) -> Any:
        """Return the nested observation space of an environment after this wrapper."""
        return space

    @property
    def driver_env(self) -> Any:
        """First environment, or a description of it, with the changes of the wrappers."""
        driver = self.vecenv.driver_env
        return EnvView(driver, self._changes) if self._changes else driver

    def _set_observation_space(self, space: Box, emulated: Any, **changes: Any) -> None:
        """Change the observation space and allocate arrays for it.

        Args:
            space: Observation space of one agent.
            emulated: Dtypes and bounds for emulated environments, False for native ones.
            **changes: Other changed attributes of ``driver_env``.
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

    def _set_action_space(self, space: Space) -> None:
        """Change the action space to ``space``, which is the space of one agent."""
        self.single_action_space = space
        self.action_space = joint_space(space, self.vecenv.agents_per_batch)
        driver_space = joint_space(space, int(self.vecenv.driver_env.num_agents))
        self._changes |= {"single_action_space": space, "action_space": driver_space}

    @property
    def training(self) -> bool:
        """True if statistics are updated. Setting it also sets it for all wrappers inside."""
        return self._is_training

    @training.setter
    def training(self, is_training: bool) -> None:
        for wrapper in self._stack():
            wrapper._is_training = bool(is_training)

    def state_dict(self) -> dict[str, Array]:
        """Return statistics and settings of this wrapper and those inside, for ``numpy.savez`` or safetensors.

        Values are arrays. Keys are ``<index>.<class>.<name>``, where the innermost wrapper has index 0.
        """
        return {
            f"{place}.{type(wrapper).__name__}.{name}": np.array(value)
            for place, wrapper in enumerate(self._stack())
            for name, value in {**wrapper._settings(), **wrapper._state()}.items()
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the statistics of ``state_dict``. Wrappers, settings and spaces must be the same.

        Raises:
            APIUsageError: The state is no dict, or of other wrappers, spaces or settings. In this case nothing is
                changed.
        """
        if not isinstance(state, Mapping):
            raise APIUsageError(
                f"load_state_dict: state must be a dict, got {state!r:.80}; give the one that state_dict returned"
            )
        stack = self._stack()
        given = {key: np.array(value) for key, value in state.items()}
        _check_state(self.state_dict(), given, stack)
        for place, wrapper in enumerate(stack):
            start = f"{place}.{type(wrapper).__name__}."
            wrapper._load({name: given[start + name] for name in wrapper._state()})

    def episode_arrays(self) -> dict[str, Array] | None:
        """Return the arrays that hold the wrappers' state of running episodes.

        These are the arrays themselves, not copies. When environment states are restored, write the saved values into
        them. Keys are named as in ``state_dict``.

        Returns:
            Arrays by key, or None if a wrapper does not list its arrays, such as ``RecordVideo`` or ``FrameStack``.
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
        """Return this wrapper and those inside, innermost first."""
        inside = self.vecenv._stack() if _is_wrapper(self.vecenv) else []
        return [*inside, self]


def _is_wrapper(vecenv: object) -> bool:
    return isinstance(vecenv, VectorWrapper)


def _agents_of(vecenv: Any, env_ids: Any) -> Array:
    """Return the agents of the environments ``env_ids``, int64."""
    chosen = np.array(check_env_ids("reset", env_ids, vecenv.num_envs), np.int64)
    each = vecenv.num_agents // vecenv.num_envs
    agents: Array = (chosen[:, None] * each + np.arange(each)).ravel()
    return agents


def _check_state(expected: Mapping[str, Array], given: Mapping[str, Array], stack: list[VectorWrapper]) -> None:
    """Raise APIUsageError unless ``given`` is a state of the wrappers ``stack``, whose own state is ``expected``."""
    where = "load_state_dict"
    if expected.keys() != given.keys():
        raise APIUsageError(
            f"{where}: the state must be of {_named(expected)}, got a state of {_named(given)}, which differs in "
            f"{min(expected.keys() ^ given.keys())}; wrap the environments as they were when it was saved"
        )
    for key, value in expected.items():
        place, _, name = key.split(".", 2)
        got = given[key]
        if got.shape != value.shape:
            raise APIUsageError(
                f"{where}: {key} must have the shape {value.shape}, got {got.shape}; use the same spaces and arguments "
                "as when it was saved"
            )
        if name in stack[int(place)]._settings() and not np.array_equal(got, value):
            raise APIUsageError(
                f"{where}: {key} must be {value.tolist()!r:.80}, got {got.tolist()!r:.80}; wrap the environments as "
                "they were when it was saved"
            )


def _named(state: Mapping[str, Any]) -> str:
    """Return the names of the wrappers of a state, for messages."""
    names = dict.fromkeys(".".join(key.split(".")[:2]) for key in state)
    return ", ".join(names) or "no wrapper"
