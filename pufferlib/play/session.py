"""Session of interactive play, independent of the viewer."""

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from pufferlib import ocean, registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import as_typed
from pufferlib.models.players import Player, PolicyPlayer, RandomPlayer
from pufferlib.play.controls import DIRECTIONS, Area, Cursor, KeyMap, keys_for, keys_of_env
from pufferlib.registry import creators
from pufferlib.render.motion import Motion
from pufferlib.render.pace import Pace
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame
from pufferlib.render.viewer import Viewer
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.training.agent import load_policy
from pufferlib.training.normalization import with_moments

__all__ = ["Session", "play"]

NEXT_AFTER_S = 1.5  # pause between episodes that are only watched
# If the environment waits for a key:
MIN_POLLS_PER_S = 30.0  # minimum keyboard polls per second
REPEATS_AFTER_S = 0.3  # delay before a held key repeats
REPEATS_S = 0.12  # interval between repetitions


class Session:
    """One environment in which the user plays one agent, or watches a trained policy.

    Attributes:
        fps: Steps per second.
        pictures_per_step: Number of frames per step.
        watched: True if a trained policy plays all agents.

    Args:
        name: Name of the environment.
        keywords: Keyword arguments of the environment.
        seed: Seed of the environment and of the other agents.
        agent: Index of the user's agent.
        run: Run whose policy plays the other agents. If None, they act at random.
        watched: True to let the policy play the user's agent too.

    Raises:
        APIUsageError: The environment has no such agent, or ``run`` cannot be used with it.
    """

    def __init__(
        self,
        name: str,
        keywords: dict[str, Any],
        seed: int = 0,
        agent: int = 0,
        run: Run | None = None,
        watched: bool = False,
    ) -> None:
        self.name, self.agent, self.watched = name, agent, watched
        title = registry.short_name(name)
        self._title = f"{title}, played by {run.folder}" if run and watched else title
        config = _config_of(run, name) if run else None
        keywords = {**(config.env if config else {}), **keywords}
        creator = registry.env_creator(name)
        # Without autoreset the last frame stays visible after the end of an episode.
        drawn = {**creators.single_game(creator, keywords), "render_mode": "rgb_array"}
        env_type = ocean.type_made_by(creator)
        if env_type:
            drawn["log_interval"] = 1
        self._env = vector.make(
            creator, env_kwargs=drawn, backend="Serial", seed=seed, autoreset=AutoresetMode.DISABLED
        )
        try:
            self._check(run)
            self._opponents: Player = RandomPlayer(self._env, seed)
            if run and config:
                config = dataclasses.replace(config, env=keywords)
                greedy = watched and config.eval.greedy
                self._env, self._opponents = _trained(run, config, self._env, seed, greedy)
            space, driver = self._env.single_action_space, self._env.driver_env
            keys = keys_for(space, env_type.keys if env_type else keys_of_env(driver))
            self.key_map = KeyMap(space, keys)
            self.has_arrows = any(key.name in DIRECTIONS for key in keys)
            self._motion = Motion(driver)
            self.pictures_per_step = self._motion.pictures_per_step
            self.fps = self._motion.fps / self.pictures_per_step
            self._for_me = {"agent": self.agent} if env_type and self._env.num_agents > 1 else {}
            self.scores: list[float] = []
            self.reset()
        except BaseException:
            self.close()
            raise

    def _check(self, run: Run | None) -> None:
        agents = self._env.num_agents
        if not 0 <= self.agent < agents:
            raise APIUsageError(
                f"puffer play: --player must be at least 0 and less than {agents}, the number of agents in "
                f"{self.name}, got {self.agent}"
            )
        if run and agents == 1 and not self.watched:
            raise APIUsageError(
                f"puffer play: {self.name} has one agent, which you play; remove --checkpoint, "
                f"or watch the policy play: {as_typed(f'puffer play --watch {run.argument}')}"
            )

    def reset(self) -> None:
        """Start another episode."""
        self._observations, _ = self._env.reset()
        self._opponents.begin()
        self.steps, self.reward, self.total = 0, 0.0, 0.0
        self.over = self.out = False

    def step(self, action: Any = None, show: Callable[[Frame], None] | None = None) -> None:
        """Step the environment. If the episode is over, do nothing.

        Args:
            action: Action of the user, ignored if ``watched`` is True.
            show: Function that receives the frames between the two steps, without the last one.
        """
        if self.over:
            return
        # The opponents act for all agents. The user's action replaces one of them.
        actions = np.array(self._opponents.act(self._observations))
        if not self.watched:
            actions[self.agent] = action
        if show is not None:
            for picture in self._motion.between(actions, **self._for_me):
                show(picture)
        absent = ~self._env.masks
        self._observations, rewards, terminals, truncations, infos = self._env.step(actions)
        self.steps += 1
        self.reward = float(rewards[self.agent])
        self.total += self.reward
        masks = self._env.masks
        self.out = not masks[self.agent]
        self._opponents.begin(terminals | truncations | absent)
        if (terminals | truncations | ~masks).all():
            # Either the episode is over, or all agents ended in the same step while the environment continues.
            self._observations, *_ = self._env.step(actions)
            self.over = not self._env.masks.any()
        if self.over or terminals[self.agent] or truncations[self.agent]:  # not if only other agents have ended
            self.scores += [float(info["score"]) for info in infos if "score" in info]

    def picture(self) -> Frame:
        """Render the environment to uint8 ``(height, width, 3)``.

        Raises:
            APIUsageError: The environment cannot be rendered.
        """
        frame = picture_of(self._env.driver_env, **self._for_me)
        if frame is None:
            raise APIUsageError(f"puffer play: {self.name} cannot be rendered; play an environment that can")
        return frame

    def areas(self) -> dict[int, Area]:
        """Return the image areas of actions. Most environments have none."""
        find = getattr(self._env.driver_env, "areas", None)
        return {} if find is None or self.over else find(**self._for_me)

    def lines(self, has_mouse: bool = True) -> list[str]:
        """Return two lines of text: the state of the episode, and the keys (and clicks, if there is a mouse)."""
        parts = [self._title, f"step {self.steps}", f"reward {self.reward:g}", f"return {self.total:g}"]
        if self.scores:
            parts.append(f"last score {self.scores[-1]:g}")
        if self.over or self.out:
            over, out = ("over", "out") if self.watched else ("over; press r", "you are out")
            parts.append(over if self.over else out)
        if self.key_map.types:
            parts.append(f"action: {self.key_map.typed}_")
        keys = [*([] if self.watched else self.key_map.help()), "r: restart", "q: quit"]
        if self.areas() and not self.watched:
            ways = {"click on a place": has_mouse, "choose a place with arrows and enter": not self.has_arrows}
            keys[:0] = [way for way, is_open in ways.items() if is_open]
        return ["   ".join(parts), "   ".join(keys)]

    def result(self) -> str:
        """Return a summary of the session: the best score, or the return so far."""
        name = registry.short_name(self.name)
        if not self.scores:
            return f"{name}: no episode was finished; return {self.total:g} after {self.steps} steps"
        return f"{name}: best score {max(self.scores):g}, episodes finished: {len(self.scores)}"

    def close(self) -> None:
        """Close the environment."""
        self._env.close()


