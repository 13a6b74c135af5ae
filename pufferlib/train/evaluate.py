"""Evaluation of a policy: a fixed number of episodes, each from its first step to its end."""

import contextlib
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pufferlib import ocean, registry, vector
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame
from pufferlib.render.window import drawn_unseen
from pufferlib.seeding import env_seed
from pufferlib.train.config import Config
from pufferlib.train.episodes import EpisodeMeans
from pufferlib.train.normalization import with_moments
from pufferlib.train.players import Player, PolicyPlayer, RandomPlayer

__all__ = ["EvalResult", "Evaluator", "evaluate"]

AT_ONCE = 32  # episodes side by side: enough to fill the network's batch, few enough for big environments
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
        reports: All figures that the environment reported of each, ``perf`` for instance, in the same order.
    """

    score_mean: float
    score_std: float
    episode_length: float
    episodes: int
    unfinished: int
    scores: tuple[float, ...]
    reports: tuple[dict[str, float], ...]

    def metrics(self) -> dict[str, float]:
        """Means of the reported figures over the episodes that have them."""
        names = dict.fromkeys(name for report in self.reports for name in report)
        return {name: statistics.fmean(report[name] for report in self.reports if name in report) for name in names}


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
        config: ``env`` says which environment (``num_envs`` counts as 1), ``eval`` how long an episode may last. Who
            learned against a pool, as ``selfplay`` says, meets the opponent that the environment brings, if it has one.
        policy: Chooses the actions; None plays at random.
        episodes: How many; None: ``eval.episodes``.
        seed: Of environments and actions; None: ``eval.seed``.
        record: Takes every picture of the first episode, uint8 ``(height, width, 3)`` or None from an environment that
            draws none, and how many make a second.
        env_creator: An environment of your own instead of the one that ``config`` names.

    Returns:
        Scores, which are what the environment calls ``score``, or else the sum of its rewards; of several
        agents in one environment the mean, once the last of them has ended, over the first life of each.

    Raises:
        APIUsageError: ``episodes`` is below 1, or not one of them ended in time.
        PufferError: The policy's outputs are NaN.
    """
    episodes = config.eval.episodes if episodes is None else episodes
    seed = config.eval.seed if seed is None else seed
    played: list[_PlayedEpisode] = []
    generator = _generator(policy, seed)
    for count, first_seed in _batches(episodes, seed):
        made = _make_vecenv(config, env_creator, count, first_seed, render=record is not None)
        with made, drawn_unseen():
            vecenv = with_moments(made, policy)
            player: Player = RandomPlayer(vecenv, first_seed)
            if policy is not None:
                player = PolicyPlayer(policy, vecenv.num_agents, generator, config.eval.greedy)
            played += _play(vecenv, player, config.eval.max_steps, record)
        record = None
    return _result(config, played)


class Evaluator:
    """Evaluations one after the other, in environments that stay open; each plays the same episodes.

    Args:
        config: As for ``evaluate``.
        env_creator: As for ``evaluate``.
        episodes: Of each evaluation; None: ``eval.episodes``.

    Raises:
        APIUsageError: ``episodes`` is below 1, or the environment refuses its arguments.
    """

    def __init__(
        self, config: Config, env_creator: Callable[..., Any] | None = None, episodes: int | None = None
    ) -> None:
        self._config = config
        self._batches = list(_batches(config.eval.episodes if episodes is None else episodes, config.eval.seed))
        self._vecenvs: dict[int, Any] = {}  # by the number of environments: all batches are as large, but for the last
        with contextlib.ExitStack() as made:
            for count, seed in self._batches:
                if count not in self._vecenvs:
                    self._vecenvs[count] = made.enter_context(_make_vecenv(config, env_creator, count, seed))
            self._opened = made.pop_all()

    def evaluate(self, policy: Policy) -> EvalResult:
        """Play all episodes with ``policy``: the result of ``evaluate``.

        Raises:
            APIUsageError: Not one of them ended in time.
            PufferError: The policy's outputs are NaN.
        """
        played: list[_PlayedEpisode] = []
        generator = _generator(policy, self._config.eval.seed)
        for count, seed in self._batches:
            vecenv = with_moments(self._vecenvs[count], policy)
            player = PolicyPlayer(policy, vecenv.num_agents, generator, self._config.eval.greedy)
            with drawn_unseen():
                episodes = _play(vecenv, player, self._config.eval.max_steps, seed=seed)
            for episode in episodes:
                episode.release()
            played += episodes
        return _result(self._config, played)

    def close(self) -> None:
        """Close the environments."""
        self._opened.close()


def _batches(episodes: int, seed: int) -> Iterator[tuple[int, int]]:
    """Number of the episodes that are played side by side, and seed of their environments; for each batch."""
    if episodes < 1:
        raise APIUsageError(f"evaluate: episodes must be at least 1, got {episodes}")
    for start in range(0, episodes, AT_ONCE):
        yield min(episodes - start, AT_ONCE), env_seed(seed, start) if start else seed


def _generator(policy: Policy | None, seed: int) -> torch.Generator:
    """Random numbers of the actions; torch takes no more than 64 bits of a seed."""
    device = torch.device("cpu") if policy is None else next(policy.parameters()).device
    return torch.Generator(device).manual_seed(env_seed(seed, 0))


