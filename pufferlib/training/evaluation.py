"""Evaluation of a policy: a fixed number of episodes, each from its first step to its end."""

import contextlib
import math
import statistics
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from pufferlib import ocean, registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.registry import creators
from pufferlib.render.camera import Camera, Record
from pufferlib.render.window import drawn_unseen
from pufferlib.seeding import env_seed
from pufferlib.training.build import close_vecenv
from pufferlib.training.config import Config
from pufferlib.training.env_values import check_present
from pufferlib.training.episodes import EpisodeMeans, reports_means, score_advice
from pufferlib.training.normalization import with_moments
from pufferlib.training.players import Player, PolicyPlayer, RandomPlayer

__all__ = ["EvalResult", "Evaluator", "NoEpisodeError", "evaluate", "unfinished_result"]

NATIVE = ("native", "PufferEnv")  # names of the backend
AT_ONCE = 32  # episodes side by side: enough to fill the network's batch, few enough for big environments


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


class NoEpisodeError(APIUsageError):
    """Not one episode of an evaluation ended in time."""


def unfinished_result(episodes: int) -> EvalResult:
    """Return the outcome of an evaluation in which none of ``episodes`` ended: its scores are NaN."""
    return EvalResult(math.nan, math.nan, math.nan, 0, episodes, (), ())


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
    with contextlib.closing(Evaluator(config, env_creator, episodes, seed, renders=record is not None)) as evaluator:
        return evaluator.evaluate(policy, record)


class Evaluator:
    """Evaluations one after the other, in environments that stay open; each plays the same episodes.

    Args:
        config: As for ``evaluate``.
        env_creator: As for ``evaluate``.
        episodes: Episodes of each evaluation; None: ``eval.episodes``.
        seed: Seed of each evaluation; None: ``eval.seed``.
        renders: Make the first environment so that it draws pictures. If it cannot be made so, it draws none, with a
            warning.

    Raises:
        APIUsageError: ``episodes`` is below 1, or the environment refuses its arguments.
    """

    def __init__(
        self,
        config: Config,
        env_creator: Callable[..., Any] | None = None,
        episodes: int | None = None,
        seed: int | None = None,
        renders: bool = False,
    ) -> None:
        self._config = config
        self._seed = config.eval.seed if seed is None else seed
        episodes = config.eval.episodes if episodes is None else episodes
        self._batches = list(_batches(episodes, self._seed, _at_once(config, env_creator)))
        make = _make_to_draw if renders else _make_vecenv
        self._vecenv = make(config, env_creator, *self._batches[0])

    def evaluate(self, policy: Policy | None, record: Record | None = None) -> EvalResult:
        """Play all episodes with ``policy``, or at random: the result of ``evaluate``.

        Raises:
            APIUsageError: Not one of them ended in time.
            PufferError: The policy's outputs are NaN.
        """
        played: list[_PlayedEpisode] = []
        generator = _generator(policy, self._seed)
        vecenv = with_moments(self._vecenv, policy)
        for count, seed in self._batches:
            player: Player = RandomPlayer(vecenv, seed)
            if policy is not None:
                player = PolicyPlayer(policy, vecenv.num_agents, generator, self._config.eval.greedy)
            with drawn_unseen():
                played += _play(vecenv, player, count, seed, self._config.eval.max_steps, record)
            record = None
        return _result(self._config, played, score_advice(vecenv))

    def close(self) -> None:
        """Close the environments."""
        close_vecenv(self._vecenv)


def _at_once(config: Config, env_creator: Callable[..., Any] | None) -> int:
    """Return how many environments may be open: as many as in training, since a simulator may allow one alone.

    A native batch of ours is one environment in training, and many of one game here.
    """
    is_ours = env_creator is not None or registry.is_inside(config.env_name) or registry.c_file(config.env_name)
    return AT_ONCE if config.vec.backend in NATIVE and is_ours else min(config.vec.num_envs, AT_ONCE)


