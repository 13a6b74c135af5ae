"""Interface of all backends: attributes, the order of calls, and the values that they return."""

from abc import ABC, abstractmethod
from collections.abc import Container, Mapping, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array, Buffers, slice_rows
from pufferlib.env import (
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
from pufferlib.vector.specs import Autoreset, EnvDescription, InfoSource, OnCrash, VectorSpec

__all__ = ["Batch", "Options", "VectorEnv"]

Options = Mapping[str, Any] | Sequence[Mapping[str, Any] | None] | None


class Batch:
    """Rows that one ``recv`` returns.

    Args:
        buffers: Their arrays.
        agent_ids: Which agents they belong to.
    """

    def __init__(self, buffers: Buffers, agent_ids: npt.NDArray[np.int64]) -> None:
        self.buffers = buffers
        self.agent_ids = agent_ids
        self.outcome = buffers["observations"], buffers["rewards"], buffers["terminals"], buffers["truncations"]

    @classmethod
    def block(cls, buffers: Buffers, start: int, stop: int) -> "Batch":
        """Agents ``start`` to ``stop``, in place."""
        return cls(slice_rows(buffers, start, stop), np.arange(start, stop))


class VectorEnv(ABC):
    """Many environments behind the interface of one.

    Synchronous: ``reset`` and ``step``. Asynchronous: ``async_reset``, then ``recv`` and ``send`` in
    turns. With ``batch_size < num_envs`` each ``recv`` returns another part of the environments,
    ``agent_ids`` says which, and ``send`` answers to exactly that part, while the others go on.

    All arrays are views that the environments go on writing into: copy what must outlive the next
    ``send`` (or, where batches are copied, the next ``recv``).

    Args:
        env_creators: A class or function that makes an environment, or a list with one for each
            environment. These arguments are those of ``pufferlib.vector.make``, which explains them.
        env_args: Positional arguments of the creator; with a list of creators a list of such lists.
        env_kwargs: Keyword arguments of the creator; with a list of creators a list of such dicts.
        num_envs: Environments.
        seed: Environment i gets ``env_seed(seed, i)``.
        num_workers: Processes; "auto" or None for as many as there are usable cores.
        batch_size: Environments that one ``recv`` returns; None for all, "auto" for half of them.
        zero_copy: Whether a batch is a block of neighbouring rows, or whoever is first.
        overwork: Allow more workers than usable cores.
        autoreset: What follows a finished episode; None leaves it to the kind of environment.
        timeout_s: Longest that one environment may take in a worker; None: for ever.
        on_crash: "raise" a failure, or "restart" what failed.
        hide_output: Drop what the environments print.

    Attributes:
        driver_env: What one environment is like: the first one, or a description of it.
        single_observation_space: Of one agent.
        single_action_space: Of one agent.
        observation_space: Of the agents of one batch.
        action_space: Of the agents of one batch.
        num_envs: Environments.
        num_agents: Agents in all environments together.
        agents_per_batch: Rows that one ``recv`` returns.
        emulated: False, or how emulation flattened the spaces.
        autoreset: What follows a finished episode: "next_step" (the step after it resets, ignores
            its actions and has reward 0), "same_step" (the observation is already the next
            episode's, and ``final_observations`` has the last one) or "disabled".
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
    autoreset: Autoreset

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
        autoreset: Autoreset | None = None,
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

    def _open(self, spec: VectorSpec, driver: PufferEnv | EnvDescription, about: EnvDescription) -> None:
        """Set the attributes; the environments exist by now."""
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
        """Start new episodes, everywhere or in some environments.

        Args:
            seed: Environment i gets ``env_seed(seed, i)``; of a list, with one for each that is reset, each gets its
                own. None: on the first call the seed of ``make``, later none, so that each environment goes on with
                its own random stream.
            options: Dict that the environments' ``reset`` gets as ``options``, or a list with one for each.
            env_ids: Environments of the last batch that are reset, as ints or as a mask, bool ``(num_envs,)``; the
                others stay where they are. None for all.

        Returns:
            observations ``(agents_per_batch, *shape)`` and a list of dicts.

        Raises:
            APIUsageError: There was no batch yet, or ``env_ids`` are not all of it.
        """
        if env_ids is not None:
            return self._reset_these(seed, options, env_ids)
        self.async_reset(seed, options)
        observations, _, _, _, infos, _, _ = self.recv()
        return observations, infos

    def step(self, actions: Any) -> Stepped:
        """Act once with every agent of the last batch.

        Args:
            actions: ``(agents_per_batch, *action_shape)``: list or array, any integer type, or
                the dtype of a Box.

        Returns:
            observations ``(agents_per_batch, *shape)``, rewards float32, terminals and truncations
            bool, each ``(agents_per_batch,)``, and a list of dicts.
        """
        # send and recv, written out because two calls more cost as much as the rest of this.
        if self._next_call != "send":
            raise self._out_of_turn("send")
        array = self._check_actions(actions)
        self._next_call = "async_reset"
        self._send(array)
        if self._next_call != "async_reset":
            raise self._out_of_turn("recv")
        self._next_call = "recv"
        batch, infos = self._recv()
        self._batch = batch
        if self._next_call == "recv":
            self._next_call = "send"
        observations, rewards, terminals, truncations = batch.outcome
        return observations, rewards, terminals, truncations, infos

    def async_reset(self, seed: Seeds = None, options: Options = None) -> None:
        """Start new episodes everywhere; ``recv`` returns their first observations. The arguments are ``reset``'s."""
        where = f"{type(self).__name__}.async_reset"
        if self._next_call in _ENDED:
            raise self._out_of_turn("async_reset")
        seeds = env_seeds(where, self._first_seed if seed is None else seed, range(self.num_envs))
        each = None if options is None else _each_option(where, options, self.num_envs)
        self._first_seed = None
        self._next_call = "async_reset"
        self._reset(seeds, each)
        if self._next_call == "async_reset":  # an environment, or a signal handler, may have closed us
            self._next_call = "recv"

    def send(self, actions: Any) -> None:
        """Act once with every agent of the last batch; ``recv`` returns what comes of it, or another batch."""
        if self._next_call != "send":
            raise self._out_of_turn("send")
        array = self._check_actions(actions)
        self._next_call = "async_reset"  # until this succeeds
        self._send(array)
        if self._next_call == "async_reset":
            self._next_call = "recv"

    def recv(self) -> Received:
        """The next batch.

        Returns:
            observations ``(agents_per_batch, *shape)``; rewards float32; terminals, truncations
            bool; infos, a list of dicts; agent ids int64; masks bool, False for agents that are absent,
            whose next action nobody will read: each but the infos ``(agents_per_batch,)``.

            Infos are what the environments of this batch had to say, in the order of their rows; empty ones are
            left out, and ``info_sources`` says whose each is. A native environment says of any of its agents what it
            likes; an emulated one has one info for each step, and for each reset, which with "same_step" follows
            in the same batch; of PettingZoo it is a dict by agent.

        Raises:
            WorkerError: An environment failed, or its process died.
        """
        batch, infos = self._take()
        return (*batch.outcome, infos, batch.agent_ids, batch.buffers["masks"])

    def _reset_these(self, seed: Seeds, options: Options, env_ids: EnvIds) -> tuple[Array, Infos]:
        where = f"{type(self).__name__}.reset"
        if self._next_call != "send":
            raise self._out_of_turn("reset of some environments")
        chosen = self._check_idle(where, check_env_ids(where, env_ids, self.num_envs))
        values = () if options is None else _each_option(where, options, len(chosen))
        calls = self._calls("reset", "reset", chosen, values=values, seeds=env_seeds(where, seed, chosen))
        self._next_call = "async_reset"  # until this succeeds
        self._batch, infos = self._reset_some(calls)
        self._next_call = "send"
        return self._batch.outcome[0], infos

    def call(self, name: str, /, *args: Any, env_ids: EnvIds = None, **kwargs: Any) -> list[Any]:
        """Call a method of environments, those that you wrote; not while a step is under way.

        Args:
            name: Of the method.
            *args: Its arguments.
            env_ids: Which environments, as ints or as a mask; None for all.
            **kwargs: More of its arguments.

        Returns:
            The results, in the order of ``env_ids``.

        Raises:
            APIUsageError: A step is under way in one of them.
            Exception: The first that an environment raised, as it was raised. All were called.
        """
        return self._ask("call", name, env_ids, args=args, kwargs=kwargs)

    def get_attr(self, name: str, env_ids: EnvIds = None) -> list[Any]:
        """Return an attribute of environments, as ``call`` calls a method."""
        return self._ask("get_attr", name, env_ids)

    def set_attr(self, name: str, values: Any, env_ids: EnvIds = None) -> None:
        """Set an attribute of environments, as ``call`` calls a method.

        Args:
            name: Of the attribute.
            values: A list or tuple has one for each environment; anything else is for all.
            env_ids: Which environments, as ints or as a mask; None for all.
        """
        self._ask("set_attr", name, env_ids, values=values)

    def wrapper_names(self, env_ids: EnvIds = None) -> list[list[str]]:
        """Return the classes of the ``gymnasium.Wrapper`` objects around environments.

        Args:
            env_ids: Environments, as ints or as a mask. None for all.

        Returns:
            For each environment the names ``"module.Class"`` of its wrappers' classes and of their base classes.
        """
        return self._ask("wrapper_names", "", env_ids, kind="wrappers")

    def save_state(self, env_ids: EnvIds = None, *, allow_pickle: bool = True) -> list[bytes]:
        """Return the states of environments as bytes, from which ``load_state`` lets them go on.

        Args:
            env_ids: Which environments, as ints or as a mask; None for all.
            allow_pickle: Pickle emulated environments that are no plain data; see ``GymnasiumPufferEnv.save_state``.

        Raises:
            APIUsageError: The state of one cannot be saved, nothing was reset yet, or a step is under way in one.
        """
        self._check_begun("save_state")
        return self._ask("save_state", "", env_ids, kind="save", kwargs={"allow_pickle": allow_pickle})

    def load_state(
        self, states: bytes | Sequence[bytes], env_ids: EnvIds = None, *, allow_pickle: bool = False
    ) -> Array:
        """Let environments go on from where those were that ``save_state`` saved, here or in another process.

        Args:
            states: One for each environment; of a single environment the bytes alone will do.
            env_ids: Which environments, as ints or as a mask; None for all.
            allow_pickle: Load pickles too, which may execute anything: only if you know who made them.

        Returns:
            observations of the last batch ``(agents_per_batch, *shape)``, which show the states.

        Raises:
            APIUsageError: A state is damaged, is a pickle that is not allowed, or is of another environment, of other
                versions or settings; nothing was reset yet, or a step is under way in one.
        """
        self._check_begun("load_state")
        where = f"{type(self).__name__}.load_state"
        count = len(check_env_ids(where, env_ids, self.num_envs))
        values = per_env(where, "states", [states] if isinstance(states, bytes) else states, count, is_one=False)
        self._ask("load_state", "", env_ids, kind="load", values=values, kwargs={"allow_pickle": allow_pickle})
        self._batch = self._show()
        return self._batch.outcome[0]

    def _check_begun(self, call: str) -> None:
        if self._batch is None and self._next_call not in _ENDED:
            raise APIUsageError(f"{type(self).__name__}.{call}: no episode has begun; call reset first")

    def _ask(
        self, where: str, name: str, env_ids: EnvIds, values: Any = (), kind: str | None = None, **arguments: Any
    ) -> list[Any]:
        kind = kind or where.removesuffix("_attr")
        if self._next_call in _ENDED or self._next_call == "recv":
            raise self._out_of_turn(where)
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
        """The call of each runner that has some of ``env_ids``."""
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
                f"{where}: env_ids must be environments without a step under way, which those of the last batch are, "
                f"got {sorted(busy)[:8]}; give env_ids=[...] of the batch, or call reset first"
            )
        return env_ids

    def _take(self) -> tuple[Batch, Infos]:
        if self._next_call != "recv":
            raise self._out_of_turn("recv")
        batch, infos = self._recv()
        self._batch = batch
        if self._next_call == "recv":
            self._next_call = "send"
        return batch, infos

    def notify(self) -> None:
        """Have each environment's own ``notify()`` called before it is stepped or reset next.

        It may be called at any time. An environment that is just being stepped may hear of it one step later.
        """
        if self._next_call in _ENDED:
            raise self._out_of_turn("notify")
        self._notify()

    def close(self) -> None:
        """Close every environment and let go of all processes; more calls do nothing."""
        if self._next_call != "close":
            self._next_call = "close"
            self._close()

    def __reduce__(self) -> NoReturn:
        raise APIUsageError(
            f"{type(self).__name__}: a vector environment must stay in the process that made it, got a call to copy or "
            "pickle it; make another with pufferlib.vector.make, and copy the games with save_state and load_state"
        )

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
        """List with an ``InfoSource(env_id, kind)`` for each info of the last batch."""

    @property
    def worker_pids(self) -> list[int]:
        """Process ids of the workers, each on its own machine; empty where there are none, or when they have ended."""
        return []

    @property
    def worker_restarts(self) -> int:
        """Replacements so far, with ``on_crash="restart"``: of workers, or with ``Serial`` of environments."""
        return 0 if self._restarts is None else self._restarts.total

    @property
    def agent_ids(self) -> npt.NDArray[np.int64]:
        """Agents that the rows of the last batch belong to."""
        if self._batch is None:
            raise APIUsageError(f"{type(self).__name__}.agent_ids: there is no batch yet; call reset or recv first")
        return self._batch.agent_ids

    def _out_of_turn(self, call: str) -> APIUsageError:
        where = f"{type(self).__name__}.{call}"
        if self._next_call in _ENDED:
            return APIUsageError(f"{where}: {_ENDED[self._next_call]}")
        return APIUsageError(f"{where}: the next call must be {self._next_call}, got {call}; {_ORDER}")

    @abstractmethod
    def _start(self, spec: VectorSpec) -> None:
        """Make the environments, and ``_open``."""

    @abstractmethod
    def _reset(self, seeds: list[int | None], options: list[Any] | None) -> None:
        """Start resets with one seed per environment; earlier work is finished and forgotten."""

    @property
    @abstractmethod
    def _envs_per_runner(self) -> int:
        """Environments that one ``EnvRunner`` has."""

    @abstractmethod
    def _idle_envs(self) -> Container[int]:
        """Return the environments that have no step under way."""

    @abstractmethod
    def _perform(self, calls: Mapping[int, EnvCall]) -> dict[int, list[Any]]:
        """Let each of these runners, by number, perform its call; returns their results."""

    @abstractmethod
    def _reset_some(self, calls: Mapping[int, EnvCall]) -> tuple[Batch, Infos]:
        """Perform resets in the last batch; returns it, and the infos."""

    def _show(self) -> Batch:
        """Return the last batch, with rows as they are now."""
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
        """Let the environments be notified before they go on."""

    @abstractmethod
    def _close(self) -> None:
        """Close the environments, once."""


def _each_option(where: str, options: object, count: int) -> list[Any]:
    if not isinstance(options, Mapping | Sequence) or isinstance(options, str):
        raise APIUsageError(f"{where}: options must be a dict, or a list of one for each environment, got {options!r}")
    return per_env(where, "options", options, count, is_one=isinstance(options, Mapping))


_ORDER = "call async_reset (or reset) first, then recv and send in turns (or step)"

# What "the next call" is when there can be none.
_ENDED = {
    "close": "the environments are closed; make new ones with pufferlib.vector.make",
    "make": "the workers were ended by an earlier error; make new environments",
    "leave": "the environments belong to the process that this one was forked from; make new ones in this process",
}
