"""Evaluation of a policy over a fixed number of complete episodes."""

import contextlib
import math
import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from pufferlib import ocean, registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.models.devices import policy_to_play
from pufferlib.models.players import Player, PolicyPlayer, RandomPlayer
from pufferlib.registry import creators
from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame
from pufferlib.render.window import drawn_unseen
from pufferlib.seeding import env_seed
from pufferlib.settings.config import Config
from pufferlib.settings.env_values import check_present
from pufferlib.training.build import close_vecenv, twin_for
from pufferlib.training.episodes import EpisodeMeans, reports_means, score_advice
from pufferlib.training.normalization import with_moments
from pufferlib.vector.twins import TwinEnvs

__all__ = ["Camera", "EvalResult", "Evaluator", "NoEpisodeError", "Record", "evaluate", "unfinished_result"]


NATIVE = ("native", "PufferEnv")  # names of the backend
AT_ONCE = 32  # parallel episodes: enough to fill a batch of the network, few enough for large environments
#: Function of a frame, or None if the environment cannot be drawn, and the frame rate in 1/s.
Record = Callable[[Frame | None, float], None]


@dataclass(frozen=True)
class EvalResult:
    """Result of ``evaluate``.

    Attributes:
        score_mean: Mean score over the episodes that ended.
        score_std: Standard deviation of the scores, or 0 for a single episode.
        episode_length: Mean number of steps of the episodes that ended.
        episodes: Number of episodes that ended.
        unfinished: Number of episodes that were stopped after ``eval.max_steps``. They count in no mean.
        scores: Score of each episode, in the order of their seeds.
        reports: All values that the environment reported for each episode, such as ``perf``, in the same order.
    """

    score_mean: float
    score_std: float
    episode_length: float
    episodes: int
    unfinished: int
    scores: tuple[float, ...] = field(repr=False)
    reports: tuple[dict[str, float], ...] = field(repr=False)

    def metrics(self) -> dict[str, float]:
        """Return the mean of each reported value over the episodes that have it."""
        names = dict.fromkeys(name for report in self.reports for name in report)
        return {name: statistics.fmean(report[name] for report in self.reports if name in report) for name in names}


class NoEpisodeError(APIUsageError):
    """Error of an evaluation in which no episode ended in time."""


def unfinished_result(episodes: int) -> EvalResult:
    """Return the result of an evaluation in which none of ``episodes`` ended. Its scores are NaN."""
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
    """Run ``episodes`` complete episodes and return their scores.

    Episodes run in parallel, one in each environment, so long and short episodes count equally. There are up to 32
    environments at a time, or up to ``vec.num_envs`` for environments of your own and environments in workers, because
    some simulators allow only one. The result depends only on settings, weights and seed.

    Args:
        config: Settings. ``env`` describes the environment (with ``num_envs`` set to 1), and ``eval`` limits the
            length of an episode. A policy trained with ``selfplay`` plays against the environment's own opponent, if
            it has one.
        policy: Policy that chooses the actions, or None to act at random.
        episodes: Number of episodes. None uses ``eval.episodes``.
        seed: Seed of environments and actions. None uses ``eval.seed``.
        record: Function that receives every frame of the first episode and the frames per second. A frame is uint8
            ``(height, width, 3)``, or None if the environment renders none.
        env_creator: Function that makes the environment instead of the one that ``config`` names.

    Returns:
        Scores. The score of an episode is the ``score`` that the environment reports, or else the sum of its rewards.
        With several agents in an environment it is the mean over the first life of each, once the last agent has ended.

    Raises:
        APIUsageError: ``episodes`` is below 1, or no episode ended in time.
        PufferError: The policy's outputs are NaN.
    """
    episodes = config.eval.episodes if episodes is None else episodes
    seed = config.eval.seed if seed is None else seed
    with contextlib.closing(Evaluator(config, env_creator, episodes, seed, renders=record is not None)) as evaluator:
        return evaluator.evaluate(policy, record)


