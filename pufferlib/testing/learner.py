"""Test suite for learning algorithms: small environments, each of which fails for another class of bugs.

``check_learner()`` tests this package's learner, ``check_learner(train)`` your own.
"""

import inspect
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.models import Policy
from pufferlib.seeding import env_seed
from pufferlib.settings.config import load_config
from pufferlib.training.agent import Agent
from pufferlib.training.build import build_vecenv
from pufferlib.training.episodes import EpisodeMeans, reports_means
from pufferlib.training.trainer import Trainer

__all__ = ["TASKS", "BugClass", "LearnerResult", "Task", "check_learner"]

WHERE = "check_learner"
PLAYS = 4  # number of resets in an evaluation
Act = Callable[[npt.NDArray[Any]], Any]
Train = Callable[[Any, int, int], Any]


@dataclass(frozen=True)
class BugClass:
    """Class of bugs that a score points to.

    Attributes:
        below: Upper bound of the scores that point to it. A finding with a lower bound takes precedence.
        bug: Description of the bug.
        look_at: Parts of a learner in which to look for the bug.
    """

    below: float
    bug: str
    look_at: str

    def __str__(self) -> str:
        return f"{self.bug}; look at {self.look_at}"


@dataclass(frozen=True)
class Task:
    """Environment of the suite.

    Attributes:
        env_name: Name of the environment.
        asks: Ability that the environment requires.
        total_timesteps: Agent-steps of a training, several times as many as needed.
        bar: Mean score to reach.
        enough: Score in training at which this package's learner stops.
        episode_steps: Maximum number of steps of an episode.
        findings: Classes of bugs by score, lowest first. ``below`` of the last one is infinite.
        settings: Settings of the environment that differ from its defaults.
    """

    env_name: str
    asks: str
    total_timesteps: int
    bar: float
    enough: float
    episode_steps: int
    findings: tuple[BugClass, ...]
    settings: dict[str, Any] = field(default_factory=dict)

    def finding(self, score: float) -> BugClass:
        """Return the class of bugs that a score below the bar points to."""
        return next(finding for finding in self.findings if score < finding.below)


#: Environments of the suite, from the easiest to the hardest.
TASKS: tuple[Task, ...] = (
    Task(
        env_name="bandit",
        asks="prefer the action that pays",
        total_timesteps=150_000,
        bar=0.9,
        enough=0.97,
        episode_steps=1,
        findings=(
            BugClass(0.05, "it learns the opposite: a sign is wrong", "the advantage and the sign of the policy loss"),
            BugClass(
                math.inf,
                "no gradient or no exploration: actions that pay do not become more likely",
                "the advantage, the log-probability of the action that was taken, and how actions are sampled",
            ),
        ),
    ),
    Task(
        env_name="multiagent",
        asks="tell the agents of a batch apart",
        total_timesteps=150_000,
        bar=0.9,
        enough=0.97,
        episode_steps=1,
        findings=(
            BugClass(
                math.inf,
                "agents' rows are mixed up: an agent learns from another's observation, action or reward",
                "reshapes and transposes between (steps, agents) and a flat batch, and the indices of minibatches",
            ),
        ),
    ),
    Task(
        env_name="stochastic",
        asks="stay random where that is best",
        total_timesteps=300_000,
        bar=0.98,
        enough=0.99,
        episode_steps=100,
        findings=(
            BugClass(
                0.94,
                "the policy has collapsed to one action, or acts greedily",
                "the entropy bonus, and act(), which must sample",
            ),
            BugClass(
                math.inf,
                "the shares of the actions are not learned",
                "the size of the entropy bonus, of the learning rate and of the clip range",
            ),
        ),
    ),
    Task(
        env_name="spaces",
        asks="read and write structured spaces",
        total_timesteps=120_000,
        bar=0.9,
        enough=0.93,
        episode_steps=1,
        findings=(
            BugClass(
                math.inf,
                "observations or actions are unpacked in another order or dtype (0.75: one part of two is right)",
                "byte order, the order of fields and of the action's parts; pufferlib.pytorch.nativize_tensor unpacks",
            ),
        ),
    ),
    Task(
        env_name="password",
        asks="find a rare reward, and what led to it",
        total_timesteps=100_000,
        bar=0.9,
        enough=0.97,
        episode_steps=5,
        findings=(
            BugClass(
                math.inf,
                "exploration ends too early, or a reward at the end does not reach the steps before it",
                "the entropy bonus, the discount, and lambda of the advantage",
            ),
        ),
    ),
    Task(
        env_name="squared",
        asks="give credit to each step of a walk",
        total_timesteps=350_000,
        bar=0.9,
        enough=0.97,
        episode_steps=15,
        findings=(
            BugClass(
                math.inf,
                "credit assignment: rewards, ends and values of different steps are put together",
                "the loop of the advantage (off by one step), the discount, and values across ends of episodes",
            ),
        ),
        settings={"env.size": 5, "env.num_targets": 1},
    ),
    Task(
        env_name="memory",
        asks="remember what is no longer shown",
        total_timesteps=400_000,
        bar=0.9,
        enough=0.99,
        episode_steps=5,
        findings=(
            BugClass(
                math.inf,
                "the recurrent state is not kept from step to step, or not reset at the ends of episodes",
                "the state that goes into a step while acting and into a segment while learning, the rows reset in "
                "both, and act.reset(ended)",
            ),
        ),
        settings={"env.mem_length": 1, "env.mem_delay": 4},
    ),
)