def _batches(episodes: int, seed: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield the number of episodes that are played side by side, and the seed of their environments."""
    if episodes < 1:
        raise APIUsageError(f"evaluate: episodes must be at least 1, got {episodes}")
    for start in range(0, episodes, at_once):
        yield min(episodes - start, at_once), env_seed(seed, start) if start else seed


def _generator(policy: Policy | None, seed: int) -> torch.Generator:
    """Random numbers of the actions; torch takes no more than 64 bits of a seed."""
    device = torch.device("cpu") if policy is None else next(policy.parameters()).device
    return torch.Generator(device).manual_seed(env_seed(seed, 0))


def _result(config: Config, played: "list[_PlayedEpisode]", advice: str) -> EvalResult:
    ended = [episode for episode in played if episode.score is not None]
    if not ended:
        raise NoEpisodeError(
            f"evaluate: none of {len(played)} episodes of {config.env_name} reported a score within "
            f"{config.eval.max_steps} steps; raise eval.max_steps, or {advice}"
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
        self._means = EpisodeMeans(reports_means(env))
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
            self.stop()
        return self.score is not None

    def stop(self) -> None:
        """Let the environment stand still."""
        self._env.step = self._show_rows_again

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
    check_present(config.env)
    is_given = env_creator is not None
    if env_creator is None:
        env_creator = registry.env_creator(config.env_name)
    kwargs = creators.single_game(env_creator, config.env)
    if config.selfplay.opponents:  # judged by the environment's own opponent, whose skill does not change
        kwargs = {key: value for key, value in kwargs.items() if key not in registry.both_sides(config.env_name)}
    if not is_given and ocean.type_made_by(env_creator):
        kwargs["log_interval"] = 1  # else they report now and then
    first = {**kwargs, "render_mode": "rgb_array"} if render else kwargs
    return vector.make(
        [env_creator] * num_envs,
        env_kwargs=[first, *[kwargs] * (num_envs - 1)],
        num_envs=num_envs,
        backend="Serial",
        seed=seed,
        autoreset=AutoresetMode.SAME_STEP,
    )


def _make_to_draw(config: Config, env_creator: Callable[..., Any] | None, num_envs: int, seed: int) -> Any:
    """Make environments of which the first draws pictures; none, with a warning, if it cannot be made so."""
    try:
        return _make_vecenv(config, env_creator, num_envs, seed, render=True)
    except Exception as error:  # it has no display for example; what else is wrong shows now
        vecenv = _make_vecenv(config, env_creator, num_envs, seed)
        warnings.warn(
            f"{config.env_name} is not filmed: it cannot be made with render_mode='rgb_array': "
            f"{type(error).__name__}: {error}",
            stacklevel=4,
        )
        return vecenv


def _play(
    vecenv: Any, player: Player, count: int, seed: int, max_steps: int, record: Record | None = None
) -> list[_PlayedEpisode]:
    """Play an episode in each of the first ``count`` environments, side by side; the others stand still."""
    observations, _ = vecenv.reset(seed)
    episodes = [_PlayedEpisode(env) for env in vecenv.envs]
    for episode in episodes[count:]:
        episode.stop()
    try:
        _play_to_the_end(vecenv, player, observations, episodes, count, max_steps, record)
    finally:
        for episode in episodes:
            episode.release()
    return episodes[:count]


def _play_to_the_end(
    vecenv: Any,
    player: Player,
    observations: Any,
    episodes: list[_PlayedEpisode],
    count: int,
    max_steps: int,
    record: Record | None,
) -> None:
    """Step until the first ``count`` episodes have ended, or for ``max_steps``."""
    agents = vecenv.num_agents // vecenv.num_envs
    camera = Camera(vecenv.driver_env, record)
    actions = vecenv.actions.copy()
    playing = np.arange(vecenv.num_envs) < count
    awaited = np.zeros((vecenv.num_envs, agents), bool)  # agents that were there, until they end
    ended = np.zeros((vecenv.num_envs, agents), bool)
    for _ in range(max_steps):
        rows = np.flatnonzero(playing.repeat(agents))
        actions[rows] = player.act(observations, rows)
        if playing[0]:
            camera.shoot(actions[:agents])
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
