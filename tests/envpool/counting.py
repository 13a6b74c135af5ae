"""Counting game with predictable results, and the simplest pool that runs it, in this process."""

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Discrete
from pettingzoo import ParallelEnv

from pufferlib.envpool import register
from pufferlib.envpool.pool import PoolBatch, PoolSpec
from pufferlib.errors import APIUsageError

__all__ = ["CUT", "END", "CountingBackend", "CountingEnv", "CountingGame", "CountingParallelEnv", "register_counting"]

END, CUT = 3, 4  # actions that terminate and truncate an episode
_ids = itertools.count()


class CountingGame:
    """Game that counts steps.

    An observation contains the seed, the episode, the step and the player's last action. The reward is the step plus a
    tenth of the action.
    """

    def __init__(self, seed: int, players: int = 1) -> None:
        self.seed, self.players, self.episode, self.count = seed, players, -1, 0

    def reset(self) -> np.ndarray:
        self.episode, self.count = self.episode + 1, 0
        return self._observations(np.zeros(self.players, int))

    def step(self, actions: Any) -> tuple[np.ndarray, np.ndarray, bool, bool]:
        self.count += 1
        rewards = (self.count + actions / 10).astype(np.float32)
        ends = bool((actions == END).any())
        return self._observations(actions), rewards, ends, not ends and bool((actions == CUT).any())

    def frame(self, camera_id: int = -1) -> np.ndarray:
        return np.full((10, 20, 3), (self.seed % 7, self.count, camera_id + 1), np.uint8)

    def _observations(self, actions: np.ndarray) -> np.ndarray:
        facts = (self.seed, self.episode, self.count)
        return np.array([[*facts, action] for action in actions], np.float32)


class CountingEnv(gymnasium.Env):
    """Counting game for one player, as a Gymnasium environment."""

    observation_space = Box(-np.inf, np.inf, (4,), np.float32)
    action_space = Discrete(5)
    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._game = CountingGame(0)

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self._game = CountingGame(seed)
        return self._game.reset()[0], {}

    def step(self, action: Any) -> Any:
        observations, rewards, terminated, truncated = self._game.step(np.array([action]))
        return observations[0], float(rewards[0]), terminated, truncated, {}

    def render(self) -> Any:
        return self._game.frame()


class CountingParallelEnv(ParallelEnv):
    """Counting game for two players, as a PettingZoo environment."""

    possible_agents: ClassVar = ["one", "other"]
    metadata: ClassVar = {"render_modes": ["rgb_array"], "render_fps": 10, "name": "counting"}

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode
        self._game = CountingGame(0, 2)

    def observation_space(self, agent: Any) -> Any:
        return CountingEnv.observation_space

    def action_space(self, agent: Any) -> Any:
        return CountingEnv.action_space

    def reset(self, seed: int | None = None, options: Any = None) -> Any:
        if seed is not None:
            self._game = CountingGame(seed, 2)
        self.agents = self.possible_agents[:]
        return self._by_agent(self._game.reset()), {agent: {} for agent in self.agents}

    def step(self, actions: Any) -> Any:
        observations, rewards, *ends = self._game.step(np.array([actions[agent] for agent in self.possible_agents]))
        terminated, truncated = (dict.fromkeys(self.possible_agents, end) for end in ends)
        self.agents = [] if any(ends) else self.possible_agents[:]
        rewards = self._by_agent(rewards.tolist())
        return (
            self._by_agent(observations),
            rewards,
            terminated,
            truncated,
            {agent: {} for agent in self.possible_agents},
        )

    def render(self) -> Any:
        return self._game.frame()

    def _by_agent(self, values: Any) -> Any:
        return dict(zip(self.possible_agents, values, strict=True))


@dataclass(frozen=True)
class CountingBackend:
    """Backend for the counting game.

    Attributes:
        players: Number of players.
        parts: Whether observations are dicts.
        draws: Whether the game can render.
        discounts: Whether infos contain a discount.
    """

    players: int = 1
    parts: bool = False
    draws: bool = True
    discounts: bool = False

    def describe(self, config: Any) -> PoolSpec:
        box = Box(-np.inf, np.inf, (4,), np.float32)
        space = gymnasium.spaces.Dict({"facts": box, "last": Discrete(5)}) if self.parts else box
        infos = {"count": Discrete(10**6), "players.action": Box(0, 4, (), np.float32)}
        if self.discounts:
            infos["discount"] = Box(0, 1, (), np.float32)
        frame = (10, 20) if self.draws else None
        return PoolSpec(space, Discrete(5), self.players, infos, frame, 10.0)

    def make(self, config: Any, spec: PoolSpec) -> "CountingPool":
        return CountingPool(config, spec)


