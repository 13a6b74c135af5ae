"""The backend without processes: every environment in turn, in the caller's process."""

from collections.abc import Callable
from contextlib import suppress
from itertools import islice
from typing import Any

from pufferlib.buffers import Array, Buffers, allocate
from pufferlib.env import Infos
from pufferlib.vector.env_runner import EnvGroup, env_rows
from pufferlib.vector.restarting import RestartingGroup
from pufferlib.vector.restarts import Restarts
from pufferlib.vector.specs import RowSpec, VectorPlan
from pufferlib.vector.vector_env import Batch, VectorEnv

__all__ = ["Serial"]


class Serial(VectorEnv):
    """Environments stepped one after the other: to debug, and for those too fast to be sent elsewhere.

    Takes what ``pufferlib.vector.make`` takes, but for ``backend``.

    With ``batch_size < num_envs`` the batches take turns, in order. ``envs`` lists the environments;
    the first is ``driver_env``.
    """

    _cores = None

    def _start(self, plan: VectorPlan) -> None:
        self._spec: RowSpec | None = None
        self._buffers: Buffers = {}
        self._num_envs = len(plan.envs)
        self._groups: list[EnvGroup] = []
        self._restarts_envs = plan.on_crash == "restart"
        try:
            if self._restarts_envs:
                self._build_apart(plan)
            else:
                self._build(plan)
        except BaseException:
            self._close()
            raise
        self._open(plan, self.envs[0], self._groups[0].describe())
        rows, num_batches = self.agents_per_batch, self._num_envs // plan.batch_size
        self._batches = [Batch.block(self._buffers, b * rows, (b + 1) * rows) for b in range(num_batches)]
        self._actions = [batch.buffers["actions"] for batch in self._batches]
        self._infos: list[Infos] = [[] for _ in self._batches]
        self._turn = 0

    @property
    def envs(self) -> list[Any]:
        """The environments, in the order of their rows."""
        return [env for group in self._groups for env in group.envs]

    def _build(self, plan: VectorPlan) -> None:
        """Make the environments of each batch one group."""
        autoreset = plan.autoreset
        for start in range(0, self._num_envs, plan.batch_size):
            self._groups.append(EnvGroup(plan.envs[start : start + plan.batch_size], autoreset, self._memory))
            autoreset = self._groups[0].autoreset

    def _build_apart(self, plan: VectorPlan) -> None:
        """Make each environment a group, which can be replaced by itself."""
        groups: list[RestartingGroup] = []
        for env in plan.envs:
            groups.append(RestartingGroup(env, groups[0].autoreset if groups else plan.autoreset, self._memory))
            self._groups.append(groups[-1])
        restarts = Restarts(self._buffers, self._num_envs, groups[0].autoreset)
        for group in groups:
            group.restarts = restarts

    def _memory(self, spec: RowSpec, index: int) -> Buffers:
        if self._spec is None:
            self._spec = spec
            self._buffers = allocate(spec.observation_space, spec.action_space, spec.num_agents * self._num_envs)
        self._spec.check_same(spec, index)
        return env_rows(self._buffers, spec.num_agents, index)

    def _reset(self, seeds: list[int | None]) -> None:
        size, rest = len(seeds) // len(self._groups), iter(seeds)
        for turn in range(len(self._batches)):
            self._infos[turn] = self._act(turn, lambda group: group.reset([*islice(rest, size)]))
        self._turn = 0

    def _send(self, actions: Array) -> None:
        turn = self._turn
        self._actions[turn][...] = actions
        self._infos[turn] = self._act(turn, _step) if self._restarts_envs else self._groups[turn].step()
        self._turn = (turn + 1) % len(self._batches)

    def _act(self, turn: int, act: Callable[[EnvGroup], Infos]) -> Infos:
        """Let the environments of one batch act; a failure that is not mended ends them all."""
        if not self._restarts_envs:
            return act(self._groups[turn])
        size = len(self._groups) // len(self._batches)
        try:
            return [info for group in self._groups[turn * size : (turn + 1) * size] for info in act(group)]
        except Exception:
            self._next_call = "make"
            with suppress(Exception):
                self._close()
            raise
        finally:
            self.driver_env = next(iter(self._groups[0].envs), self.driver_env)

    def _recv(self) -> tuple[Batch, Infos]:
        return self._batches[self._turn], self._infos[self._turn]

    def _close(self) -> None:
        errors = []
        for group in self._groups:
            try:
                group.close()
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]


def _step(group: EnvGroup) -> Infos:
    return group.step()