class Evaluator:
    """Evaluator that reuses its environments. Each evaluation runs the same episodes.

    Args:
        config: Settings, as in ``evaluate``.
        env_creator: Function that makes the environment, as in ``evaluate``.
        episodes: Number of episodes of each evaluation. None uses ``eval.episodes``.
        seed: Seed of each evaluation. None uses ``eval.seed``.
        renders: Whether the first environment renders frames. If it cannot be made with rendering, there are no frames,
            and a warning reports it.

    Raises:
        APIUsageError: ``episodes`` is below 1, or the environment rejects its arguments.
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
        self._batches = list(_batches(episodes, self._seed, _num_open_envs(config, env_creator)))
        make = _make_rendering_vecenv if renders else _make_vecenv
        self._vecenv = make(config, env_creator, *self._batches[0])

    def evaluate(self, policy: Policy | None, record: Record | None = None) -> EvalResult:
        """Run all episodes with ``policy``, or at random, and return the result as ``evaluate`` does.

        Raises:
            APIUsageError: No episode ended in time.
            PufferError: The policy's outputs are NaN.
        """
        played: list[_PlayedEpisode] = []
        policy = policy_to_play(policy) if policy is not None else None
        generator = _generator(policy, self._seed)
        vecenv = with_moments(self._vecenv, policy)
        for count, seed in self._batches:
            player: Player = RandomPlayer(vecenv, seed)
            if policy is not None:
                player = PolicyPlayer(policy, vecenv.num_agents, generator, self._config.eval.greedy)
            with drawn_unseen():
                started = _episodes_of(self._vecenv)
                played += _play(vecenv, player, started, count, seed, self._config.eval.max_steps, record)
            record = None
        return _result(self._config, played, score_advice(vecenv))

    def close(self) -> None:
        """Close the environments."""
        close_vecenv(self._vecenv)


def _num_open_envs(config: Config, env_creator: Callable[..., Any] | None) -> int:
    """Return how many environments may be open. It is the number in training, since some simulators allow only one.

    A batch of our native environments is one environment in training, but here it is made as many environments.
    """
    is_ours = env_creator is not None or registry.is_inside(config.env_name) or registry.c_file(config.env_name)
    return AT_ONCE if config.vec.backend in NATIVE and is_ours else min(config.vec.num_envs, AT_ONCE)


def _batches(episodes: int, seed: int, at_once: int) -> Iterator[tuple[int, int]]:
    """Yield the number of parallel episodes, and the seed of their environments, for each batch."""
    if episodes < 1:
        raise APIUsageError(f"evaluate: episodes must be at least 1, got {episodes}")
    for start in range(0, episodes, at_once):
        yield min(episodes - start, at_once), env_seed(seed, start) if start else seed


def _generator(policy: Policy | None, seed: int) -> torch.Generator:
    """Return the random number generator for actions. Torch accepts at most 64 bits of a seed."""
    device = torch.device("cpu") if policy is None else next(policy.parameters()).device
    return torch.Generator(device).manual_seed(env_seed(seed, 0))


def _deviation(scores: Sequence[float]) -> float:
    """Return the sample standard deviation, 0 for one score, and NaN if a score is infinite or NaN."""
    if len(scores) < 2:
        return 0.0
    return statistics.stdev(scores) if all(map(math.isfinite, scores)) else math.nan


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
        score_std=_deviation(scores),
        episode_length=statistics.fmean(episode.steps for episode in ended),
        episodes=len(ended),
        unfinished=len(played) - len(ended),
        scores=scores,
        reports=tuple(episode.report for episode in ended),
    )


class _PlayedEpisode:
    """Episode of one environment, until every agent present has ended and a score is known."""

    def __init__(self, means: EpisodeMeans) -> None:
        self.steps = 0
        self.score: float | None = None
        self.report: dict[str, float] = {}
        self._means = means

    def end(self) -> bool:
        """Read the score after all agents have ended, and stop the environment. Return False if there is none yet."""
        self.score = self._means.get("score", "episode_return")
        if self.score is not None:
            self.report = self._means.means()
            self.stop()
        return self.score is not None

    def stop(self) -> None:
        """Step the environment no more."""

    def release(self) -> None:
        """Step the environment again."""


class _EpisodeInC(_PlayedEpisode):
    """Episode of a copy in C. The batch reports it when it ends, and steps the copy on unread."""

    def __init__(self, batch: TwinEnvs, copy: int) -> None:
        super().__init__(EpisodeMeans(are_means=False))
        self._batch, self._copy = batch, copy

    def end(self) -> bool:
        """Read the report of the batch."""
        report = self._batch.reports[self._copy]
        self.steps = report["episode_length"]
        self._means.add([report])
        return super().end()


class _EpisodeInPython(_PlayedEpisode):
    """Episode of a Python environment.

    It wraps the environment's ``step`` to stop the environment at the end of the episode. With several agents the score
    is the mean over agents. If an agent ends while others continue, it starts again, but only its first life counts.
    Otherwise short lives would count more often than long ones. A life may end before the score is known, as with
    ``episodic_life``. Then the episode continues.
    """

    def __init__(self, env: Any) -> None:
        super().__init__(EpisodeMeans(reports_means(env)))
        self._ended = np.zeros(1 if env.emulated else env.num_agents, bool)
        self._env, self._env_step = env, env.step
        self._source = env.env if env.emulated else env
        self._step, self._source.step = self._source.step, self.step

    def step(self, actions: Any) -> Any:
        """Step the environment and read its infos."""
        outcome = self._step(actions)
        self.steps += 1
        infos = outcome[-1]
        if not isinstance(infos, list):
            self._means.add([infos])
        else:
            share = self._share_of_first_lives(*outcome[2:4])
            if self._means.get("score", "episode_return") is None:
                share = share or 1.0  # the first report may follow after several lives, at the end of the game
            if share:
                self._means.add(infos, share)
        return outcome

    def _share_of_first_lives(self, terminals: Any, truncations: Any) -> float:
        """Return the share of the lives ending in this step that are the first of their agents, or 1 if none ends."""
        ends = terminals | truncations
        first = ends & ~self._ended
        self._ended |= ends
        return float(first.sum() / ends.sum()) if ends.any() else 1.0

    def stop(self) -> None:
        """Replace the environment's ``step`` by a function that does nothing."""
        self._env.step = self._repeat_rows

    def release(self) -> None:
        """Restore the environment's own ``step``."""
        self._env.step = self._env_step
        self._source.step = self._step

    def _repeat_rows(self, actions: Any) -> Any:
        """Return the environment's current rows without a step. This replaces its ``step``."""
        env = self._env
        if hasattr(env, "possible_agents"):
            return {}, {}, {}, {}, {}
        rows = env.observations, env.rewards, env.terminals, env.truncations
        return (*(row[0] for row in rows), {}) if env.emulated else (*rows, [])