@dataclass(frozen=True)
class LearnerResult:
    """Result in one environment.

    Attributes:
        env_name: Name of the environment.
        asks: Ability that the environment requires.
        score: Mean score of the trained policy, or NaN after an exception.
        bar: Score to reach.
        seconds: Seconds of training and evaluation.
        finding: Class of bugs that the score points to. None if the bar was reached, or after an exception.
        error: Exception that the learner raised, or None.
    """

    env_name: str
    asks: str
    score: float
    bar: float
    seconds: float
    finding: BugClass | None
    error: Exception | None = None

    @property
    def passed(self) -> bool:
        """True if the score reached the bar."""
        return self.score >= self.bar


def check_learner(
    train: Train | None = None, only: Sequence[str] | None = None, seed: int = 1, scale: float = 1.0
) -> Iterator[LearnerResult]:
    """Train in each environment of the suite, and evaluate the result.

    Args:
        train: Your learner, ``train(vecenv, seed, total_timesteps)``. ``vecenv`` is a vector environment, as
            ``pufferlib.vector.make`` returns it, with ``same_step`` autoreset. The function returns a policy of
            ``pufferlib.models``, or a function ``act(observations) -> actions`` for all rows. If ``act`` has a method
            ``reset(ended)``, it is called with the rows that start an episode, bool ``(num_agents,)``. None tests this
            package's learner.
        only: Names of environments. None tests all of ``TASKS``, in their order, from the easiest on.
        seed: Seed of environments and learner.
        scale: Factor of the number of steps of each training.

    Yields:
        Result of each environment, as soon as it is available.

    Raises:
        UnknownNameError: An environment does not belong to the suite.
        APIUsageError: ``train`` cannot be called with these arguments.
    """
    known = {task.env_name: task for task in TASKS}
    for name in only or ():
        if name not in known:
            raise UnknownNameError.of(WHERE, "environment of the suite", name, known)
    if not scale > 0:
        raise APIUsageError(f"{WHERE}: scale must be above 0, got {scale}")
    if train is not None:
        _check_signature(train)
    return (_result(known[name], train, seed, scale) for name in only or known)


def _check_signature(train: Train) -> None:
    try:
        inspect.signature(train).bind(None, 1, 1)
    except (TypeError, ValueError) as error:
        raise APIUsageError(
            f"{WHERE}: train must be a function train(vecenv, seed, total_timesteps), got {train!r}: {error}"
        ) from error


def _result(task: Task, train: Train | None, seed: int, scale: float) -> LearnerResult:
    start = time.perf_counter()
    score, failure = math.nan, None
    try:
        score = _learned_score(task, train, seed, int(task.total_timesteps * scale))
    except Exception as error:
        failure = error
    finding = None if failure or score >= task.bar else task.finding(score)
    return LearnerResult(task.env_name, task.asks, score, task.bar, time.perf_counter() - start, finding, failure)


def _learned_score(task: Task, train: Train | None, seed: int, total_timesteps: int) -> float:
    """Return the mean score of the trained policy over several episodes of each row."""
    with _vecenv(task, seed) as vecenv:
        learned = _train(task, vecenv, seed, total_timesteps) if train is None else train(vecenv, seed, total_timesteps)
    with _vecenv(task, env_seed(seed, 1)) as vecenv:
        act: Any = Agent(learned, vecenv, seed=seed) if isinstance(learned, Policy) else learned
        if not callable(act):
            raise APIUsageError(
                f"{WHERE}: train must return a policy of pufferlib.models, or a function act(observations) -> actions, "
                f"got {learned!r:.80}"
            )
        return _mean_score(vecenv, act, steps=task.episode_steps * 8 // 5)


def _vecenv(task: Task, seed: int) -> Any:
    """Return a vector environment that reports every episode, and raises an error for invalid actions."""
    is_native = load_config(task.env_name).vec.backend == "native"
    report = {"env.log_interval": 1, "env.check_actions": True} if is_native else {}
    return build_vecenv(load_config(task.env_name, {**task.settings, **report, "train.seed": seed}))


def _train(task: Task, vecenv: Any, seed: int, total_timesteps: int) -> Policy:
    """Train with this package's learner and the environment's settings, until the score is high enough."""
    settings = {"train.seed": seed, "train.total_timesteps": total_timesteps, "stop.score": task.enough}
    config = load_config(task.env_name, {**task.settings, **settings, "stop.episodes": 2000})
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(config, folder, vecenv=vecenv)
        trainer.train()
    return trainer.policy


def _mean_score(vecenv: Any, act: Act, steps: int) -> float:
    """Return the mean score of consecutive episodes, some of which are cut off.

    A memory that is not reset between episodes lowers the score.
    """
    begin = getattr(act, "reset", lambda ended: None)
    means = EpisodeMeans(reports_means(vecenv))
    for _ in range(PLAYS):
        observations, _ = vecenv.reset()
        begin(np.ones(vecenv.num_agents, bool))
        for _ in range(steps):
            actions = act(observations)
            actions = actions.numpy(force=True) if hasattr(actions, "numpy") else actions
            observations, _, terminals, truncations, infos = vecenv.step(actions)
            means.add(infos)
            begin(terminals | truncations)
    score = means.get("score")
    assert score is not None  # each play has whole episodes
    return score