def play(session: Session, viewer: Viewer, fps: float) -> None:
    """Play or watch at ``fps`` steps per second, until the user presses "q" or closes the viewer."""
    user = _User(session)
    rate = (
        max(fps, MIN_POLLS_PER_S) if session.key_map.waits and not session.watched else fps * session.pictures_per_step
    )
    pace, pause = Pace(rate), 0  # iterations since the end of the episode

    def show(picture: Frame) -> None:
        viewer.show(picture, session.lines(viewer.has_mouse))
        pace.wait()

    viewer.show(session.picture(), session.lines(viewer.has_mouse))
    while not viewer.closed:
        pace.wait()
        pressed = viewer.pressed()
        if "q" in pressed:
            return
        pause = pause + 1 if session.over and session.watched else 0
        if "r" in pressed or pause > NEXT_AFTER_S * rate:
            session.reset()
        action = None if session.watched else user.action(viewer, pressed)
        moves = session.watched or action is not None
        if moves:
            session.step(action, show)
        if pressed or moves:
            viewer.show(user.marked(session.picture()), session.lines(viewer.has_mouse))


class _User:
    """Actions of the user, from keyboard and mouse."""

    def __init__(self, session: Session) -> None:
        self._session, self._key_repeat, self._cursor = session, _KeyRepeat(), Cursor()

    def action(self, viewer: Viewer, pressed: Sequence[str]) -> Any:
        """Return the chosen action, or None if there is none yet."""
        keys, held, clicks = self._session.key_map, viewer.held, viewer.clicks()
        if not keys.waits:
            action = keys.action({*pressed, *held})
        elif keys.types:
            action = keys.read(pressed)
        else:
            action = keys.action(self._key_repeat(pressed, held))
        if action is None:
            action = self._cursor.choose(self._session.areas(), () if self._session.has_arrows else pressed, clicks)
        return action

    def marked(self, picture: Frame) -> Frame:
        """Return ``picture`` with a border around the selected area."""
        return self._cursor.marked(picture, self._session.areas())


class _KeyRepeat:
    """Key repetition for environments that wait for a key."""

    def __init__(self) -> None:
        self._down_since: dict[str, float] = {}
        self._last: Collection[str] = ()
        self._when = 0.0

    def __call__(self, pressed: Sequence[str], held: Collection[str]) -> set[str]:
        now = time.monotonic()
        self._down_since = {name: self._down_since.get(name, now) for name in held}
        wanted = {*pressed, *(name for name, since in self._down_since.items() if now - since > REPEATS_AFTER_S)}
        if wanted == self._last and now - self._when < REPEATS_S:
            return set()
        if wanted:
            self._last, self._when = wanted, now
        return wanted


def _trained(run: Run, config: Config, env: Any, seed: int, greedy: bool) -> tuple[Any, Player]:
    """Return the environment with the observation normalization of ``run``, and a player with the policy of ``run``."""
    import torch

    policy = load_policy(config, run)
    generator = torch.Generator(next(policy.parameters()).device).manual_seed(seed)
    return with_moments(env, policy), PolicyPlayer(policy, env.num_agents, generator, greedy)


def _config_of(run: Run, name: str) -> Config:
    config = run.settings()
    if config.env_name != name:
        raise APIUsageError(f"puffer play: {run.folder} is a run of {config.env_name}, not of {name}")
    return config