def _result(config: Config, played: "list[_PlayedEpisode]") -> EvalResult:
    ended = [episode for episode in played if episode.score is not None]
    if not ended:
        raise APIUsageError(
            f"evaluate: none of {len(played)} episodes of {config.env_name} reported a score within "
            f"{config.eval.max_steps} steps; raise eval.max_steps, or wrap the environment with pufferlib.EpisodeStats"
        )
    scores = tuple(episode.score for episode in ended if episode.score is not None)
    return EvalResult(
        score_mean=statistics.fmean(scores),
        score_std=statistics.stdev(scores) if len(scores) > 1 else 0.0,
        episode_length=statistics.fmean(episode.steps for episode in ended),
        episodes=len(ended),
        unfinished=len(played) - len(ended),
        scores=scores,
        reports=tuple(episode.report for episode in ended),
    )


class _PlayedEpisode:
    """One environment of the batch, until every agent that was there has ended and a score is known.

    It listens to the environment's ``step``, since a batch does not tell which environment an info is of. With
    several agents the score is the mean over them. Of an agent that ends while the others play on, and begins anew,
    the first life counts alone: of all that end until the last of the others has, most are short. A single life may
    end before the score is known, as in ``episodic_life``; then the game goes on.
    """

    def __init__(self, env: Any) -> None:
        self.steps = 0
        self.score: float | None = None
        self.report: dict[str, float] = {}
        self._means = EpisodeMeans()
        self._ended = np.zeros(1 if env.emulated else env.num_agents, bool)
        self._env, self._env_step = env, env.step
        self._source = env.env if env.emulated else env
        self._step, self._source.step = self._source.step, self.step

    def step(self, actions: Any) -> Any:
        """Step the environment, and take its infos."""
        outcome = self._step(actions)
        self.steps += 1
        infos = outcome[-1]
        if not isinstance(infos, list):
            self._means.add([infos])
        else:
            share = self._share_of_first_lives(*outcome[2:4])
            if self._means.get("score", "episode_return") is None:
                share = share or 1.0  # the first report may come after several lives, at the end of a game
            if share:
                self._means.add(infos, share)
        return outcome

    def _share_of_first_lives(self, terminals: Any, truncations: Any) -> float:
        """Share of the lives that end in this step which are the first of their agents; 1 if none ends."""
        ends = terminals | truncations
        first = ends & ~self._ended
        self._ended |= ends
        return float(first.sum() / ends.sum()) if ends.any() else 1.0

    def end(self) -> bool:
        """Take the score, now that all agents have ended, and stop the environment; False if it is not known yet."""
        self.score = self._means.get("score", "episode_return")
        if self.score is not None:
            self.report = self._means.means()
            self._env.step = self._show_rows_again
        return self.score is not None

    def release(self) -> None:
        """Give the environment its own ``step`` again."""
        self._env.step = self._env_step
        self._source.step = self._step

    def _show_rows_again(self, actions: Any) -> Any:
        """Take the place of the environment's ``step``: return its rows as they are."""
        env = self._env
        if hasattr(env, "possible_agents"):
            return {}, {}, {}, {}, {}
        rows = env.observations, env.rewards, env.terminals, env.truncations
        return (*(row[0] for row in rows), {}) if env.emulated else (*rows, [])


def _make_vecenv(
    config: Config, env_creator: Callable[..., Any] | None, num_envs: int, seed: int, render: bool = False
) -> Any:
    """One environment for each episode; the first draws pictures with ``render``."""
    kwargs = dict(config.env)
    kwargs.pop("autoreset", None)  # a setting of training; nothing is played twice here
    if config.selfplay.opponents:  # judged by the environment's own opponent, whose skill does not change
        kwargs = {key: value for key, value in kwargs.items() if key not in registry.both_sides(config.env_name)}
    if "num_envs" in kwargs:  # a batch of games, of which short ones would count more often than long ones
        kwargs["num_envs"] = 1
    if env_creator is None:
        env_creator = registry.env_creator(config.env_name)
        if ocean.type_made_by(env_creator):
            kwargs["log_interval"] = 1  # else they report now and then
    first = {**kwargs, "render_mode": "rgb_array"} if render else kwargs
    return vector.make(
        [env_creator] * num_envs,
        env_kwargs=[first, *[kwargs] * (num_envs - 1)],
        num_envs=num_envs,
        backend="Serial",
        seed=seed,
        autoreset="same_step",
    )


def _play(
    vecenv: Any, player: Player, max_steps: int, record: Record | None = None, seed: int | None = None
) -> list[_PlayedEpisode]:
    """Play an episode in each environment, all side by side; without ``seed`` by that of their making."""
    count, agents = vecenv.num_envs, vecenv.num_agents // vecenv.num_envs
    observations, _ = vecenv.reset() if seed is None else vecenv.reset(seed)
    episodes = [_PlayedEpisode(env) for env in vecenv.envs]
    motion = Motion(vecenv.driver_env)
    actions = vecenv.actions.copy()
    playing = np.ones(count, bool)
    awaited = np.zeros((count, agents), bool)  # agents that were there, until they end
    ended = np.zeros((count, agents), bool)
    for _ in range(max_steps):
        rows = np.flatnonzero(playing.repeat(agents))
        actions[rows] = player.act(observations, rows)
        if record is not None and playing[0]:
            record(picture_of(vecenv.driver_env), motion.fps)
            for picture in motion.between(actions[:agents]):
                record(picture, motion.fps)
        present = vecenv.masks.copy()
        observations, _, terminals, truncations, _ = vecenv.step(actions)
        ends = terminals | truncations
        player.begin(ends | ~present)  # memory ends with each life, as in training
        awaited |= present.reshape(awaited.shape)
        ended |= ends.reshape(ended.shape)
        for index in np.flatnonzero(playing & ~(awaited & ~ended).any(1)):
            playing[index] = not episodes[index].end()
        if not playing.any():
            break
    return episodes
