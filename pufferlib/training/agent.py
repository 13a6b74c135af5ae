"""Agents: trained policies that act, for whoever has an environment and no training."""

import threading
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import torch

from pufferlib.emulation._pack import Packer
from pufferlib.emulation.actions import ActionDecoder
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.seeding import env_seed
from pufferlib.training.closing import close_vecenv
from pufferlib.training.config import Config
from pufferlib.training.normalization import with_moments
from pufferlib.training.observation_check import ObservationCheck
from pufferlib.training.players import PolicyPlayer
from pufferlib.training.runs import RUNS, find_run, open_policy

__all__ = ["Agent", "load"]

WHERE = "pufferlib.load"


def load(
    run: Path | str,
    *,
    best: bool = False,
    greedy: bool | None = None,
    seed: int = 0,
    device: str = "auto",
    runs: Path | str = RUNS,
) -> "Agent":
    """Load a trained agent.

    Args:
        run: The folder of a run, a checkpoint, the file of a policy, or an environment's name for its latest run.
        best: Take the checkpoint of the best score, of evaluations during training if there were some, not the latest.
        greedy: Take the likeliest action instead of sampling; None: as the run's evaluation does.
        seed: Of the samples.
        device: Where it computes; "auto" is CUDA where there is a GPU, else the CPU.
        runs: Folder in which the latest run is looked for.

    Raises:
        APIUsageError: There is no such run, or it has no checkpoint that is whole.
        BindingMissing: The package behind the environment is not installed, of which the spaces are read.
    """
    found = find_run(WHERE, str(run), Path(runs), best)
    config = found.settings({"train.device": device})
    policy, vecenv = open_policy(config, found)
    try:
        return Agent(policy, vecenv, config.eval.greedy if greedy is None else greedy, seed, config)
    finally:
        close_vecenv(vecenv)


class Agent:
    """A policy that acts: ``action = agent(observation)``.

    It takes what the environment itself shows, of one agent or of many, and answers alike. A policy with a memory
    has one for each row, which lasts until ``reset``. Threads may share an agent without a memory. Each process loads
    its own.

    Args:
        policy: The policy.
        vecenv: One that it plays in, whose spaces are read.
        greedy: Take the likeliest action instead of sampling.
        seed: Of the samples.
        config: The settings of its run.

    Attributes:
        policy: The policy; its weights are read anew by ``reset``.
        config: The settings of its run; None without one.
    """

    def __init__(
        self, policy: Policy, vecenv: Any, greedy: bool = False, seed: int = 0, config: Config | None = None
    ) -> None:
        self.policy, self.config = policy.eval(), config
        self._greedy = greedy
        self._generator = torch.Generator(next(policy.parameters()).device).manual_seed(env_seed(seed, 0))
        env = vecenv.driver_env
        self._space = env.single_observation_space
        self._check = ObservationCheck(env)
        seen = with_moments(vecenv, policy)
        self._normalize = None if seen is vecenv else seen.normalize
        layout = env.observation_layout if env.emulated else None
        self._packer = Packer(layout) if layout is not None and layout.is_emulated else None
        self._decoder = ActionDecoder("Agent", env.action_layout) if env.emulated else None
        self._player: PolicyPlayer | None = None
        self._rows = 0
        self._lock = threading.Lock()  # of the player, which works in arrays of its own

    def __reduce__(self) -> NoReturn:
        raise TypeError("an Agent cannot be pickled or copied; load it in each process: pufferlib.load(run)")

    def __call__(self, observation: Any) -> Any:
        """Choose an action.

        Args:
            observation: Of one agent, as its environment returns it; or of n: an array ``(n, *shape)``, as a vector
                environment returns it, or a list of what environments return.

        Returns:
            One action, as the environment takes it; for an array ``(n, *action_shape)``, for a list a list.

        Raises:
            APIUsageError: The shape is another, a value is NaN, an integer is outside the observation space, or a
                policy with a memory sees another number of observations than since ``reset``.
        """
        if isinstance(observation, list):
            rows = np.concatenate([self._one(each) for each in observation])
            return [self._own(action) for action in self._act(rows)]
        array = None if isinstance(observation, dict | tuple) else np.asarray(observation)
        if array is not None and array.ndim == len(self._space.shape) + 1 and array.shape[1:] == self._space.shape:
            return self._act(self._check.convert(array))
        return self._own(self._act(self._one(observation))[0])

    def reset(self, rows: Any = None) -> None:
        """Forget the episodes so far.

        Args:
            rows: The agents whose episodes ended, a mask of all or indices; None: all, however many come next.

        Raises:
            APIUsageError: There are no such agents.
        """
        if rows is None:
            self._player = None
        elif self._player is not None:
            self._player.begin(torch.from_numpy(_ended_agents(rows, self._rows)))

    def _one(self, observation: Any) -> npt.NDArray[Any]:
        """The row of one observation, ``(1, *shape)``."""
        row = np.zeros((1, *self._space.shape), self._space.dtype)
        array = None if isinstance(observation, dict | tuple) else np.asarray(observation)
        if array is not None and array.shape == self._space.shape:
            row[0] = self._check.convert(array)
        elif self._packer is not None:
            self._packer.pack(row, 0, observation)
        else:
            shape = "no array" if array is None else f"shape {array.shape}"
            raise APIUsageError(
                f"Agent: an observation must be of shape {self._space.shape}, or of shape (n, "
                f"{', '.join(map(str, self._space.shape))}) for n agents, got {shape}"
            )
        return row

    def _act(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Actions of the flat space, one for each row."""
        with self._lock:
            return self._play(rows)

    def _play(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        self._check.check(rows)
        if self._player is None:
            self._player, self._rows = PolicyPlayer(self.policy, len(rows), self._generator, self._greedy), len(rows)
        elif len(rows) != self._rows and self.policy.initial_state(1):
            raise APIUsageError(
                f"Agent: its memory is of {self._rows} agents since the last reset, got {len(rows)} observations; "
                "call agent.reset() before another number of them"
            )
        actions: npt.NDArray[Any] = self._player.act(rows if self._normalize is None else self._normalize(rows))
        return actions

    def _own(self, action: Any) -> Any:
        """One action, as the environment itself takes it."""
        return action if self._decoder is None else self._decoder.decode(action)


def _ended_agents(rows: Any, count: int) -> npt.NDArray[np.bool_]:
    """``rows``, a mask or indices, as a mask of ``count`` agents."""
    given = np.asarray(rows)
    if given.dtype == bool and given.shape == (count,):
        return given
    if given.ndim <= 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer)):
        indices = given.astype(np.int64).ravel()
        if ((indices >= 0) & (indices < count)).all():
            mask = np.zeros(count, np.bool_)
            mask[indices] = True
            return mask
    raise APIUsageError(
        f"Agent.reset: rows must be a mask of {count} agents, as many as acted last, or indices from 0 to {count - 1}, "
        f"got {rows!r}"
    )
