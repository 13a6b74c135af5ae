"""How good a policy is: a fixed number of episodes, each from its first step to its end."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pufferlib import ocean, registry, vector
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import Policy, State
from pufferlib.render.motion import Motion
from pufferlib.render.video import Frame
from pufferlib.seeding import env_seed
from pufferlib.train.config import Config
from pufferlib.train.episodes import EpisodeMeans

__all__ = ["EvalResult", "evaluate"]

AT_ONCE = 32  # games side by side: enough to fill the network's batch, few enough for big environments
Record = Callable[[Frame | None, float], None]


@dataclass(frozen=True)
class EvalResult:
    """The outcome of ``evaluate``.

    Attributes:
        score_mean: Mean over the episodes that ended.
        score_std: Their standard deviation, 0 for a single one.
        episode_length: Their mean length, in steps.
        episodes: How many ended.
        unfinished: How many were abandoned after ``eval.max_steps``; they are in no mean.
        scores: The score of each, in the order of their seeds.
    """

    score_mean: float
    score_std: float
    episode_length: float
    episodes: int
    unfinished: int
    scores: tuple[float, ...]


def evaluate(
    config: Config,
    policy: Policy | None,
    episodes: int | None = None,
    seed: int | None = None,
    record: Record | None = None,
    *,
    env_creator: Callable[..., Any] | None = None,
) -> EvalResult:
    """Play ``episodes`` episodes, each in an environment of its own, so that long ones count like short ones.

    Same settings, weights and seed: same result.

    Args:
        config: ``env`` says which environment (``num_envs`` counts as 1), ``eval`` how long an episode may last.
        policy: Chooses the actions; None plays at random.
        episodes: How many; None: ``eval.episodes``.
        seed: Of environments and actions; None: ``eval.seed``.
        record: Takes every picture of the first episode, uint8 ``(height, width, 3)`` or None from an environment that
            draws none, and how many make a second.
        env_creator: An environment of your own instead of the one that ``config`` names.

    Returns:
        Scores, which are what the environment calls ``score``, or else the sum of its rewards; of several
        agents in one environment the mean, once the last of them has ended.

    Raises:
        APIUsageError: ``episodes`` is below 1, or not one of them ended in time.
        PufferError: The policy's outputs are NaN.
    """
    episodes = config.eval.episodes if episodes is None else episodes
    seed = config.eval.seed if seed is None else seed
    if episodes < 1:
        raise APIUsageError(f"evaluate: episodes must be at least 1, got {episodes}")
    generator = torch.Generator(_device(policy)).manual_seed(env_seed(seed, 0))  # torch takes no more than 64 bits
    games: list[_Game] = []
    for start in range(0, episodes, AT_ONCE):
        numbers = range(start, min(start + AT_ONCE, episodes))
        games += _play(config, policy, [env_seed(seed, i) for i in numbers], env_creator, generator, record)
        record = None
    ended = [game for game in games if game.score is not None]
    if not ended:
        raise APIUsageError(
            f"evaluate: none of {episodes} episodes of {config.env_name} reported a score within "
            f"{config.eval.max_steps} steps; raise eval.max_steps, or wrap the environment with pufferlib.EpisodeStats"
        )
    scores = tuple(game.score for game in ended if game.score is not None)
    return EvalResult(
        score_mean=statistics.fmean(scores),
        score_std=statistics.stdev(scores) if len(scores) > 1 else 0.0,
        episode_length=statistics.fmean(game.steps for game in ended),
        episodes=len(ended),
        unfinished=episodes - len(ended),
        scores=scores,
    )


class _Game:
    """One environment, until every agent that was there has ended and a score is known.

    With several agents the score is the mean over all that they report. A single life may end
    before the score is known, as in ``episodic_life``; then the game goes on.
    """

    def __init__(self, config: Config, env_creator: Callable[..., Any] | None, seed: int, render: bool) -> None:
        kwargs = {**config.env, **({"render_mode": "rgb_array"} if render else {})}
        kwargs.pop("autoreset", None)  # a setting of training; no game is played twice here
        if "num_envs" in kwargs:  # a batch of games, of which short ones would count more often than long ones
            kwargs["num_envs"] = 1
        if env_creator is None:
            env_creator = registry.env_creator(config.env_name)
            if config.env_name in ocean.names():
                kwargs["log_interval"] = 1  # else they report now and then
        self.env = vector.make(env_creator, env_kwargs=kwargs, backend="Serial", seed=seed, autoreset="same_step")
        self.observations, _ = self.env.reset()
        self.env.action_space.seed(seed)
        self.steps = 0
        self.score: float | None = None
        self._means = EpisodeMeans()
        self._waited_for = np.zeros(self.env.num_agents, bool)  # agents that were there, until they end
        self._ended = np.zeros(self.env.num_agents, bool)
        self.begins = np.zeros(self.env.num_agents, bool)  # agents whose observation starts an episode of their own

    def step(self, actions: Any) -> bool:
        """Act; True when the episode has ended."""
        self._waited_for |= self.env.masks & ~self._ended
        absent = ~self.env.masks
        self.observations, _, terminals, truncations, infos = self.env.step(actions)
        self.steps += 1
        self._means.add(infos)
        self.begins = terminals | truncations | absent
        self._ended |= terminals | truncations
        self._waited_for &= ~self._ended
        if not self._waited_for.any():
            self.score = self._means.get("score", "episode_return")
        return self.score is not None


def _play(
    config: Config,
    policy: Policy | None,
    seeds: list[int],
    env_creator: Callable[..., Any] | None,
    generator: torch.Generator,
    record: Record | None,
) -> list[_Game]:
    """Play one episode per seed, all side by side; each game leaves when its episode has ended."""
    games: list[_Game] = []
    try:
        for index, seed in enumerate(seeds):
            games.append(_Game(config, env_creator, seed, render=record is not None and index == 0))
        agents = games[0].env.num_agents
        playing = games
        motion = Motion(games[0].env.driver_env)
        state = policy.initial_state(agents * len(games), _device(policy)) if policy else {}
        for _ in range(config.eval.max_steps):
            actions = _choose(config, policy, playing, state, generator)
            if record is not None and games[0].score is None:
                record(games[0].env.driver_env.render(), motion.fps)
                for picture in motion.between(actions[0]):
                    record(picture, motion.fps)
            ended = [game.step(action) for game, action in zip(playing, actions, strict=True)]
            if any(ended):
                playing = [game for game, over in zip(playing, ended, strict=True) if not over]
                keep = torch.tensor(ended, device=generator.device).logical_not_().repeat_interleave(agents)
                state = {name: memory[keep] for name, memory in state.items()}
            if not playing:
                break
        return games
    finally:
        for game in games:
            game.env.close()


@torch.inference_mode()
def _choose(
    config: Config, policy: Policy | None, playing: list[_Game], state: State, generator: torch.Generator
) -> list[Any]:
    """The actions of each game that is still played; ``state`` moves on."""
    if policy is None:
        return [game.env.action_space.sample() for game in playing]
    observations = np.concatenate([game.observations for game in playing])
    for memory in state.values():  # ends with each life, as in training
        memory[torch.from_numpy(np.concatenate([game.begins for game in playing]))] = 0
    params, _ = policy.forward_eval(torch.from_numpy(observations).to(generator.device), state)
    if params.isnan().any():  # the likeliest of such would be the first action, whatever it sees
        raise PufferError(
            "evaluate: the policy's outputs must be numbers, got NaN; look for NaN in its weights and in observations"
        )
    distribution = policy.distribution
    chosen = distribution.mode(params) if config.eval.greedy else distribution.sample(params, generator)
    return np.split(distribution.to_env(chosen), len(playing))


def _device(policy: Policy | None) -> torch.device:
    return torch.device("cpu") if policy is None else next(policy.parameters()).device
