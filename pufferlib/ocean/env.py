"""OceanEnv: the one class that serves every C environment."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array
from pufferlib.env import (
    AUTORESET_MODES,
    Autoreset,
    EnvIds,
    Infos,
    PufferEnv,
    Seeds,
    Stepped,
    check_env_ids,
    env_seeds,
)
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.ocean._ocean import OceanBatch
from pufferlib.ocean.arguments import check_count, checked_seed, checked_threads
from pufferlib.ocean.files import CFile, compile_file, is_c_file, load_type
from pufferlib.ocean.pixels import checked_pixels
from pufferlib.ocean.state import code_of, pack, unpack
from pufferlib.ocean.types import EnvType, env_types, spaces_of
from pufferlib.render.video import Frame
from pufferlib.render.view import RENDER_MODES, View
from pufferlib.seeding import env_seed

__all__ = ["OceanEnv", "type_of"]


class OceanEnv(PufferEnv):
    """``num_envs`` games of one C environment, stepped together.

    The arrays that ``reset`` and ``step`` return are the env's own and change with the next step:
    copy what you keep, and do not write into ``observations``, because a step may draw only what
    has changed.

    Besides a PufferEnv's attributes it has ``agents_end``, whether each agent has episodes of its own (it ends and
    begins another while its game goes on) or a game's agents share one, ``game_bytes``, the memory of a game, and
    ``frames_per_step``, how many frames of the game a step plays.

    Args:
        name: One of ``pufferlib.ocean.names()``, or the path of a C file, which is compiled if it has changed.
        num_envs: Games; ``num_agents`` is that times the players of a game.
        seed: Game i draws from ``env_seed(seed, i)``, until ``reset`` is given another seed.
        render_mode: Output of ``render``. None or "rgb_array": it returns a picture. "ansi": it returns the
            picture as text for a terminal. "human": a window shows a game after every reset and step, as fast as
            the game is meant to be; closing it ends the program, as ``sys.exit`` does.
        log_interval: Steps between two reports on the episodes that finished.
        buf: Arrays to write into, C-contiguous; None allocates new ones.
        num_threads: Threads that share a step, the caller's included; "auto" is one per usable core.
            More than there are usable cores are as many as these, and short steps, which are done
            before another thread has heard of them, use fewer. The data are the same for any number.
        autoreset: Mode of the steps after an episode's end. "same_step": its row shows the next one's
            first observation at once, and ``final_observations`` keeps the last one. "next_step":
            the step after it begins the next one, ignores the action and has reward 0. "disabled":
            the game is not stepped until ``reset``, with reward 0, no ends and mask False.
        pixels: Height and width of pictures that agents see instead of their usual observations: uint8
            ``(3, height, width)``, whatever ``render_mode`` is. Each agent sees the one that is drawn for it, as
            ``render(agent=...)`` draws it.
        check_actions: Whether ``step`` refuses actions that the action space does not have, as ``Serial`` and
            the other backends do. It costs a pass over them, so it is for debugging: without it such a number
            is what the rules of the environment make of it, never an error.
        **params: Keywords of the environment; ``help(pufferlib.ocean.Pong)`` lists Pong's.

    Raises:
        UnknownNameError: No such environment, or no such keyword; the nearest are suggested.
        APIUsageError: A value is of the wrong type or out of range; the compiler refuses the C file.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": list(RENDER_MODES)}
    single_observation_space: Box

    def __init__(
        self,
        name: str | CFile,
        num_envs: int = 1,
        seed: int = 0,
        render_mode: str | None = None,
        log_interval: int = 128,
        buf: Mapping[str, Array] | None = None,
        num_threads: int | Literal["auto"] = 1,
        autoreset: Autoreset = "same_step",
        pixels: Sequence[int] | None = None,
        check_actions: bool = False,
        **params: Any,
    ) -> None:
        self._origin = compile_file(name) if isinstance(name, str) and is_c_file(name) else name
        self._type = env_type = type_of(self._origin)
        where = env_type.class_name
        check_count(where, "num_envs", num_envs)
        check_count(where, "log_interval", log_interval)
        self.name = env_type.name
        self.render_mode, self.log_interval = render_mode, log_interval
        if autoreset not in AUTORESET_MODES:
            raise UnknownNameError.of(where, "autoreset", autoreset, AUTORESET_MODES)
        self.autoreset = autoreset
        threads = checked_threads(where, num_threads)
        self._keywords = {"num_threads": num_threads, "pixels": pixels, "check_actions": check_actions, **params}
        values = env_type.numbers(params)
        self._values = {p.name: value for p, value in zip(env_type.parameters, values, strict=True)}
        self.frames_per_step = int(self._values.get("frameskip", 1))
        self._copy: OceanEnv | None = None  # of a game, for the frames between two steps
        size = checked_pixels(where, pixels)
        if not isinstance(check_actions, bool):
            raise APIUsageError(f"{where}: check_actions must be True or False, got {check_actions!r}")
        self._batch = OceanBatch(env_type.index, num_envs, values, log_interval, autoreset, threads, pixels=size)
        self.num_envs = num_envs
        self._describe(self._batch.spec)
        if size is not None:
            self.action_mask = None  # a picture has none
        self._seed: int | None = checked_seed(where, seed)
        super().__init__(buf)
        self._batch.bind(
            self.observations,
            self.final_observations,
            self.actions,
            self.rewards,
            self.terminals,
            self.truncations,
            self.masks,
        )
        self._act: Callable[[Any], bool] = self._batch.step
        if check_actions:
            self._check_actions = ActionCheck(f"{where}.step", self.single_action_space, self.num_agents)
            self._act = self._act_checked
        self._step = self._act
        self._shown = 0  # the game in the window
        self._view = View(where, render_mode, self.metadata["render_fps"])
        if self._view.is_live:
            self._step = self._step_in_view
        self._made_with = frozenset(vars(self))

    def _describe(self, spec: Mapping[str, Any]) -> None:
        """Set the spaces and attributes of a PufferEnv from the spec of the C environment."""
        self.single_observation_space, self.single_action_space, self.action_mask = spaces_of(spec)
        self.num_agents = self.num_envs * spec["agents"]
        self.agents_end: bool = spec["agents_end"]
        self.game_bytes: int = spec["game_bytes"]
        self.metadata = {**type(self).metadata, "render_fps": spec["frames_per_second"]}  # type: ignore[misc]
        self._picture_shape: tuple[int, ...] = (*spec["picture"], 3)

    def reset(self, seed: Seeds = None, *, env_ids: EnvIds = None) -> tuple[Array, Infos]:
        """Begin new episodes and, where all games are reset, new statistics.

        Args:
            seed: Seeds all games, or a list with one for each that is reset: it plays then as an environment of one
                game does that is given this seed. None lets their streams go on (the first time: the seed that the
                constructor was given).
            env_ids: Games that are reset, as ints or as a mask, bool ``(num_envs,)``; the others stay where they are.
                None for all.

        Returns:
            observations ``(num_agents, *shape)`` and an empty list.

        Raises:
            APIUsageError: A seed is no int; there are no such games; some are to be reset before all were.
        """
        where = f"{self._type.class_name}.reset"
        chosen = range(self.num_envs) if env_ids is None else check_env_ids(where, env_ids, self.num_envs)
        seeds = self._seeds_of(where, seed if env_ids is not None or seed is not None else self._seed, chosen)
        if env_ids is None:
            self._batch.reset(seeds)
            self._seed = None
        else:
            self._batch.reset_games(chosen, seeds)
        if self._view.is_live:
            self.render(self._shown)
        return self.observations, []

    def _seeds_of(self, where: str, seed: Seeds, games: Sequence[int]) -> list[int | None]:
        seeds = env_seeds(where, seed, games)
        if isinstance(seed, int | np.integer | None):
            return seeds
        return [None if each is None else env_seed(each, 0) for each in seeds]

    def step(self, actions: Any) -> Stepped:
        """Act with every agent once.

        Args:
            actions: ``(num_agents, *action_shape)``: integers in any array or sequence, or for a
                Box floats. What an environment does with a number out of range is part of its rules, unless it was
                made with ``check_actions``.

        Returns:
            observations ``(num_agents, *shape)``, rewards float32 ``(num_agents,)``, terminals and
            truncations bool ``(num_agents,)``, and a list that holds one dict every
            ``log_interval`` steps if episodes have finished: means of their metrics,
            ``episode_return`` and ``episode_length``, and their number ``n``.

        Raises:
            APIUsageError: Wrong shape or type of actions; before ``reset``; after ``close``; with ``check_actions``
                an action that is out of range.
        """
        infos: Infos = self._batch.report() if self._step(actions) else []
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def render(self, env_index: int = 0, agent: int | None = None) -> npt.NDArray[np.uint8] | str | None:
        """Show game ``env_index``, as ``render_mode`` says.

        Args:
            env_index: Which game.
            agent: Which of its agents is marked, or followed, in a game of several; None for nobody.

        Returns:
            A picture, uint8 ``(height, width, 3)``, red green blue; with "ansi" lines of half blocks, as large as
            the terminal has room for; with "human" None: the window shows this game from now on.

        Raises:
            APIUsageError: There is no such game or agent.
            BindingMissing: A window needs pygame.
            PufferError: A window needs a display.
            SystemExit: The person has closed the window. The environment goes on without if it is caught.
        """
        picture = np.empty(self._picture_shape, np.uint8)
        self._batch.render(env_index, -1 if agent is None else self._checked_agent("render", agent), picture)
        self._shown = env_index
        return self._view.show(picture)

    def frames(self, actions: Any, env_index: int = 0, agent: int | None = None, every: int = 1) -> Iterator[Frame]:
        """Draw the frames that a step with ``actions`` would play in simulation ``env_index``, without making the step.

        Args:
            actions: As ``step`` takes them.
            env_index: Which game.
            agent: As ``render`` takes it.
            every: Show one of so many frames.

        Yields:
            The pictures between the one that ``render`` returns now and the one that it returns after the step,
            uint8 ``(height, width, 3)``; none where a step plays one frame.

        Raises:
            APIUsageError: As ``step`` and ``render`` do.
        """
        if self.frames_per_step <= every:
            return
        if self._copy is None:
            params: dict[str, Any] = {p.name: p.kind(self._values[p.name]) for p in self._type.parameters}
            self._copy = OceanEnv(self._origin, autoreset="disabled", **params)
        agents = self.num_agents // self.num_envs
        mine = np.asarray(actions)[env_index * agents : (env_index + 1) * agents]
        if not 0 <= env_index < self.num_envs:
            where = f"{self._type.class_name}.frames"
            raise APIUsageError(f"{where}: env_index must be at least 0 and below {self.num_envs}, got {env_index}")
        now = self._batch.save_games([env_index])
        for frame in range(every, self.frames_per_step, every):
            self._copy._batch.load_games([0], now)
            self._copy._batch.set_parameters([*{**self._values, "frameskip": frame}.values()])
            self._copy.step(mine)
            picture = self._copy.render(agent=agent)
            assert isinstance(picture, np.ndarray)
            yield picture

    def save_state(self, env_ids: EnvIds = None) -> bytes:
        """State of games as bytes, from which ``load_state`` goes on to the same observations, rewards and pictures.

        Random numbers and what the rows show are part of it; final observations, whose episodes are over, are not.

        Args:
            env_ids: Games, as ints or as a mask, bool ``(num_envs,)``; None for all.

        Raises:
            APIUsageError: Nothing was reset yet, or there are no such games.
        """
        where = f"{self._type.class_name}.save_state"
        chosen = check_env_ids(where, env_ids, self.num_envs)
        steps = self._batch.steps if env_ids is None else None
        return pack({**self._facts(), "games": len(chosen), "steps": steps}, self._batch.save_games(chosen))

    def load_state(self, state: bytes, env_ids: EnvIds = None) -> Array:
        """Let games be what those were that ``save_state`` saved, here or in another process.

        The bytes become the memory of games in C: load only states of those whose author you trust.

        Args:
            state: Of as many games.
            env_ids: Games, as ints or as a mask, bool ``(num_envs,)``, in the order in which they were saved; None for
                all.

        Returns:
            observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: The state is damaged, or of another environment, version or number of games, of other
                parameters or another autoreset mode. Nothing is changed then.
        """
        where = f"{self._type.class_name}.load_state"
        chosen = check_env_ids(where, env_ids, self.num_envs)
        facts, games = unpack(where, state, self._facts())
        if facts["games"] != len(chosen):
            raise APIUsageError(
                f"{where}: the state must be of {len(chosen)} games, got one of {facts['games']}; name those that are "
                "to be loaded by env_ids"
            )
        self._batch.load_games(chosen, games)
        if env_ids is None:
            self._batch.steps = facts["steps"] or 0
            self._seed = None
        if self._view.is_live:
            self.render(self._shown)
        return self.observations

    def restart_from(self, state: bytes, env_ids: EnvIds = None) -> Array:
        """Begin the next episode of games in the middle: where a game was that ``save_state`` saved.

        It has random numbers of its own, so the same actions may come to something else, and no report counts it. The
        rewards and ends of the step before stay.

        Args:
            state: Of one game.
            env_ids: Games that go on from it, each by itself; None for all.

        Returns:
            observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: As ``load_state`` does; or agents have episodes of their own.
        """
        where = f"{self._type.class_name}.restart_from"
        chosen = check_env_ids(where, env_ids, self.num_envs)
        if self.agents_end:
            raise APIUsageError(
                f"{where}: the agents of a game must begin and end together, got agents that end one by one; "
                "use load_state, which replaces the whole game"
            )
        self._batch.restart_games(chosen, unpack(where, state, self._facts())[1])
        return self.observations

    def __reduce__(self) -> tuple[Any, ...]:
        """Recipe for copy and pickle: an environment made alike, with arrays of its own, that goes on from here.

        Raises:
            APIUsageError: The environment is closed.
        """
        keywords = {
            **{name: getattr(self, name) for name in ("num_envs", "render_mode", "log_interval", "autoreset")},
            **self._keywords,
        }
        state = {
            "games": self.save_state() if self._batch.ready else None,
            "final_observations": self.final_observations.copy(),
            "_seed": self._seed,
            "_infos": self._infos,
            "_ready": self._ready,
            "_shown": self._shown,
            **{name: value for name, value in vars(self).items() if name not in self._made_with},
        }
        return _remake, (type(self), self._origin, keywords), state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of ``__reduce__``."""
        state = dict(state)
        games, self.final_observations[:] = state.pop("games"), state.pop("final_observations")
        if games is not None:
            facts, memory = unpack(type(self).__name__, games, self._facts())
            self._batch.load_games(range(self.num_envs), memory)
            self._batch.steps = facts["steps"]
        vars(self).update(state)

    def _facts(self) -> dict[str, Any]:
        """Facts on which the meaning of a state depends."""
        kind = self._type
        return {
            "env": kind.class_name,
            "code": code_of(self._origin),
            "parameters": self._values,
            "autoreset": self.autoreset,
        }

    def _checked_agent(self, method: str, agent: object) -> int:
        agents = self.num_agents // self.num_envs
        if not isinstance(agent, int | np.integer) or not 0 <= agent < agents:
            where = f"{self._type.class_name}.{method}"
            allowed = "None or an int" if method == "render" else "an int"
            raise APIUsageError(f"{where}: agent must be {allowed} from 0 to {agents - 1}, got {agent!r}")
        return int(agent)

    def areas(self, env_index: int = 0, agent: int = 0) -> dict[int, tuple[int, int, int, int]]:
        """Rectangles in an agent's picture of simulation ``env_index`` that stand for actions, for the mouse.

        Returns:
            x, y, width and height in px, by action.

        Raises:
            APIUsageError: There is no such agent.
        """
        return self._batch.areas(env_index, self._checked_agent("areas", agent))

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute that this object has. Settings of the game are keywords, and stay what they are.

        Raises:
            APIUsageError: There is no such attribute.
        """
        if not hasattr(self, name):
            raise APIUsageError(
                f"{self._type.class_name}.set_attr: a game in C has no attribute {name!r}, and would not notice it; "
                "give settings as keywords when you make the environment"
            )
        super().set_attr(name, values)

    def close(self) -> None:
        """Free the games, and close the window. The arrays stay valid; closing twice is fine."""
        self._batch.close()
        self._view.close()
        if self._copy is not None:
            self._copy.close()

    def _act_checked(self, actions: Any) -> bool:
        return self._batch.step(self._check_actions(actions))

    def _step_in_view(self, actions: Any) -> bool:
        is_due = self._act(actions)
        if self._view.is_live:
            self._view.wait()
            self.render(self._shown)
        return is_due


def _remake(cls: type[OceanEnv], origin: str | CFile, keywords: dict[str, Any]) -> OceanEnv:
    """Make an environment of a class whose own ``__init__`` may take other arguments."""
    env = cls.__new__(cls)
    OceanEnv.__init__(env, origin, **keywords)
    return env


def type_of(name: str | CFile) -> EnvType:
    """The C environment called ``name``, or that of a C file; a path is compiled if it has changed.

    Raises:
        UnknownNameError: There is none.
        APIUsageError: The compiler refuses the C file.
    """
    if isinstance(name, CFile):
        return load_type(name)
    if is_c_file(name):
        return load_type(compile_file(name))
    known = env_types()
    if name not in known:
        raise UnknownNameError.of("pufferlib.ocean", "environment", name, known)
    return known[name]
