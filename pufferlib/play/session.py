"""A game that a person plays, whatever shows it."""

import dataclasses
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from pufferlib import ocean, registry, vector
from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import as_typed
from pufferlib.play.cursor import DIRECTIONS, Area, Cursor
from pufferlib.play.keys import KeyMap, keys_for
from pufferlib.play.meanings import keys_of_env
from pufferlib.play.viewer import Viewer
from pufferlib.registry import creators
from pufferlib.render.motion import Motion
from pufferlib.render.pace import Pace
from pufferlib.render.picture import picture_of
from pufferlib.render.video import Frame
from pufferlib.training.config import Config
from pufferlib.training.normalization import with_moments
from pufferlib.training.players import Player, PolicyPlayer, RandomPlayer
from pufferlib.training.runs import Run, load_policy

__all__ = ["Session", "play"]

NEXT_AFTER_S = 1.5  # that an episode is over, when nobody plays who could press a key
# Where the game waits for a key:
LEAST_LOOKS = 30.0  # at the keyboard in a second
REPEATS_AFTER_S = 0.3  # that a key is down
REPEATS_S = 0.12  # between two of its actions


class Session:
    """One environment with a person for one of its agents, or with a person who watches.

    Attributes:
        fps: Steps in a second.
        pictures_per_step: What ``step`` shows of each, and the last picture.
        watched: A trained policy plays all agents.

    Args:
        name: Of the environment.
        keywords: For it.
        seed: Of it and of the other agents.
        agent: Which one is the person.
        run: A run whose policy plays the others; None lets them act at random.
        watched: It plays the agent of the person too.

    Raises:
        APIUsageError: The environment draws no pictures, or ``agent`` or ``files`` do not suit it.
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
        # A game that is over stands still, so that its last picture can be seen.
        drawn = {**creators.single_game(creator, keywords), "render_mode": "rgb_array"}
        env_type = ocean.type_made_by(creator)
        if env_type:
            drawn["log_interval"] = 1
        self._env = vector.make(creator, env_kwargs=drawn, backend="Serial", seed=seed, autoreset="disabled")
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
                f"puffer play: --player must be at least 0 and below {agents}, the agents of {self.name}, "
                f"got {self.agent}"
            )
        if run and agents == 1 and not self.watched:
            raise APIUsageError(
                f"puffer play: {self.name} has one agent, which is you; leave out --checkpoint, "
                f"or watch it play: {as_typed(f'puffer play --watch {run.argument}')}"
            )

    def reset(self) -> None:
        """Begin another episode."""
        self._observations, _ = self._env.reset()
        self._opponents.begin()
        self.steps, self.reward, self.total = 0, 0.0, 0.0
        self.over = self.out = False

    def step(self, action: Any = None, show: Callable[[Frame], None] | None = None) -> None:
        """Act, and let the others act. A game that is over stands still.

        Args:
            action: Of the person; counts for nothing if the game is watched.
            show: Takes the pictures of the way there, without the last.
        """
        if self.over:
            return
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
            # Either the game is over, or all agents of a game that goes on have ended in one step.
            self._observations, *_ = self._env.step(actions)
            self.over = not self._env.masks.any()
        if self.over or terminals[self.agent] or truncations[self.agent]:  # not if only others have ended
            self.scores += [float(info["score"]) for info in infos if "score" in info]

    def picture(self) -> Frame:
        """Picture of the environment, uint8 ``(height, width, 3)``.

        Raises:
            APIUsageError: Nothing.
        """
        frame = picture_of(self._env.driver_env, **self._for_me)
        if frame is None:
            raise APIUsageError(f"puffer play: {self.name} draws no pictures; play an environment that does")
        return frame

    def areas(self) -> dict[int, Area]:
        """Places that actions have in the picture; none in most games."""
        find = getattr(self._env.driver_env, "areas", None)
        return {} if find is None or self.over else find(**self._for_me)

    def lines(self, has_mouse: bool = True) -> list[str]:
        """Lines of text: the state of the game, and the keys; places to click on where there is a mouse."""
        parts = [self._title, f"step {self.steps}", f"reward {self.reward:g}", f"return {self.total:g}"]
        if self.scores:
            parts.append(f"last score {self.scores[-1]:g}")
        if self.over or self.out:
            over, out = ("over", "out") if self.watched else ("over; press r", "you are out")
            parts.append(over if self.over else out)
        if self.key_map.types:
            parts.append(f"action: {self.key_map.typed}_")
        keys = [*([] if self.watched else self.key_map.help()), "r: begin again", "q: quit"]
        if self.areas() and not self.watched:
            ways = {"click on a place": has_mouse, "choose a place by arrows and enter": not self.has_arrows}
            keys[:0] = [way for way, is_open in ways.items() if is_open]
        return ["   ".join(parts), "   ".join(keys)]

    def result(self) -> str:
        """Text for when it is over: the best score, or the return so far."""
        name = registry.short_name(self.name)
        if not self.scores:
            return f"{name}: no episode was finished; return {self.total:g} after {self.steps} steps"
        return f"{name}: best score {max(self.scores):g}, episodes finished: {len(self.scores)}"

    def close(self) -> None:
        """End it."""
        self._env.close()


def play(session: Session, viewer: Viewer, fps: float) -> None:
    """Let a person play, or watch, ``fps`` steps a second, until they have enough."""
    person = _Person(session)
    rate = max(fps, LEAST_LOOKS) if session.key_map.waits and not session.watched else fps * session.pictures_per_step
    pace, pause = Pace(rate), 0  # looks at a game that is over

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
        action = None if session.watched else person.action(viewer, pressed)
        moves = session.watched or action is not None
        if moves:
            session.step(action, show)
        if pressed or moves:
            viewer.show(person.marked(session.picture()), session.lines(viewer.has_mouse))


class _Person:
    """Actions of a person at keyboard and mouse."""

    def __init__(self, session: Session) -> None:
        self._session, self._one_by_one, self._cursor = session, _OneByOne(), Cursor()

    def action(self, viewer: Viewer, pressed: Sequence[str]) -> Any:
        """The action that was chosen, None if there is none yet."""
        keys, held, clicks = self._session.key_map, viewer.held, viewer.clicks()
        if not keys.waits:
            action = keys.action({*pressed, *held})
        elif keys.types:
            action = keys.read(pressed)
        else:
            action = keys.action(self._one_by_one(pressed, held))
        if action is None:
            action = self._cursor.choose(self._session.areas(), () if self._session.has_arrows else pressed, clicks)
        return action

    def marked(self, picture: Frame) -> Frame:
        """``picture`` with the place that the person is at."""
        return self._cursor.marked(picture, self._session.areas())


class _OneByOne:
    """Keys that count in a game that waits for one, when one is held for some time."""

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
    """The environment as the policy of ``run`` sees it, and that policy at play."""
    import torch

    policy = load_policy(config, run)
    generator = torch.Generator(next(policy.parameters()).device).manual_seed(seed)
    return with_moments(env, policy), PolicyPlayer(policy, env.num_agents, generator, greedy)


def _config_of(run: Run, name: str) -> Config:
    config = run.settings()
    if config.env_name != name:
        raise APIUsageError(f"puffer play: {run.folder} is a run of {config.env_name}, not of {name}")
    return config
