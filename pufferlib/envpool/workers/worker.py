"""Worker process of a pool: steps, resets and draws its environments one at a time, as their commands come."""

import os
import pickle
from typing import Any

from pufferlib.buffers import ArraySpecs, slice_rows
from pufferlib.envpool.workers._episodes import Episodes
from pufferlib.envpool.workers._queues import QueueEnd
from pufferlib.envpool.workers.creators import time_limit
from pufferlib.envpool.workers.draw import drawn, users_env
from pufferlib.envpool.workers.infos import FinalInfo, InfoWriter, merged
from pufferlib.envpool.workers.leaves import array_space
from pufferlib.envpool.workers.options import INFO, PLAYERS, Frame, PoolDescription, WorkerOptions
from pufferlib.vector.calls import Raised
from pufferlib.vector.env_runner import EnvRunner
from pufferlib.vector.failures import Failed
from pufferlib.vector.multiprocessing.worker import CALL, CHECK_S, CLOSE, FAILURE, REPLY, Parent, Worker, reply_message
from pufferlib.vector.specs import PHASES, RESET, EnvDescription, RowSpec

__all__ = ["PoolWorker"]


class PoolWorker(Worker):
    """Environments that are sent commands one by one; ``setup.options`` are ``WorkerOptions``."""

    def _more_arrays(self, row_spec: RowSpec) -> ArraySpecs:
        return self._options.arrays(row_spec, self._setup.num_envs, self._setup.num_workers)

    @property
    def _options(self) -> WorkerOptions:
        options: WorkerOptions = self._setup.options
        return options

    def _describe(self, runner: EnvRunner) -> EnvDescription:
        env, base = runner.envs[0], runner.describe()
        layout = env.observation_layout if env.emulated else None
        spec = getattr(users_env(env), "spec", None)
        return PoolDescription(
            **vars(base),
            observations=base.single_observation_space if layout is None else array_space(layout.space, layout.dtype),
            row_dtype=base.obs_dtype if layout is None else layout.dtype,
            limit=time_limit(env),
            reward_threshold=getattr(spec, "reward_threshold", None),
            frame=self._frame(runner) if self._options.probes and self._options.draws else None,
        )

    def _frame(self, runner: EnvRunner) -> Frame | None:
        """Height, width and rate of the pictures of the first environment, which must have been reset to draw."""
        env = runner.envs[0]
        runner.reset([None], None, [0])
        picture = self._options.draw(env, -1, *self._options.size)
        if picture is None:
            return None
        height, width, _ = drawn(env, picture).shape
        rate = (getattr(env, "metadata", None) or {}).get("render_fps") or 15.0
        return height, width, float(rate)

    def serve(self, parent: Parent) -> bool:
        """Obey commands until the parent ends them; False if an environment failed and that was reported."""
        self._choose_core()
        end, episodes, writer = self._prepare()
        do, drops = {RESET: episodes.reset}, self._options.declared_only
        while True:
            operation = end.wait(CHECK_S)
            if not operation:
                if parent.is_gone():
                    return True
                continue
            if operation == CLOSE:
                return True
            if operation == CALL:
                end.finish_call(REPLY)
                self._conn.send_bytes(self._draw())
                continue
            try:
                found = do.get(operation, episodes.step)(end.position)
                other = writer.write(end.position, merged(found)) if found or writer.has_arrays else {}
                final = None if episodes.ended is None else _final(episodes, writer, end.position, drops)
                is_empty = final is None and (drops or not other)
                message = None if is_empty else reply_message(operation, [{} if drops else other, final], [])
            except BaseException as error:
                report = Failed.of(PHASES[operation], self._progress()[0], error)
                end.finish(FAILURE)
                self._conn.send(report)
                return False
            if message is None:
                end.finish(0)
            else:
                end.finish(REPLY)
                self._conn.send_bytes(message)

    def _choose_core(self) -> None:
        first = self._options.affinity
        if first >= 0:
            cores = sorted(os.sched_getaffinity(0))
            os.sched_setaffinity(0, {cores[(first + self._setup.worker) % len(cores)]})

    def _prepare(self) -> tuple[QueueEnd, Episodes, InfoWriter]:
        assert self._memory is not None
        assert self._runner is not None
        assert self._row_spec is not None
        setup, memory, options, envs = self._setup, self._memory, self._options, self._runner.envs
        agents, mine = self._row_spec.num_agents, slice(self._first, self._first + len(self._runner.envs))
        more = {name: array[mine] for name, array in memory.more.items()}
        queue = memory.more["entries"][setup.worker]
        end = QueueEnd(
            memory.memory, setup.num_workers, setup.worker, setup.fits, queue, more["outcomes"], more["finished_ns"]
        )
        own = ["disabled" if env.emulated else env.autoreset for env in envs]
        rows = slice_rows(memory.buffers, mine.start * agents, mine.stop * agents)
        states = {name: more[name] for name in ("terminated", "truncated", "elapsed_step")}
        states["seeds"] = memory.seeds[mine]
        episodes = Episodes(self._runner, own, options.autoreset, options.limit, rows, states)
        arrays = {}
        for name, array in memory.more.items():
            if name.startswith(INFO):
                width = agents if name.startswith(INFO + PLAYERS) else 1
                arrays[name] = array[mine.start * width : mine.stop * width]
        return (
            end,
            episodes,
            InfoWriter(arrays, options.info_sources, [getattr(env, "possible_agents", ()) for env in envs]),
        )

    def _draw(self) -> bytes:
        """Pictures of the environments that the parent asks for, or what one raised."""
        assert self._runner is not None
        positions, camera_id = pickle.loads(self._conn.recv_bytes())
        results: list[Any] = []
        for position in positions:
            env = self._runner.envs[position]
            try:
                results.append(drawn(env, self._options.draw(env, camera_id, *self._options.size)))
            except Exception as error:
                results.append(Raised(error))
        return reply_message(CALL, results, [])


def _final(episodes: Episodes, writer: InfoWriter, position: int, drops: bool) -> FinalInfo:
    """Take the infos of the step that ended an episode."""
    assert episodes.ended is not None
    (infos, steps), episodes.ended = episodes.ended, None
    declared, other = writer.read(position, merged(infos))
    return FinalInfo(steps, declared, {} if drops else other)
