"""Common interface of all vectorization backends."""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array, Buffers, slice_rows
from pufferlib.env import (
    AutoresetLike,
    AutoresetMode,
    EnvIds,
    Infos,
    PufferEnv,
    Received,
    Seeds,
    Stepped,
    check_env_ids,
    env_seeds,
    per_env,
)
from pufferlib.errors import APIUsageError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.spaces import Space, joint_space
from pufferlib.vector.arguments import Cores, Count, Creators, EnvArgs, EnvKwargs, vector_spec
from pufferlib.vector.calls import EnvCall, Raised
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import EnvDescription, InfoSource, OnCrash, VectorSpec

__all__ = ["Batch", "Options", "VectorEnv"]

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None


class Batch:
    """Rows returned by one call of ``recv``.

    Args:
        buffers: Arrays of these rows, by name.
        agent_ids: Agent index of each row, int64 ``(agents_per_batch,)``.
    """

    def __init__(self, buffers: Buffers, agent_ids: npt.NDArray[np.int64]) -> None:
        self.buffers = buffers
        self.agent_ids = agent_ids
        self.outcome = buffers["observations"], buffers["rewards"], buffers["terminals"], buffers["truncations"]

    @classmethod
    def block(cls, buffers: Buffers, start: int, stop: int) -> "Batch":
        """Return a batch that views the rows of agents ``start`` to ``stop``."""
        return cls(slice_rows(buffers, start, stop), np.arange(start, stop))