class CountingPool:
    def __init__(self, config: Any, spec: PoolSpec) -> None:
        self.spec, self.num_envs, self.batch_size = spec, config["num_envs"], config["batch_size"]
        self.games = [CountingGame(seed, spec.num_players) for seed in config["env_seed"]]
        self.limit, self.autoreset = config["max_episode_steps"], config["autoreset"]
        self.over = [True] * self.num_envs
        self.elapsed = [0] * self.num_envs
        self.queue: list[tuple[int, Any]] = []
        self.last = [np.zeros((spec.num_players, 4), np.float32)] * self.num_envs
        self.closed = False
        self.random = np.random.default_rng(0)

    @property
    def num_in_flight(self) -> int:
        return len(self.queue)

    def reset(self, env_ids: Any = None) -> None:
        for env_id in self._checked_ids(env_ids):
            self.queue.append((env_id, self._reset_env(env_id)))

    def send(self, actions: Any, env_ids: Any = None) -> None:
        ids, actions = self._checked_ids(env_ids), np.asarray(actions, float)
        fits = actions.shape == (len(ids) * self.spec.num_players,) and np.isin(actions, range(5)).all()
        self._check(
            fits, f"actions must be 0 to 4, one for each player of {len(ids)} environments, got {actions!r:.80}"
        )
        self._check(self.autoreset != "disabled" or not any(self.over[env_id] for env_id in ids), "must be reset")
        for env_id, action in zip(ids, actions.reshape(len(ids), self.spec.num_players), strict=True):
            self.queue.append((env_id, self._step_env(env_id, action)))

    def recv(self) -> PoolBatch:
        self._check(len(self.queue) >= (self.batch_size if self.batch_size < self.num_envs else 1), "wait for ever")
        if self.batch_size < self.num_envs:
            self.queue = [self.queue[place] for place in self.random.permutation(len(self.queue))]
        batch, self.queue = self.queue[: self.batch_size], self.queue[self.batch_size :]
        ids = np.array([env_id for env_id, _ in batch], np.int32)
        for env_id, (shown, *_) in batch:
            self.last[env_id] = shown
        observations, rewards, ends, cuts, elapsed, final = zip(*(result for _, result in batch), strict=True)
        rows = np.concatenate(observations)
        return PoolBatch(
            ids,
            np.repeat(ids, self.spec.num_players),
            self._observation(rows),
            np.concatenate(rewards),
            np.array(ends),
            np.array(cuts),
            np.array(elapsed, np.int32),
            self._infos(np.array(elapsed), rows[:, 3]),
            self._observation(np.concatenate(final)) if self.autoreset == "same_step" else None,
        )

    def observations(self) -> Any:
        return self._observation(np.concatenate(self.last))

    def render(self, env_ids: Any, camera_id: int = -1) -> Any:
        self._check(not self.closed, "closed")
        return np.stack([self.games[env_id].frame(camera_id) for env_id in env_ids])

    def close(self) -> None:
        self.closed = True

    def _infos(self, elapsed: Any, actions: Any) -> dict[str, Any]:
        infos = {"count": elapsed, "players.action": actions}
        if "discount" in self.spec.info_spaces:
            infos["discount"] = np.float32(0.5) ** elapsed
        return infos

    def _observation(self, rows: Any) -> Any:
        is_dict = isinstance(self.spec.observation_space, gymnasium.spaces.Dict)
        return {"facts": rows, "last": rows[:, 3].astype(np.int64)} if is_dict else rows

    def _checked_ids(self, env_ids: Any) -> Any:
        self._check(not self.closed, "closed")
        ids = list(range(self.num_envs) if env_ids is None else env_ids)
        fits = {*ids} <= {*range(self.num_envs)} and len({*ids}) == len(ids) > 0
        self._check(fits, f"env_id must name environments 0 to {self.num_envs - 1}, each once, got {env_ids}")
        self._check(not {*ids} & {env_id for env_id, _ in self.queue}, "in flight")
        return ids

    def _check(self, is_fine: bool, problem: str) -> None:
        if not is_fine:
            raise APIUsageError(f"CountingPool: {problem}")

    def _reset_env(self, env_id: int) -> Any:
        observations = self.games[env_id].reset()
        self.over[env_id], self.elapsed[env_id] = False, 0
        return observations, np.zeros(self.spec.num_players, np.float32), False, False, 0, observations

    def _step_env(self, env_id: int, action: Any) -> Any:
        if self.over[env_id]:
            return self._reset_env(env_id)
        self.elapsed[env_id] += 1
        observations, rewards, terminated, truncated = self.games[env_id].step(action)
        elapsed, final = self.elapsed[env_id], observations
        truncated |= elapsed == self.limit
        self.over[env_id] = terminated or truncated
        if self.over[env_id] and self.autoreset == "same_step":
            observations = self._reset_env(env_id)[0]
        return observations, rewards, terminated, truncated, elapsed, final


def register_counting(**backend: Any) -> str:
    """Register a new counting task and return its id."""
    task_id = f"Counting{next(_ids)}-v0"
    register(task_id, CountingBackend(**backend), keywords={"bonus": 1.5})
    return task_id
