"""Session of interactive play, independent of viewers and of time."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

from pufferlib import ocean, registry, vector
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError
from pufferlib.legal_actions import LegalActions
from pufferlib.machine.commands import as_typed
from pufferlib.models.players import Player, PolicyPlayer, RandomPlayer
from pufferlib.play.controls import DIRECTIONS, Area, KeyMap, keys_for, keys_of_env
from pufferlib.registry import creators
from pufferlib.render.motion import Motion
from pufferlib.render.picture import picture_or_text_of
from pufferlib.render.video import Frame
from pufferlib.runs.folder import Run
from pufferlib.settings.config import Config
from pufferlib.training.agent import load_policy
from pufferlib.training.normalization import with_moments

__all__ = ["Session"]

RENDER_MODES = ("rgb_array", "ansi")  # the preferred one first


class Session:
    """One environment in which the user plays one agent, or watches a trained policy.

    Attributes:
        agent: Index of the agent that the user plays, or whose rewards are shown. Can be changed at any time.
        num_agents: Number of agents.
        has_policy: True if a trained policy plays the other agents.
        watched: True if the policy plays all agents. Can be changed at any time if ``has_policy`` is True.
        fps: Steps per second.
        pictures_per_step: Number of frames per step.

    Args:
        name: Name of the environment.
        keywords: Keyword arguments of the environment.
        seed: Seed of the environment and of the other agents.
        agent: Index of the user's agent.
        run: Run whose policy plays the other agents. If None, they act at random.
        watched: True to let the policy play the user's agent too.
        where: Start of error messages.

    Raises:
        APIUsageError: The environment has no such agent or cannot be rendered, or ``run`` cannot be used with it.
    """

    def __init__(
        self,
        name: str,
        keywords: dict[str, Any],
        seed: int = 0,
        agent: int = 0,
        run: Run | None = None,
        watched: bool = False,
        where: str = "puffer play",
    ) -> None:
        self.name, self.agent, self.watched, self.has_policy = name, agent, watched, run is not None
        self._where, self._seed = where, seed
        self._title, self._policy = registry.short_name(name), run.folder if run else None
        config = _config_of(where, run, name) if run else None
        keywords = {**(config.env if config else {}), **keywords}
        declared = creators.render_modes(registry.env_creator(name))
        for mode in RENDER_MODES:
            if declared is None or mode in declared:
                self._open(mode, keywords, run, config)
                if self._rendered() is not None:
                    return
                self.close()
        raise APIUsageError(
            f"{where}: {name} cannot be rendered; expected its render() to return an image (uint8 array of shape "
            "(height, width, 3), with render_mode='rgb_array') or text (str, with 'ansi'); add one of these modes"
        )

    def _open(self, render_mode: str, keywords: dict[str, Any], run: Run | None, config: Config | None) -> None:
        """Make the environment and the players, and start an episode."""
        creator = registry.env_creator(self.name)
        drawn = {**creators.single_game(creator, keywords), "render_mode": render_mode}
        env_type = ocean.type_made_by(creator)
        if env_type:
            drawn["log_interval"] = 1
        # Without autoreset the last frame stays visible after the end of an episode.
        self._env = vector.make(
            creator, env_kwargs=drawn, backend="Serial", seed=self._seed, autoreset=AutoresetMode.DISABLED
        )
        try:
            self.num_agents = self._env.num_agents
            self._check(run)
            self._opponents: Player = RandomPlayer(self._env, self._seed)
            if run and config:
                config = dataclasses.replace(config, env=keywords)
                greedy = self.watched and config.eval.greedy
                self._env, self._opponents = _trained(run, config, self._env, self._seed, greedy)
            space, driver = self._env.single_action_space, self._env.driver_env
            keys = keys_for(space, env_type.keys if env_type else keys_of_env(driver))
            self.key_map = KeyMap(space, keys)
            self._legal = LegalActions(self._env, 1, self._seed)
            self.has_arrows = any(key.name in DIRECTIONS for key in keys)
            self._motion = Motion(driver)
            self.pictures_per_step = self._motion.pictures_per_step
            self.fps = self._motion.fps / self.pictures_per_step
            self._has_agent_views = env_type is not None and self.num_agents > 1
            self.scores: list[float] = []
            self.reset()
        except BaseException:
            self.close()
            raise

    def _check(self, run: Run | None) -> None:
        if not 0 <= self.agent < self.num_agents:
            raise APIUsageError(
                f"{self._where}: --player must be at least 0 and less than {self.num_agents}, the number of agents in "
                f"{self.name}, got {self.agent}"
            )
        if run and self.num_agents == 1 and not self.watched:
            raise APIUsageError(
                f"{self._where}: {self.name} has one agent, which you play; remove --checkpoint, "
                f"or watch the policy play: {as_typed(f'puffer play --watch {run.argument}')}"
            )

    def reset(self) -> None:
        """Start another episode."""
        self._observations, _ = self._env.reset()
        self._opponents.begin()
        self.steps = 0
        self._rewards, self._totals = np.zeros((2, self.num_agents))
        self.over = False

    def step(self, action: Any = None, show: Callable[[Frame], None] | None = None) -> None:
        """Step the environment. If the episode is over, do nothing.

        If the observation has an action mask, an illegal action becomes the first legal one. An environment that waits
        for a key then waits for another one.

        Args:
            action: Action of the user, ignored if ``watched`` is True.
            show: Function that receives the frames between the two steps, without the last one.
        """
        if self.over:
            return
        legal = np.array(action)
        if not self.watched:
            legal = self._legal.without_illegal(action, self._observations[self.agent])
        if self.waits and not np.array_equal(legal, action):
            return
        # The opponents act for all agents. The user's action replaces one of them.
        actions = np.array(self._opponents.act(self._observations))
        if not self.watched:
            actions[self.agent] = legal
        if show is not None:
            for picture in self._motion.between(actions, **self._for_me):
                show(picture)
        absent = ~self._env.masks
        self._observations, rewards, terminals, truncations, infos = self._env.step(actions)
        self.steps += 1
        self._rewards = np.array(rewards)
        self._totals += self._rewards
        masks = self._env.masks
        self._opponents.begin(terminals | truncations | absent)
        if (terminals | truncations | ~masks).all():
            # Either the episode is over, or all agents ended in the same step while the environment continues.
            self._observations, *_ = self._env.step(actions)
            self.over = not self._env.masks.any()
        if self.over or terminals[self.agent] or truncations[self.agent]:  # not if only other agents have ended
            self.scores += [float(info["score"]) for info in infos if "score" in info]

    @property
    def reward(self) -> float:
        """Reward of the agent in the last step."""
        return float(self._rewards[self.agent])

    @property
    def total(self) -> float:
        """Sum of the agent's rewards in this episode."""
        return float(self._totals[self.agent])

    @property
    def out(self) -> bool:
        """True if the agent has left the episode."""
        return not self._env.masks[self.agent]

    @property
    def waits(self) -> bool:
        """True if the environment waits for a key of the user before each step."""
        return self.key_map.waits and not self.watched

    def picture(self) -> Frame | str:
        """Render the environment to uint8 ``(height, width, 3)``, or to text if it has no images."""
        picture = self._rendered()
        return "" if picture is None else picture

    def areas(self) -> dict[int, Area]:
        """Return the image areas of actions. Most environments have none."""
        find = getattr(self._env.driver_env, "areas", None)
        return {} if find is None or self.over else find(**self._for_me)

    def state(self) -> list[str]:
        """Return a description of the episode: title, steps, rewards, scores."""
        title = f"{self._title}, played by {self._policy}" if self.watched else self._title
        parts = [title, f"step {self.steps}", f"reward {self.reward:g}", f"return {self.total:g}"]
        if self.num_agents > 1:
            parts.insert(1, f"agent {self.agent} of {self.num_agents}")
        if self.scores:
            parts.append(f"last score {self.scores[-1]:g}")
        if self.over or self.out:
            over, out = ("over", "out") if self.watched else ("over; press r", "you are out")
            parts.append(over if self.over else out)
        if self.key_map.types and not self.watched:
            parts.append(f"action: {self.key_map.typed}_")
        return parts

    def keys(self, has_mouse: bool = True) -> list[str]:
        """Return a description of each key of the agent, for example "left: move left", and of mouse clicks."""
        if self.watched:
            return []
        ways = {"click on a place": has_mouse, "choose a place with arrows and enter": not self.has_arrows}
        places = [way for way, is_open in ways.items() if is_open] if self.areas() else []
        return [*places, *self.key_map.help()]

    def result(self) -> str:
        """Return a summary of the session: the best score, or the return so far."""
        name = registry.short_name(self.name)
        if not self.scores:
            return f"{name}: no episode was finished; return {self.total:g} after {self.steps} steps"
        return f"{name}: best score {max(self.scores):g}, episodes finished: {len(self.scores)}"

    def close(self) -> None:
        """Close the environment."""
        self._env.close()

    def _rendered(self) -> Frame | str | None:
        return picture_or_text_of(self._env.driver_env, **self._for_me)

    @property
    def _for_me(self) -> dict[str, int]:
        """Keyword arguments of methods that show the view of one agent."""
        return {"agent": self.agent} if self._has_agent_views else {}


def _trained(run: Run, config: Config, env: Any, seed: int, greedy: bool) -> tuple[Any, Player]:
    """Return the environment with the observation normalization of ``run``, and a player with the policy of ``run``."""
    import torch

    policy = load_policy(config, run)
    generator = torch.Generator(next(policy.parameters()).device).manual_seed(seed)
    return with_moments(env, policy), PolicyPlayer(policy, env.num_agents, generator, greedy)


def _config_of(where: str, run: Run, name: str) -> Config:
    config = run.settings()
    if config.env_name != name:
        raise APIUsageError(f"{where}: {run.folder} is a run of {config.env_name}, not of {name}")
    return config