class VectorEnv(ABC):
    """Many environments behind the interface of one.

    The synchronous interface is ``reset`` and ``step``. The asynchronous interface is ``async_reset``, followed by
    ``recv`` and ``send`` in turns. With ``batch_size < num_envs``, each ``recv`` returns a different subset of the
    environments, and ``agent_ids`` holds the agents of its rows. The next ``send`` takes actions for exactly this
    subset. The other environments keep running meanwhile.

    All returned arrays are views. From the next ``send``, ``step`` or reset on, they may change at any time. Copy what
    you want to keep before that call.

    Args:
        env_creators: Class or function that creates an environment, or a list with one per environment. This and the
            following arguments are documented in ``pufferlib.vector.make``.
        env_args: Positional arguments of the creator. A list of such lists if ``env_creators`` is a list.
        env_kwargs: Keyword arguments of the creator. A list of such dicts if ``env_creators`` is a list.
        num_envs: Number of environments.
        seed: Base seed. Environment i gets ``env_seed(seed, i)``.
        num_workers: Number of worker processes. "auto" or None uses the largest divisor of ``num_envs`` up to the
            number of usable cores, or fewer if ``batch_size`` requires it.
        batch_size: Number of environments per ``recv``. None for all of them, "auto" for the largest valid number up to
            half of them, or all if there is none.
        zero_copy: If True, a batch is a block of adjacent rows. If False, it holds the environments that finish first.
        overwork: Allow more workers than usable cores.
        autoreset: Autoreset mode. None uses the default of the environment.
        timeout_s: Time limit in seconds for one environment in a worker. None disables it.
        on_crash: "raise" an error, or "restart" what failed.
        hide_output: Discard the output that environments print.

    Attributes:
        driver_env: First environment, or a description of it if it lives in a worker.
        single_observation_space: Observation space of one agent.
        single_action_space: Action space of one agent.
        observation_space: Joint observation space of the agents of one batch.
        action_space: Joint action space of the agents of one batch.
        num_envs: Number of environments.
        num_agents: Number of agents in all environments together.
        agents_per_batch: Number of rows that one ``recv`` returns.
        emulated: Description of how emulation flattened the spaces, or False for native environments.
        autoreset: Behavior after an episode ends. "next_step": the next step resets the environment, ignores its
            actions and has reward 0. "same_step": the step already returns the first observation of the next
            episode, and ``final_observations`` holds the last one. "disabled": nothing until you call ``reset``.
    """

    single_observation_space: Box
    single_action_space: Space
    observation_space: Space
    action_space: Space
    num_envs: int
    num_agents: int
    agents_per_batch: int
    driver_env: PufferEnv | EnvDescription
    emulated: Any
    autoreset: AutoresetMode

    _cores: ClassVar[Cores | None] = Cores(usable_cpus, "usable cores")
    _restarts: Restarts | None = None

    def __init__(
        self,
        env_creators: Creators,
        env_args: EnvArgs = None,
        env_kwargs: EnvKwargs = None,
        num_envs: int = 1,
        *,
        seed: int = 0,
        num_workers: Count = None,
        batch_size: Count = None,
        zero_copy: bool = True,
        overwork: bool = False,
        autoreset: AutoresetLike | None = None,
        timeout_s: float | None = 120.0,
        on_crash: OnCrash = "raise",
        hide_output: bool = False,
    ) -> None:
        options = {
            "num_workers": num_workers,
            "batch_size": batch_size,
            "zero_copy": zero_copy,
            "overwork": overwork,
            "autoreset": autoreset,
            "timeout_s": timeout_s,
            "on_crash": on_crash,
            "hide_output": hide_output,
        }
        self._start(vector_spec(env_creators, env_args, env_kwargs, num_envs, seed, options, self._cores))

    def _set_attributes(self, spec: VectorSpec, driver: PufferEnv | EnvDescription, about: EnvDescription) -> None:
        """Set the public attributes after the environments were created."""
        self.driver_env = driver
        self.single_observation_space = about.single_observation_space
        self.single_action_space = about.single_action_space
        self.num_envs = len(spec.envs)
        self.num_agents = about.num_agents * self.num_envs
        self.agents_per_batch = about.num_agents * spec.batch_size
        self.observation_space = joint_space(self.single_observation_space, self.agents_per_batch)
        self.action_space = joint_space(self.single_action_space, self.agents_per_batch)
        self.emulated = about.emulated
        self.autoreset = about.autoreset
        self._check_actions = ActionCheck(
            f"{type(self).__name__}.send", self.single_action_space, self.agents_per_batch
        )
        self._first_seed: int | None = spec.seed
        self._batch: Batch | None = None
        self._next_call = "async_reset"

    def reset(self, seed: Seeds = None, *, options: Options = None, env_ids: EnvIds = None) -> tuple[Array, Infos]:
        """Start new episodes in all environments, or in some of them.

        Args:
            seed: Base seed, from which environment i gets ``env_seed(seed, i)``, or a list or array with one seed for
                each environment to reset. With None, the first call uses the seed given to ``make``. Later calls pass
                no seed, so each environment continues its own random stream.
            options: Dict passed to each environment's ``reset`` as ``options``, or a list with one per environment.
            env_ids: Environments to reset, as indices or a boolean mask ``(num_envs,)``. They must belong to the last
                batch. The other environments are unchanged. None for all.

        Returns:
            observations ``(agents_per_batch, *shape)`` and a list of info dicts.

        Raises:
            APIUsageError: ``env_ids`` is given before the first batch or is not part of the last batch, or ``seed`` or
                ``options`` is invalid.
        """
        if env_ids is not None:
            return self._reset_these(seed, options, env_ids)
        self.async_reset(seed, options)
        observations, _, _, _, infos, _, _ = self.recv()
        return observations, infos

    def step(self, actions: Any) -> Stepped:
        """Take one step with every agent of the last batch.

        Args:
            actions: List or array ``(agents_per_batch, *action_shape)`` of any integer type, or of the dtype of a Box.

        Returns:
            observations ``(agents_per_batch, *shape)``, rewards float32, terminals and truncations
            bool, each ``(agents_per_batch,)``, and a list of info dicts. With ``batch_size < num_envs``, they belong to
            the next batch, usually of other environments.

        Raises:
            APIUsageError: The environments were not reset, or the actions do not fit the action space.
            WorkerError: An environment failed. See ``recv``.
        """
        # send and recv are inlined: two more calls would double the overhead of this method.
        if self._next_call != "send":
            raise self._order_error("send")
        array = self._check_actions(actions)
        self._next_call = "async_reset"
        self._send(array)
        if self._next_call != "async_reset":
            raise self._order_error("recv")
        self._next_call = "recv"
        batch, infos = self._recv()
        self._batch = batch
        if self._next_call == "recv":
            self._next_call = "send"
        observations, rewards, terminals, truncations = batch.outcome
        return observations, rewards, terminals, truncations, infos

    def async_reset(self, seed: Seeds = None, options: Options = None) -> None:
        """Start new episodes in all environments, without waiting. See ``reset`` for the arguments.

        ``recv`` returns the first observations.
        """
        where = f"{type(self).__name__}.async_reset"
        if self._next_call in _ENDED:
            raise self._order_error("async_reset")
        seeds = env_seeds(where, self._first_seed if seed is None else seed, range(self.num_envs))
        each = None if options is None else _each_option(where, options, self.num_envs)
        self._first_seed = None
        self._next_call = "async_reset"
        self._reset(seeds, each)
        if self._next_call == "async_reset":  # an environment or a signal handler may have closed this object
            self._next_call = "recv"

    def send(self, actions: Any) -> None:
        """Start one step with every agent of the last batch, without waiting.

        The next ``recv`` returns its outcome, or another batch. The arrays of the last batch may change from now on, so
        copy or store them before this call.

        Raises:
            APIUsageError: Another call must come first, or the actions do not fit the action space.
        """
        if self._next_call != "send":
            raise self._order_error("send")
        array = self._check_actions(actions)
        self._next_call = "async_reset"  # until this succeeds
        self._send(array)
        if self._next_call == "async_reset":
            self._next_call = "recv"

    def recv(self) -> Received:
        """Wait for the next batch and return it.

        The arrays are views, which may change at any time after the next ``send``. Copy or store them before it.

        Returns:
            observations ``(agents_per_batch, *shape)``, rewards float32, terminals and truncations bool, infos (a
            list of dicts), agent ids int64 and masks bool. All except the infos have ``agents_per_batch`` rows. A
            mask is False for an absent agent, whose next action is ignored.

            Infos are in the order of the rows, without empty ones. ``info_sources`` holds the environment of each. A
            native environment can return any number of infos. An emulated environment returns one info for each step
            and one for each reset. With "same_step" both can be in the same batch. For PettingZoo environments an
            info is a dict from agent to info.

        Raises:
            APIUsageError: Nothing was sent since the last ``recv``.
            WorkerError: An environment in a worker failed or exceeded ``timeout_s``, or its process died. ``Serial``
                steps in ``send`` and raises the environment's own exception there.
        """
        batch, infos = self._take()
        return (*batch.outcome, infos, batch.agent_ids, batch.buffers["masks"])

    def _reset_these(self, seed: Seeds, options: Options, env_ids: EnvIds) -> tuple[Array, Infos]:
        where = f"{type(self).__name__}.reset"
        if self._next_call != "send":
            raise self._order_error("reset of some environments")
        chosen = self._check_idle(where, check_env_ids(where, env_ids, self.num_envs))
        values = () if options is None else _each_option(where, options, len(chosen))
        calls = self._calls("reset", "reset", chosen, values=values, seeds=env_seeds(where, seed, chosen))
        self._next_call = "async_reset"  # until this succeeds
        self._batch, infos = self._reset_some(calls)
        self._next_call = "send"
        return self._batch.outcome[0], infos

    def call(self, name: str, /, *args: Any, env_ids: EnvIds = None, **kwargs: Any) -> list[Any]:
        """Call a method of the environments that you wrote. No step may be running in them.

        Without arguments, an attribute that is not callable is returned instead.

        Args:
            name: Name of the method to call.
            *args: Positional arguments of the method.
            env_ids: Environments to call, as indices or a boolean mask. None for all.
            **kwargs: Keyword arguments of the method.

        Returns:
            Results, in the order of ``env_ids``.

        Raises:
            APIUsageError: A step is running in one of the environments.
            WorkerError: A worker died or exceeded ``timeout_s``. All workers are then stopped, even with
                ``on_crash="restart"``.
            Exception: First exception raised by an environment. All environments are called before it is raised.
        """
        return self._call_envs("call", name, env_ids, args=args, kwargs=kwargs)

    def get_attr(self, name: str, env_ids: EnvIds = None) -> list[Any]:
        """Return an attribute of environments. See ``call`` for the arguments and errors."""
        return self._call_envs("get_attr", name, env_ids)

    def set_attr(self, name: str, values: Any, env_ids: EnvIds = None) -> None:
        """Set an attribute of environments. See ``call`` for the errors.

        Args:
            name: Name of the attribute.
            values: List or tuple with one value for each environment. Any other value is set in all of them.
            env_ids: Environments to change, as indices or a boolean mask. None for all.
        """
        self._call_envs("set_attr", name, env_ids, values=values)

    def render(self, env_index: int = 0) -> Any:
        """Return what ``render`` of one environment returns, such as an image. See ``call`` for the errors.

        Args:
            env_index: Index of the environment.
        """
        return self.call("render", env_ids=[env_index])[0]

    def wrapper_names(self, env_ids: EnvIds = None) -> list[list[str]]:
        """Return the classes of the ``gymnasium.Wrapper`` objects around environments.

        Args:
            env_ids: Environments, as indices or a boolean mask. None for all.

        Returns:
            Names ``"module.Class"`` of the wrapper classes and their base classes, one list per environment.
        """
        return self._call_envs("wrapper_names", "", env_ids, kind="wrappers")

    def save_state(self, env_ids: EnvIds = None, *, allow_pickle: bool = True) -> list[bytes]:
        """Return the states of environments as bytes, to be restored with ``load_state``.

        Args:
            env_ids: Environments to save, as indices or a boolean mask. None for all.
            allow_pickle: Pickle emulated environments whose state is not plain data. See
                ``GymnasiumPufferEnv.save_state``.

        Raises:
            APIUsageError: A state cannot be saved, nothing was reset yet, or a step is running in one of them.
        """
        self._check_was_reset("save_state")
        return self._call_envs("save_state", "", env_ids, kind="save", kwargs={"allow_pickle": allow_pickle})

    def load_state(
        self, states: bytes | Sequence[bytes], env_ids: EnvIds = None, *, allow_pickle: bool = False
    ) -> Array:
        """Restore environments from states of ``save_state``, possibly from another process.

        Args:
            states: One state for each environment. For a single environment, the bytes alone are accepted.
            env_ids: Environments to restore, as indices or a boolean mask. None for all.
            allow_pickle: Also load pickles, which can execute arbitrary code. Use it only for states that you trust.

        Returns:
            observations of the last batch ``(agents_per_batch, *shape)`` after the states were restored.

        Raises:
            APIUsageError: A state is damaged, is a pickle although ``allow_pickle`` is False, or comes from a
                different environment, version or setting. Also raised if nothing was reset yet, or if a step is
                running in one of the environments.
        """
        self._check_was_reset("load_state")
        where = f"{type(self).__name__}.load_state"
        count = len(check_env_ids(where, env_ids, self.num_envs))
        if not isinstance(states, Sequence):
            raise APIUsageError(
                f"{where}: states must be a list of what save_state returned, got {states!r:.80}; give one state for "
                "each environment, or the bytes of one"
            )
        values = per_env(where, "states", [states] if isinstance(states, bytes) else states, count, is_one=False)
        self._call_envs("load_state", "", env_ids, kind="load", values=values, kwargs={"allow_pickle": allow_pickle})
        self._batch = self._current_batch()
        return self._batch.outcome[0]

    def _check_was_reset(self, call: str) -> None:
        if self._batch is None and self._next_call not in _ENDED:
            raise APIUsageError(f"{type(self).__name__}.{call}: no episode has begun; call reset first")

    def _call_envs(
        self, where: str, name: str, env_ids: EnvIds, values: Any = (), kind: str | None = None, **arguments: Any
    ) -> list[Any]:
        kind = kind or where.removesuffix("_attr")
        if self._next_call in _ENDED or self._next_call == "recv":
            raise self._order_error(where)
        where = f"{type(self).__name__}.{where}"
        chosen = self._check_idle(where, check_env_ids(where, env_ids, self.num_envs))
        if kind == "set":
            values = per_env(where, "values", values, len(chosen), is_one=not isinstance(values, list | tuple))
        calls = self._calls(kind, name, chosen, values=values, **arguments)
        before, self._next_call = self._next_call, "async_reset"  # until this succeeds
        results = self._perform(calls)
        self._next_call = before
        size = self._envs_per_runner
        found = {
            group * size + position: result
            for group, call in calls.items()
            for position, result in zip(call.positions, results[group], strict=True)
        }
        for env_id, result in found.items():
            if isinstance(result, Raised):
                raise result.error(where, env_id)
        return [found[env_id] for env_id in chosen]

    def _calls(
        self, kind: Any, name: str, env_ids: Sequence[int], values: Sequence[Any] = (), seeds: Any = (), **more: Any
    ) -> dict[int, EnvCall]:
        """Group a call for ``env_ids`` into one call for each runner that has some of them."""
        places: dict[int, list[int]] = {}
        for place, env_id in enumerate(env_ids):
            places.setdefault(env_id // self._envs_per_runner, []).append(place)
        return {
            group: EnvCall(
                kind,
                tuple(env_ids[place] % self._envs_per_runner for place in mine),
                name,
                values=[values[place] for place in mine] if values else (),
                seeds=[seeds[place] for place in mine] if seeds else (),
                **more,
            )
            for group, mine in places.items()
        }

    def _check_idle(self, where: str, env_ids: list[int]) -> list[int]:
        idle = self._idle_envs()
        busy = [env_id for env_id in env_ids if env_id not in idle]
        if busy:
            raise APIUsageError(
                f"{where}: env_ids must be environments that are not running a step, which are those of the last "
                f"batch, got {sorted(busy)[:8]}; give env_ids=[...] of the batch, and the others after the recv that "
                "returns them"
            )
        return env_ids

    def _take(self) -> tuple[Batch, Infos]:
        if self._next_call != "recv":
            raise self._order_error("recv")
        batch, infos = self._recv()
        self._batch = batch
        if self._next_call == "recv":
            self._next_call = "send"
        return batch, infos

    def notify(self) -> None:
        """Call ``notify()`` of each environment before its next step or reset.

        This method may be called at any time before ``close``. An environment that is being stepped may be notified one
        step later.
        """
        if self._next_call in _ENDED:
            raise self._order_error("notify")
        self._notify()

    def close(self) -> None:
        """Close all environments and stop all workers. A second call does nothing.

        Raises:
            Exception: First exception raised by an environment. All environments are closed before it is raised.
        """
        if self._next_call != "close":
            self._next_call = "close"
            self._close()

    def __reduce__(self) -> NoReturn:
        raise APIUsageError(
            f"{type(self).__name__}: a vector environment must stay in the process that made it, got a call to copy or "
            "pickle it; make another with pufferlib.vector.make, and copy states with save_state and load_state"
        )

    def _repr_html_(self) -> str:
        """Show the spaces in a notebook."""
        from pufferlib.render.html import describe_env

        return describe_env(self)

    def __enter__(self) -> "VectorEnv":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _row(name: str, meaning: str) -> Any:  # type: ignore[misc]  # noqa: N805 - makes properties, below
        def get(self: "VectorEnv") -> Array:
            if self._batch is None:
                raise APIUsageError(f"{type(self).__name__}.{name}: there is no batch yet; call reset or recv first")
            return self._batch.buffers[name]

        return property(get, doc=f"{meaning}, of the last batch.")

    observations = _row("observations", "Observations ``(agents_per_batch, *shape)``")
    final_observations = _row("final_observations", 'Last observations of ended episodes, with autoreset "same_step"')
    actions = _row("actions", "Actions last sent")
    rewards = _row("rewards", "Rewards, float32")
    terminals = _row("terminals", "Whether an agent's task ended")
    truncations = _row("truncations", "Whether an agent's episode was cut off")
    masks = _row("masks", "Whether an agent is present")
    del _row

    @property
    @abstractmethod
    def info_sources(self) -> list[InfoSource]:
        """``InfoSource(env_id, kind)`` for each info of the last batch."""

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers, each on its own machine. Empty without workers, and after they have stopped."""
        return []

    @property
    def worker_restarts(self) -> int:
        """Number of workers (``Serial``: environments) replaced so far with ``on_crash="restart"``."""
        return 0 if self._restarts is None else self._restarts.total

    @property
    def agent_ids(self) -> npt.NDArray[np.int64]:
        """Agent index of each row of the last batch."""
        if self._batch is None:
            raise APIUsageError(f"{type(self).__name__}.agent_ids: there is no batch yet; call reset or recv first")
        return self._batch.agent_ids

    def _order_error(self, call: str) -> APIUsageError:
        where = f"{type(self).__name__}.{call}"
        if self._next_call in _ENDED:
            return APIUsageError(f"{where}: {_ENDED[self._next_call]}")
        return APIUsageError(f"{where}: the next call must be {self._next_call}, got {call}; {_ORDER}")

    @abstractmethod
    def _start(self, spec: VectorSpec) -> None:
        """Create the environments, then call ``_set_attributes``."""

    @abstractmethod
    def _reset(self, seeds: list[int | None], options: list[Any] | None) -> None:
        """Start resets with one seed per environment. Wait for running steps and discard their results."""

    @property
    @abstractmethod
    def _envs_per_runner(self) -> int:
        """Number of environments of one ``EnvRunner``."""

    @abstractmethod
    def _idle_envs(self) -> Container[int]:
        """Return the environments that are not running a step."""

    @abstractmethod
    def _perform(self, calls: Mapping[int, EnvCall]) -> dict[int, list[Any]]:
        """Perform the call of each runner, by its index, and return the results by index."""

    @abstractmethod
    def _reset_some(self, calls: Mapping[int, EnvCall]) -> tuple[Batch, Infos]:
        """Perform resets in the last batch. Return the batch and the infos."""

    def _current_batch(self) -> Batch:
        """Return the last batch with the current rows."""
        assert self._batch is not None
        return self._batch

    @abstractmethod
    def _send(self, actions: Array) -> None:
        """Start a step of the last batch."""

    @abstractmethod
    def _recv(self) -> tuple[Batch, Infos]:
        """Wait for the next batch."""

    @abstractmethod
    def _notify(self) -> None:
        """Request a notification of all environments before their next step or reset."""

    @abstractmethod
    def _close(self) -> None:
        """Close the environments. Called once."""


def _each_option(where: str, options: object, count: int) -> list[Any]:
    if not isinstance(options, Mapping | Sequence) or isinstance(options, str):
        raise APIUsageError(f"{where}: options must be a dict, or a list of one for each environment, got {options!r}")
    return per_env(where, "options", options, count, is_one=isinstance(options, Mapping))


_ORDER = "call async_reset (or reset) first, then recv and send in turns (or step)"

# Why there can be no next call, by the value of `_next_call`.
_ENDED = {
    "close": "the environments are closed; make new ones with pufferlib.vector.make",
    "make": "the workers were ended by an earlier error; make new environments",
    "leave": "the environments belong to the process that this one was forked from; make new ones in this process",
}
