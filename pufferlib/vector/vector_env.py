"""Interface of all backends: attributes, the order of calls, and the values that they return."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array, Buffers, slice_rows
from pufferlib.env import Infos, PufferEnv, Received, Stepped
from pufferlib.errors import APIUsageError
from pufferlib.machine.cpus import usable_cpus
from pufferlib.seeding import env_seed
from pufferlib.spaces import Space, joint_space
from pufferlib.vector.arguments import Cores, Count, Creators, EnvArgs, EnvKwargs, vector_spec
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import Autoreset, EnvDescription, OnCrash, VectorSpec

__all__ = ["Batch", "VectorEnv"]


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
    ) -> None:
        options = {
            "num_workers": num_workers,
            "batch_size": batch_size,
            "zero_copy": zero_copy,
            "overwork": overwork,
            "autoreset": autoreset,
            "timeout_s": timeout_s,
            "on_crash": on_crash,
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

    def reset(self, seed: int | None = None) -> tuple[Array, Infos]:
        """Start new episodes everywhere.

        Args:
            seed: Environment i gets ``env_seed(seed, i)``. None: on the first call the seed of
                ``make``, later none, so that each environment goes on with its own random stream.

        Returns:
            observations ``(agents_per_batch, *shape)`` and a list of dicts.
        """
        self.async_reset(seed)
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

    def async_reset(self, seed: int | None = None) -> None:
        """Start new episodes everywhere; ``recv`` returns their first observations."""
        where = f"{type(self).__name__}.async_reset"
        if self._next_call in _ENDED:
            raise self._out_of_turn("async_reset")
        if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int | np.integer)):
            raise APIUsageError(f"{where}: seed must be an int or None, got {seed!r}; one seed serves all environments")
        seed = self._first_seed if seed is None else int(seed)
        self._first_seed = None
        self._next_call = "async_reset"
        self._reset([None if seed is None else env_seed(seed, index) for index in range(self.num_envs)])
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

            Infos belong to no row: they are what the environments of this batch had to say, in the order of
            their rows, and empty ones are left out. A native environment says of any of its agents what it
            likes; an emulated one has one info for each step, and for each reset, which with "same_step" follows
            in the same batch; of PettingZoo it is a dict by agent. Who needs to know whose an info is lets the
            environment write that into it.

        Raises:
            WorkerError: An environment failed, or its process died.
        """
        batch, infos = self._take()
        return (*batch.outcome, infos, batch.agent_ids, batch.buffers["masks"])

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
    def _reset(self, seeds: list[int | None]) -> None:
        """Start resets with one seed per environment; earlier work is finished and forgotten."""

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


_ORDER = "call async_reset (or reset) first, then recv and send in turns (or step)"

# What "the next call" is when there can be none.
_ENDED = {
    "close": "the environments are closed; make new ones with pufferlib.vector.make",
    "make": "the workers were ended by an earlier error; make new environments",
    "leave": "the environments belong to the process that this one was forked from; make new ones in this process",
}