def _make_vecenv(
    config: Config, env_creator: Callable[..., Any] | None, num_envs: int, seed: int, render: bool = False
) -> Any:
    """Make one environment for each episode, in C if possible. With ``render``, the first one renders frames."""
    check_present(config.env)
    is_given = env_creator is not None
    if not is_given and not render and (twin := twin_for(config)) is not None:
        return TwinEnvs(twin, num_envs, seed, AutoresetMode.SAME_STEP)
    if env_creator is None:
        env_creator = registry.env_creator(config.env_name)
    kwargs = creators.single_game(env_creator, config.env)
    if config.selfplay.opponents:  # evaluate against the environment's own opponent, whose skill is constant
        kwargs = {key: value for key, value in kwargs.items() if key not in registry.both_sides(config.env_name)}
    if not is_given and ocean.type_made_by(env_creator):
        kwargs["log_interval"] = 1  # report each episode when it ends
    first = {**kwargs, "render_mode": "rgb_array"} if render else kwargs
    return vector.make(
        [env_creator] * num_envs,
        env_kwargs=[first, *[kwargs] * (num_envs - 1)],
        num_envs=num_envs,
        backend="Serial",
        seed=seed,
        autoreset=AutoresetMode.SAME_STEP,
    )


def _make_rendering_vecenv(config: Config, env_creator: Callable[..., Any] | None, num_envs: int, seed: int) -> Any:
    """Make environments of which the first renders frames. If that fails, warn and make them without rendering."""
    try:
        return _make_vecenv(config, env_creator, num_envs, seed, render=True)
    except Exception as error:  # there is no display, for example; other errors occur again below
        vecenv = _make_vecenv(config, env_creator, num_envs, seed)
        warnings.warn(
            f"no video of {config.env_name}: it cannot be made with render_mode='rgb_array': "
            f"{type(error).__name__}: {error}",
            stacklevel=4,
        )
        return vecenv


