"""Vector environment class shared by all C environments."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from pufferlib.actions import ActionCheck
from pufferlib.buffers import Array
from pufferlib.env import (
    AutoresetLike,
    AutoresetMode,
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
    """A batch of ``num_envs`` copies of one C environment, stepped together.

    ``reset`` and ``step`` return the environment's own arrays, which the next step overwrites. Copy what you
    want to keep. Do not write into ``observations``, because a step may update only the part that changed.

    Besides the attributes of ``PufferEnv`` it has:

    - ``agents_end``: True if each agent has its own episodes, which end and restart while the game continues. False if
      all agents of a game share one episode.
    - ``game_bytes``: Memory of one copy in bytes.
    - ``frames_per_step``: Number of frames that a step simulates.

    Args:
        name: One of ``pufferlib.ocean.names()``, or the path of a C file, which is compiled if it has changed.
        num_envs: Number of copies. ``num_agents`` is this number times the agents of one copy.
        seed: Seed. Copy i uses ``env_seed(seed, i)`` until you pass another seed to ``reset``.
        render_mode: Output of ``render``. None or "rgb_array": return an image. "ansi": return the image as text for a
            terminal. "human": show one copy in a window after every reset and step, at its normal speed. Closing the
            window ends the program, as ``sys.exit`` does.
        log_interval: Number of steps between two reports on the finished episodes. ``pending_infos`` returns a report
            at any time.
        buf: C-contiguous arrays to write into, or None to allocate new ones.
        num_threads: Number of threads that share a step, including the caller. "auto" is one per usable core, which is
            also the maximum. Short steps, which finish before another thread could start, use fewer. Results do not
            depend on this number.
        autoreset: Behavior after the end of an episode. "same_step": the last step already returns the first
            observation of the next episode, and ``final_observations`` keeps the last one. "next_step": the following
            step starts the next episode, ignores the action and has reward 0. "disabled": the copy is not stepped until
            ``reset``, with reward 0, no terminals or truncations, and mask False.
        pixels: Height and width of the images that agents observe instead of their usual observations, as uint8
            ``(3, height, width)``. Each agent gets the image that ``render(agent=...)`` draws for it. Independent of
            ``render_mode``.
        check_actions: Whether ``step`` rejects actions outside of the action space, as ``Serial`` and the other
            backends do. This costs a pass over the actions, so it is for debugging. Without it, the effect of an
            invalid action is up to the environment's rules, and it never raises an error.
        **params: Keywords of the environment. ``help(pufferlib.ocean.Pong)`` lists the keywords of Pong.

    Raises:
        UnknownNameError: The environment or a keyword does not exist. The error suggests similar names.
        APIUsageError: A value has the wrong type or is out of range, or the C file does not compile.
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
        autoreset: AutoresetLike = AutoresetMode.SAME_STEP,
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
        self.autoreset = mode = AutoresetMode.of(where, autoreset)
        threads = checked_threads(where, num_threads)
        self._keywords = {"num_threads": num_threads, "pixels": pixels, "check_actions": check_actions, **params}
        values = env_type.in_c(params)
        self._values = {p.name: value for p, value in zip(env_type.parameters, values, strict=True)}
        self.frames_per_step = int(self._values.get("frameskip", 1))
        self._copy: OceanEnv | None = None  # simulates the frames between two steps
        size = checked_pixels(where, pixels)
        if not isinstance(check_actions, bool):
            raise APIUsageError(f"{where}: check_actions must be True or False, got {check_actions!r}")
        self._batch = OceanBatch(env_type.index, num_envs, values, log_interval, mode.value, threads, pixels=size)
        self.num_envs = num_envs
        self._describe(self._batch.spec)
        if size is not None:
            self.action_mask = None  # images contain no action mask
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
        self._shown = 0  # index of the copy in the window
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
        """Start new episodes. Resetting all copies also resets the statistics.

        Args:
            seed: One seed for all copies, or a list with a seed for each copy that is reset. A copy seeded from a list
                behaves like an environment with ``num_envs=1`` and that seed. With None, random streams continue (the
                first reset uses the seed of the constructor).
            env_ids: Copies to reset, as ints or as a bool mask ``(num_envs,)``. The others continue. None resets all.

        Returns:
            Observations ``(num_agents, *shape)`` and an empty list.

        Raises:
            APIUsageError: A seed is not an int, an id does not exist, or a subset is reset before all copies were.
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
        """Step every copy once.

        Args:
            actions: Actions ``(num_agents, *action_shape)``: integers in any array or sequence, or floats for a Box.
                Unless ``check_actions`` is set, the effect of out-of-range numbers is up to the environment's rules.

        Returns:
            Observations ``(num_agents, *shape)``, rewards float32 ``(num_agents,)``, terminals and truncations bool
            ``(num_agents,)``, and a list of infos. Every ``log_interval`` steps, if episodes have finished, the list
            holds one dict with the means of their metrics, ``episode_return`` and ``episode_length``, and their number
            ``n``.

        Raises:
            APIUsageError: The actions have the wrong shape or type, or are out of range (with ``check_actions``), or
                the environment was not reset yet or is closed.
        """
        infos: Infos = self._batch.report() if self._step(actions) else []
        return self.observations, self.rewards, self.terminals, self.truncations, infos

    def pending_infos(self) -> Infos:
        """Return the report that is due at the next multiple of ``log_interval``, without waiting for it."""
        return self._batch.report()

    def render(self, env_index: int = 0, agent: int | None = None) -> npt.NDArray[np.uint8] | str | None:
        """Render copy ``env_index`` according to ``render_mode``.

        Args:
            env_index: Index of the copy.
            agent: Agent that the image marks or follows if the environment has several, or None.

        Returns:
            An RGB image, uint8 ``(height, width, 3)``. With "ansi", lines of half-block characters, scaled to fit the
            terminal. With "human", None: the window shows this copy from now on.

        Raises:
            APIUsageError: The copy or the agent does not exist.
            BindingMissing: "human" needs pygame.
            PufferError: "human" needs a display.
            SystemExit: The user closed the window. If you catch it, the environment continues without a window.
        """
        picture = np.zeros(self._picture_shape, np.uint8)
        self._batch.render(env_index, -1 if agent is None else self._checked_agent("render", agent), picture)
        self._shown = env_index
        return self._view.show(picture)

    def frames(self, actions: Any, env_index: int = 0, agent: int | None = None, every: int = 1) -> Iterator[Frame]:
        """Draw the intermediate frames of a step with ``actions`` in copy ``env_index``, without making the step.

        Args:
            actions: Actions, as for ``step``.
            env_index: Index of the copy.
            agent: Agent, as for ``render``.
            every: Yield every n-th frame.

        Yields:
            Images between the one that ``render`` returns now and the one after the step, uint8 ``(height, width, 3)``.
            Nothing if a step simulates a single frame.

        Raises:
            APIUsageError: An argument is invalid, as for ``step`` and ``render``.
        """
        if self.frames_per_step <= every:
            return
        if self._copy is None:
            own = {p.name for p in self._type.parameters}
            params: dict[str, Any] = {name: value for name, value in self._keywords.items() if name in own}
            self._copy = OceanEnv(self._origin, autoreset=AutoresetMode.DISABLED, **params)
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
        """Return the state of some copies as bytes.

        After ``load_state``, the same actions give the same observations, rewards and images. The state includes random
        number generators and current observations. It does not include final observations, whose episodes are over.

        Args:
            env_ids: Copies to save, as ints or as a bool mask ``(num_envs,)``. None saves all.

        Raises:
            APIUsageError: The environment was not reset yet, or an id does not exist.
        """
        where = f"{self._type.class_name}.save_state"
        chosen = check_env_ids(where, env_ids, self.num_envs)
        steps = self._batch.steps if env_ids is None else None
        return pack({**self._facts(), "games": len(chosen), "steps": steps}, self._batch.save_games(chosen))

    def load_state(self, state: bytes, env_ids: EnvIds = None) -> Array:
        """Restore states that ``save_state`` returned, in this or another process.

        The bytes are copied into C memory without further checks. Only load states from a source that you trust.

        Args:
            state: State of as many copies as are restored.
            env_ids: Copies to restore, as ints or as a bool mask ``(num_envs,)``, in the order in which they were
                saved. None restores all.

        Returns:
            Observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: The state is damaged, or it was saved with another environment, version, number of copies,
                parameters or autoreset mode. In this case nothing changes.
        """
        where = f"{self._type.class_name}.load_state"
        chosen = check_env_ids(where, env_ids, self.num_envs)
        facts, games = unpack(where, state, self._facts())
        if facts["games"] != len(chosen):
            raise APIUsageError(
                f"{where}: the state must be of {len(chosen)} games, got one of {facts['games']}; choose the games to "
                "load with env_ids"
            )
        self._batch.load_games(chosen, games)
        if env_ids is None:
            self._batch.steps = facts["steps"] or 0
            self._seed = None
        if self._view.is_live:
            self.render(self._shown)
        return self.observations

    def restart_from(self, state: bytes, env_ids: EnvIds = None) -> Array:
        """Start the next episode of some copies from the saved state of one copy.

        The new episode keeps its own random numbers, so the same actions may lead to different results, and reports do
        not count it. Rewards, terminals and truncations of the last step are unchanged.

        Args:
            state: State of one copy.
            env_ids: Copies that start from it. None for all.

        Returns:
            Observations ``(num_agents, *shape)``.

        Raises:
            APIUsageError: The state is invalid, as for ``load_state``, or agents have their own episodes.
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
        """Support copy and pickle. The new environment has its own arrays and continues from the current state.

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
        """Restore the state saved by ``__reduce__``."""
        state = dict(state)
        games, self.final_observations[:] = state.pop("games"), state.pop("final_observations")
        if games is not None:
            facts, memory = unpack(type(self).__name__, games, self._facts())
            self._batch.load_games(range(self.num_envs), memory)
            self._batch.steps = facts["steps"]
        vars(self).update(state)

    def _facts(self) -> dict[str, Any]:
        """Return the settings that must match for a state to be valid."""
        kind = self._type
        return {
            "env": kind.class_name,
            "code": code_of(self._origin),
            "parameters": {
                name: value.decode() if isinstance(value, bytes) else value for name, value in self._values.items()
            },
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
        """Return the rectangles in an agent's image of copy ``env_index`` that a user can click to choose an action.

        Returns:
            Dict from action to (x, y, width, height) in px.

        Raises:
            APIUsageError: The agent does not exist.
        """
        return self._batch.areas(env_index, self._checked_agent("areas", agent))

    def set_attr(self, name: str, values: Any) -> None:
        """Set an existing attribute of this object. Environment settings cannot be changed after construction.

        Raises:
            APIUsageError: The attribute does not exist.
        """
        if not hasattr(self, name):
            raise APIUsageError(
                f"{self._type.class_name}.set_attr: a C environment has no attribute {name!r}; pass settings as "
                "keywords when you make the environment"
            )
        super().set_attr(name, values)

    def close(self) -> None:
        """Free the C memory and close the window. The arrays stay valid. Closing twice is safe."""
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
    """Make an environment of class ``cls`` without calling its own ``__init__``, which may take other arguments."""
    env = cls.__new__(cls)
    OceanEnv.__init__(env, origin, **keywords)
    return env


def type_of(name: str | CFile) -> EnvType:
    """Return the type of the C environment called ``name``, or of a C file, which is compiled if it has changed.

    Raises:
        UnknownNameError: The environment does not exist.
        APIUsageError: The C file does not compile.
    """
    if isinstance(name, CFile):
        return load_type(name)
    if is_c_file(name):
        return load_type(compile_file(name))
    known = env_types()
    if name not in known:
        raise UnknownNameError.of("pufferlib.ocean", "environment", name, known)
    return known[name]
