"""``Serial`` backend: environments stepped one after the other in the calling process."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from typing import Any

from pufferlib.buffers import Array, Buffers, allocate
from pufferlib.env import Infos
from pufferlib.machine.output import hidden_output, hide_output_of
from pufferlib.vector.calls import EnvCall, perform
from pufferlib.vector.env_runner import EnvRunner, env_rows, exits_raise, raise_for_exit
from pufferlib.vector.restarts import RestartingRunner, Restarts
from pufferlib.vector.specs import InfoSource, RowSpec, VectorSpec, info_sources
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["Serial"]


class Serial(VectorEnv):
    """Environments stepped one after the other, without workers. Useful for debugging and for very fast environments.

    The arguments are the ones of ``pufferlib.vector.make``, without ``backend``.

    With ``batch_size < num_envs``, batches alternate in a fixed order. ``envs`` lists the environments, and
    ``driver_env`` is the first of them.
    """

    _cores = None

    @exits_raise
    def _start(self, spec: VectorSpec) -> None:
        self._row_spec: RowSpec | None = None
        self._buffers: Buffers = {}
        self._num_envs = len(spec.envs)
        self._runners: list[EnvRunner] = []
        self._restarts_failed = spec.on_crash == "restart"
        build = self._build_separately if self._restarts_failed else self._build
        if spec.hide_output:
            hide_output_of(self, "_reset", "_send", "_perform", "_close")
        try:
            with hidden_output() if spec.hide_output else nullcontext():
                build(spec)
        except BaseException:
            self._close()
            raise
        self._set_attributes(spec, self.envs[0], self._runners[0].describe())
        rows, num_batches = self.agents_per_batch, self._num_envs // spec.batch_size
        self._batches = [Batch.block(self._buffers, b * rows, (b + 1) * rows) for b in range(num_batches)]
        self._actions = [batch.buffers["actions"] for batch in self._batches]
        self._infos: list[Infos] = [[] for _ in self._batches]
        self._turn = 0

    @property
    def envs(self) -> list[Any]:
        """Environments, in the order of their rows."""
        return [env for runner in self._runners for env in runner.envs]

    def _build(self, spec: VectorSpec) -> None:
        """Create one runner for the environments of each batch."""
        autoreset = spec.autoreset
        for start in range(0, self._num_envs, spec.batch_size):
            self._runners.append(EnvRunner(spec.envs[start : start + spec.batch_size], autoreset, self._memory))
            autoreset = self._runners[0].autoreset

    def _build_separately(self, spec: VectorSpec) -> None:
        """Create one runner for each environment, so that it can be replaced alone."""
        runners: list[RestartingRunner] = []
        for env in spec.envs:
            runners.append(RestartingRunner(env, runners[0].autoreset if runners else spec.autoreset, self._memory))
            self._runners.append(runners[-1])
        self._restarts = Restarts(self._buffers, self._num_envs, runners[0].autoreset)
        for runner in runners:
            runner.restarts = self._restarts

    def _memory(self, row_spec: RowSpec, index: int) -> Buffers:
        if self._row_spec is None:
            self._row_spec = row_spec
            self._buffers = allocate(
                row_spec.observation_space, row_spec.action_space, row_spec.num_agents * self._num_envs
            )
        self._row_spec.check_same(row_spec, index)
        return env_rows(self._buffers, row_spec.num_agents, index)

    @exits_raise
    def _reset(self, seeds: list[int | None], options: list[Any] | None) -> None:
        size, rest = len(seeds) // len(self._runners), iter(seeds)
        for number, runner in enumerate(self._runners):
            runner.next_options = options and options[number * size : (number + 1) * size]
        for turn in range(len(self._batches)):
            self._infos[turn] = self._act(turn, lambda runner: runner.reset([*islice(rest, size)]))
        self._turn = 0

    def _send(self, actions: Array) -> None:
        turn = self._turn
        self._actions[turn][...] = actions
        try:
            self._infos[turn] = self._act(turn, _step) if self._restarts_failed else self._runners[turn].step()
        except SystemExit as exited:
            raise_for_exit(exited)
        self._turn = (turn + 1) % len(self._batches)

    def _act(self, turn: int, act: Callable[[EnvRunner], Infos]) -> Infos:
        """Run ``act`` for the environments of one batch. Close all environments if a failure cannot be restarted."""
        if not self._restarts_failed:
            return act(self._runners[turn])
        size = len(self._runners) // len(self._batches)
        try:
            return [info for runner in self._runners[turn * size : (turn + 1) * size] for info in act(runner)]
        except Exception:
            self._next_call = "make"
            with suppress(Exception):
                self._close()
            raise
        finally:
            self.driver_env = next(iter(self._runners[0].envs), self.driver_env)

    @property
    def info_sources(self) -> list[InfoSource]:
        """Sources of the infos of the last batch, in their order."""
        count = len(self._runners) // len(self._batches)
        first = self._turn * count
        sources: list[InfoSource] = []
        for number, runner in enumerate(self._runners[first : first + count], first):
            sources += info_sources(runner.sources, number * self._envs_per_runner)
        return sources

    @property
    def _envs_per_runner(self) -> int:
        return self._num_envs // len(self._runners)

    def _idle_envs(self) -> range:
        size = self._num_envs // len(self._batches)
        return range(self._num_envs)[self._turn * size : (self._turn + 1) * size]

    @exits_raise
    def _perform(self, calls: Mapping[int, EnvCall]) -> dict[int, list[Any]]:
        return {number: perform(self._runners[number], call) for number, call in calls.items()}

    def _reset_some(self, calls: Mapping[int, EnvCall]) -> tuple[Batch, Infos]:
        for env in self._idle_envs()[:: self._envs_per_runner]:
            self._runners[env // self._envs_per_runner].sources.clear()
        found = self._perform(calls)
        self._infos[self._turn] = [info for runner in sorted(found) for info in found[runner]]
        return self._recv()

    def _recv(self) -> tuple[Batch, Infos]:
        return self._batches[self._turn], self._infos[self._turn]

    def _notify(self) -> None:
        for runner in self._runners:
            runner.notify()

    def _close(self) -> None:
        errors = []
        for runner in self._runners:
            try:
                runner.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]


def _step(runner: EnvRunner) -> Infos:
    return runner.step()