def _play(
    vecenv: Any,
    player: Player,
    episodes: list[_PlayedEpisode],
    count: int,
    seed: int,
    max_steps: int,
    record: Record | None = None,
) -> list[_PlayedEpisode]:
    """Run the first ``count`` episodes in parallel. The environments of the others do not count."""
    for episode in episodes[count:]:
        episode.stop()
    try:
        observations, _ = vecenv.reset(seed)
        _step_until_ended(vecenv, player, observations, episodes, count, max_steps, record)
    finally:
        for episode in episodes:
            episode.release()
    return episodes[:count]


def _episodes_of(vecenv: Any) -> list[_PlayedEpisode]:
    """Return the episode of each environment."""
    if isinstance(vecenv, TwinEnvs):
        return [_EpisodeInC(vecenv, copy) for copy in range(vecenv.num_envs)]
    return [_EpisodeInPython(env) for env in vecenv.envs]


def _step_until_ended(
    vecenv: Any,
    player: Player,
    observations: Any,
    episodes: list[_PlayedEpisode],
    count: int,
    max_steps: int,
    record: Record | None,
) -> None:
    """Step until the first ``count`` episodes have ended, for at most ``max_steps``."""
    agents = vecenv.num_agents // vecenv.num_envs
    camera = Camera(vecenv.driver_env, record)
    actions = vecenv.actions.copy()
    playing = np.arange(vecenv.num_envs) < count
    awaited = np.zeros((vecenv.num_envs, agents), bool)  # agents that have been present
    ended = np.zeros((vecenv.num_envs, agents), bool)
    for _ in range(max_steps):
        rows = np.flatnonzero(playing.repeat(agents))
        actions[rows] = player.act(observations, rows)
        if playing[0]:
            camera.shoot(actions[:agents])
        present = vecenv.masks.copy()
        observations, _, terminals, truncations, _ = vecenv.step(actions)
        ends = terminals | truncations
        player.begin(ends | ~present)  # memory is cleared after each life, as in training
        awaited |= present.reshape(awaited.shape)
        ended |= ends.reshape(ended.shape)
        for index in np.flatnonzero(playing & ~(awaited & ~ended).any(1)):
            playing[index] = not episodes[index].end()
        if not playing.any():
            break


class Camera:
    """Recorder of frames of an environment. If rendering or recording fails, it warns and stops recording.

    Args:
        env: Environment, or the driver environment of a batch.
        record: Function that receives the frames. None disables recording.
    """

    def __init__(self, env: Any, record: Record | None) -> None:
        self._env, self._record = env, record
        self._has_warned = False
        self._motion = Motion(env)

    def shoot(self, actions: Any, **agent: int) -> None:
        """Record the current frame, and the frames between now and the end of a step with ``actions``."""
        if self._record is None:
            return
        try:
            picture = picture_of(self._env, **agent)
            self._warn_of(picture)
            self._record(picture, self._motion.fps)
            for picture in self._motion.between(actions, **agent):
                self._record(picture, self._motion.fps)
        except Exception as error:  # a failure to draw must not lose the scores
            self._record = None
            env = getattr(self._env, "unwrapped", self._env)
            advice = "; let the function that makes it take render_mode, and pass it on" if _lacks_mode(env) else ""
            warnings.warn(
                f"{type(env).__name__}: recording stopped: {type(error).__name__}: {error}; the episode "
                f"continues{advice}",
                stacklevel=3,
            )

    def _warn_of(self, picture: Frame | None) -> None:
        """Warn once if an environment with the render mode for images returns none."""
        if picture is None and not self._has_warned and getattr(self._env, "render_mode", None) == "rgb_array":
            self._has_warned = True
            kind = type(getattr(self._env, "unwrapped", self._env)).__name__
            warnings.warn(
                f"{kind}: a video needs images, but render() returned none; with render_mode='rgb_array' it must "
                "return uint8 (height, width, 3)",
                stacklevel=4,
            )


def _lacks_mode(env: Any) -> bool:
    """Return True if an environment was made without the render mode that it has."""
    has_modes = bool((getattr(env, "metadata", None) or {}).get("render_modes"))
    return has_modes and getattr(env, "render_mode", "") is None
