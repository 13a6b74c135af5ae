"""The backend without processes: every environment in turn, in the caller's process."""

from typing import Any

from pufferlib.buffers import Array, Buffers, allocate
from pufferlib.env import Infos
from pufferlib.vector.base import Batch, VectorEnv
from pufferlib.vector.group import EnvGroup, env_rows
from pufferlib.vector.plan import RowSpec, VectorPlan

__all__ = ["Serial"]


class Serial(VectorEnv):
    """Environments stepped one after the other: to debug, and for those too fast to be sent elsewhere.

    With ``batch_size < num_envs`` the batches take turns, in order. ``envs`` lists the environments;
    the first is ``driver_env``.
    """

    def __init__(self, plan: VectorPlan) -> None:
        self._spec: RowSpec | None = None
        self._buffers: Buffers = {}
        self._num_envs = len(plan.envs)
        self._groups: list[EnvGroup] = []
        autoreset = plan.autoreset
        try:
            for start in range(0, self._num_envs, plan.batch_size):
                envs = plan.envs[start : start + plan.batch_size]
                self._groups.append(EnvGroup(envs, autoreset, self._memory))
                autoreset = self._groups[0].autoreset
        except BaseException:
            self._close()
            raise
        self.envs: list[Any] = [env for group in self._groups for env in group.envs]
        self._open(plan, self.envs[0], self._groups[0].describe())
        rows = self.agents_per_batch
        self._batches = [Batch.block(self._buffers, b * rows, (b + 1) * rows) for b in range(len(self._groups))]
        self._actions = [batch.buffers["actions"] for batch in self._batches]
        self._infos: list[Infos] = [[] for _ in self._groups]
        self._turn = 0

    def _memory(self, spec: RowSpec, index: int) -> Buffers:
        if self._spec is None:
            self._spec = spec
            self._buffers = allocate(spec.observation_space, spec.action_space, spec.num_agents * self._num_envs)
        self._spec.check_same(spec, index)
        return env_rows(self._buffers, spec.num_agents, index)

    def _reset(self, seeds: list[int | None]) -> None:
        size = len(seeds) // len(self._groups)
        for turn, group in enumerate(self._groups):
            self._infos[turn] = group.reset(seeds[turn * size : (turn + 1) * size])
        self._turn = 0

    def _send(self, actions: Array) -> None:
        turn = self._turn
        self._actions[turn][...] = actions
        self._infos[turn] = self._groups[turn].step()
        self._turn = (turn + 1) % len(self._groups)

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
