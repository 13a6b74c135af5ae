"""A ViZDoom scenario from files, with the buttons, rewards and images of EnvPool.

Made by ``pufferlib.bindings.vizdoom.env_creator("scenario")``. See ``Scenario`` for the options.
"""

import contextlib
import itertools
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import cv2
import gymnasium
import numpy as np
import numpy.typing as npt
import vizdoom
from gymnasium.spaces import Box, Discrete

from pufferlib.errors import APIUsageError, UnknownNameError

from .._shared.options import check_counts, check_numbers, check_render_mode, check_switches
from .engine import engine_folder

__all__ = ["Scenario", "combinations", "make_env"]

Info = dict[str, Any]
Picture = npt.NDArray[np.uint8]

#: Rewards when a variable grows by one, and when it shrinks by one.
REWARDS: Mapping[str, tuple[float, float]] = {
    **{f"AMMO{weapon}": (2e-4, -1e-4) for weapon in range(3)},
    **{f"AMMO{weapon}": (1e-3, -5e-4) for weapon in range(3, 6)},
    **{f"AMMO{weapon}": (2e-3, -1e-3) for weapon in range(6, 8)},
    "ARMOR": (5e-3, -1e-3),
    "DAMAGECOUNT": (3e-3, -3e-3),
    "DEATHCOUNT": (-0.75, 0.75),
    "FRAGCOUNT": (1.0, -1.5),
    "HEALTH": (5e-3, -3e-3),
    "HITCOUNT": (0.01, -0.01),
    "KILLCOUNT": (1.0, 0.0),
    **{f"WEAPON{weapon}": (0.02, -0.01) for weapon in range(3)},
    **{f"WEAPON{weapon}": (0.1, -0.05) for weapon in range(3, 6)},
    **{f"WEAPON{weapon}": (0.2, -0.1) for weapon in range(6, 8)},
}

#: Rewards of a step with each weapon that has been held for some time.
WEAPON_REWARDS: Mapping[int, float] = {weapon: (2e-4, 1e-3, 2e-3)[weapon // 3] for weapon in range(8)}

#: Groups of buttons of which at most one is pressed.
_EXCLUSIVE = (
    *(("MOVE_LEFT", "MOVE_RIGHT"), ("MOVE_FORWARD", "MOVE_BACKWARD"), ("TURN_LEFT", "TURN_RIGHT")),
    *(("LOOK_UP", "LOOK_DOWN"), ("MOVE_UP", "MOVE_DOWN"), ("SELECT_PREV_WEAPON", "SELECT_NEXT_WEAPON")),
    ("SELECT_PREV_ITEM", "SELECT_NEXT_ITEM"),
    tuple(f"SELECT_WEAPON{weapon}" for weapon in range(10)),
)

_SIZE = vizdoom.ScreenResolution.RES_160X120
_CHANNELS = {vizdoom.ScreenFormat.GRAY8: 1, vizdoom.ScreenFormat.CRCGCB: 3}


def make_env(name: str, **options: Any) -> "Scenario":
    """Make a scenario from ``options``. ``name`` is used in error messages.

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: A variable or button does not exist.
    """
    return Scenario(name, **options)


class Scenario(gymnasium.Env[Picture, Any]):
    """A scenario from two files: its content (WAD) and its settings (cfg).

    Args:
        name: Name for error messages.
        cfg_path: Settings of ViZDoom: a file, or the name of one included in ViZDoom, such as "basic.cfg".
        wad_path: Scenario file, or "" for the one named in ``cfg_path``.
        iwad_path: Game file with the images, or "" for Freedoom 2, which ViZDoom includes.
        map_id: Map in the WAD.
        game_args: Additional arguments of the engine.
        img_height: Height of the images in px.
        img_width: Width of the images in px.
        stack_num: Number of images in an observation.
        frame_skip: Frames per step, at 35 frames per second. Buttons stay pressed.
        use_inter_area_resize: Whether to resize images by area averaging. Otherwise by linear interpolation.
        lmp_save_dir: Folder in which every episode is recorded, or "" for none.
        episodic_life: Whether the player's death ends the episode, although the game continues.
        use_combined_action: Whether an action is one of all useful combinations of buttons. Otherwise it is a number
            for each button.
        force_speed: Whether the button SPEED is always pressed, with combined actions.
        weapon_duration: Number of steps for which a weapon must be held before it is rewarded.
        reward_config: Rewards for each game variable when it grows and shrinks by one, or None for ``REWARDS``.
        reward_metric: Older name of ``reward_config``.
        selected_weapon_reward_config: Reward of a step with each weapon, or None for ``WEAPON_REWARDS``.
        delta_button_config: Number of amounts, smallest and largest amount, for each button that has one, with combined
            actions.
        infos: Game variables to include in the infos.
        render_mode: None or "rgb_array".

    Raises:
        APIUsageError: An option has the wrong type or is out of range.
        UnknownNameError: A variable or button does not exist.
    """

    def __init__(
        self,
        name: str,
        *,
        cfg_path: str = "",
        wad_path: str = "",
        iwad_path: str = "",
        map_id: str = "map01",
        game_args: str = "",
        img_height: int = 84,
        img_width: int = 84,
        stack_num: int = 4,
        frame_skip: int = 4,
        use_inter_area_resize: bool = True,
        lmp_save_dir: str = "",
        episodic_life: bool = False,
        use_combined_action: bool = False,
        force_speed: bool = False,
        weapon_duration: int = 5,
        reward_config: Mapping[str, tuple[float, float]] | None = None,
        reward_metric: Mapping[str, tuple[float, float]] | None = None,
        selected_weapon_reward_config: Mapping[int, float] | None = None,
        delta_button_config: Mapping[str, tuple[int, float, float]] | None = None,
        infos: Sequence[str] = (),
        render_mode: str | None = None,
    ) -> None:
        self._where = where = f"vizdoom/{name}"
        check_counts(where, img_height=img_height, img_width=img_width, stack_num=stack_num, frame_skip=frame_skip)
        check_counts(where, 0, weapon_duration=weapon_duration)
        check_switches(where, use_inter_area_resize=use_inter_area_resize, episodic_life=episodic_life)
        check_switches(where, use_combined_action=use_combined_action, force_speed=force_speed)
        check_render_mode(where, render_mode)
        self._game = _loaded(where, cfg_path, wad_path, iwad_path, map_id, game_args)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 35 / frame_skip}
        self.render_mode = render_mode
        channels = _CHANNELS[self._game.get_screen_format()]
        self._size, self._frame_skip = (img_width, img_height), frame_skip
        self._scaling = cv2.INTER_AREA if use_inter_area_resize else cv2.INTER_LINEAR
        self._lmp_folder = Path(lmp_save_dir).absolute() if lmp_save_dir else None
        self._episodic_life, self._weapon_duration = episodic_life, weapon_duration
        given = reward_config if reward_config is not None else reward_metric
        self._infos = _known(where, "variable in infos", infos)
        self._rewards = _reward_table(where, REWARDS if given is None else given)
        self._weapon_rewards = dict(
            WEAPON_REWARDS if selected_weapon_reward_config is None else selected_weapon_reward_config
        )
        self._seen = np.zeros((stack_num, channels, img_height, img_width), np.uint8)
        self.observation_space = Box(0, 255, (stack_num * channels, img_height, img_width), np.uint8)
        buttons = [button.name for button in self._game.get_available_buttons()]
        self._combinations: list[list[float]] | None = None
        if use_combined_action:
            self._combinations = combinations(where, buttons, delta_button_config or {}, force_speed)
            self.action_space = Discrete(len(self._combinations))
        else:
            self.action_space = Box(-np.inf, np.inf, (len(buttons),), np.float64)
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._screen: Picture | None = None
        self._episode, self._seed = 0, 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Picture, Info]:
        """Start an episode, or with ``episodic_life`` a life."""
        super().reset(seed=seed)
        is_new_life = self._folder is not None and seed is None and not self._game.is_episode_finished()
        if is_new_life and self._episodic_life and self._game.is_player_dead():
            self._game.respawn_player()
        else:
            self._start(seed)
        self._values = {name: self._value(name) for name in self._rewards}
        self._weapon, self._held = self._value("SELECTED_WEAPON"), 0
        self._update_screens()
        self._seen[:-1] = self._seen[-1]
        return self._observation(), self._info()

    def _start(self, seed: int | None) -> None:
        if seed is not None:
            self._seed = seed
            self._game.set_seed(seed % 2**32)
        if self._folder is None:
            self._folder = engine_folder(self._game)
            with contextlib.chdir(self._folder.name):
                self._game.init()
        recording = ""
        if self._lmp_folder is not None:
            self._lmp_folder.mkdir(parents=True, exist_ok=True)
            recording = str(self._lmp_folder / f"env_{self._seed}_{self._episode}.lmp")
        self._episode += 1
        self._game.new_episode(recording)

    def step(self, action: Any) -> tuple[Picture, float, bool, bool, Info]:
        """Run ``frame_skip`` frames. The reward follows from the game variables that changed."""
        pressed = action if self._combinations is None else self._combinations[int(action)]
        self._game.make_action(list(pressed), self._frame_skip)
        is_over = self._game.is_episode_finished() or (self._episodic_life and self._game.is_player_dead())
        if not self._game.is_episode_finished():
            self._seen[:-1] = self._seen[1:]
            self._update_screens()
        return self._observation(), self._reward(), is_over, False, self._info()

    def _reward(self) -> float:
        reward = 0.0
        for name, (grown, shrunk) in self._rewards.items():
            value = self._value(name)
            change = value - self._values[name]
            reward += change * grown if change >= 0 else -change * shrunk
            self._values[name] = value
        weapon = self._value("SELECTED_WEAPON")
        self._held = self._held + 1 if weapon == self._weapon else 0
        self._weapon = weapon
        if self._held >= self._weapon_duration:
            reward += self._weapon_rewards.get(int(weapon), 0.0)
        return reward

    def _value(self, name: str) -> float:
        return float(self._game.get_game_variable(_VARIABLES[name]))

    def _info(self) -> Info:
        return {name: self._value(name) for name in self._infos}

    def _update_screens(self) -> None:
        self._screen = self._game.get_state().screen_buffer
        channels = self._screen if self._screen.ndim == 3 else self._screen[None]
        for channel, target in zip(channels, self._seen[-1], strict=True):
            cv2.resize(channel, self._size, dst=target, interpolation=self._scaling)

    def _observation(self) -> Picture:
        return self._seen.reshape(self.observation_space.shape).copy()

    def render(self) -> Picture | None:
        """Return the engine's last screen, uint8 ``(120, 160, 3)``, or None without a ``render_mode``."""
        if self.render_mode is None or self._screen is None:
            return None
        if self._screen.ndim == 3:
            return np.ascontiguousarray(self._screen.transpose(1, 2, 0))
        return np.repeat(self._screen[:, :, None], 3, axis=2)

    def close(self) -> None:
        """Stop the engine, and remove its files."""
        self._game.close()
        if self._folder is not None:
            self._folder.cleanup()


_VARIABLES: dict[str, Any] = dict(vizdoom.GameVariable.__members__)


def _loaded(where: str, cfg_path: str, wad_path: str, iwad_path: str, map_id: str, game_args: str) -> Any:
    """Return a game with its settings, without starting it."""
    brought = Path(vizdoom.scenarios_path) / Path(cfg_path).name
    cfg = brought if cfg_path == brought.name and brought.is_file() else Path(cfg_path).absolute()
    wad, iwad = Path(wad_path).absolute(), Path(iwad_path).absolute()
    given = {"cfg_path": (cfg_path, cfg), "wad_path": (wad_path, wad), "iwad_path": (iwad_path, iwad)}
    for option, (text, path) in given.items():
        if not path.is_file() and (text or option == "cfg_path"):
            raise APIUsageError(
                f"{where}: {option} must be the path of an existing file, got {str(text)!r}, and {path} does not exist"
            )
    game: Any = vizdoom.DoomGame()
    game.load_config(str(cfg))
    if wad_path:
        game.set_doom_scenario_path(str(wad))
    if iwad_path:
        game.set_doom_game_path(str(iwad))
    game.set_doom_map(map_id)
    if game_args:
        game.add_game_args(game_args)
    game.set_window_visible(False)
    game.set_mode(vizdoom.Mode.PLAYER)
    game.set_screen_resolution(_SIZE)
    if game.get_screen_format() not in _CHANNELS:
        game.set_screen_format(vizdoom.ScreenFormat.CRCGCB)
    for switch in ("depth_buffer", "labels_buffer", "automap_buffer", "audio_buffer", "notifications_buffer"):
        getattr(game, f"set_{switch}_enabled")(False)
    game.set_episode_timeout(0)  # the caller limits the length of episodes
    return game


def _known(where: str, what: str, names: Iterable[str]) -> tuple[str, ...]:
    for name in names:
        if name not in _VARIABLES:
            raise UnknownNameError.of(where, what, name, _VARIABLES)
    return tuple(names)


def _reward_table(where: str, rewards: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    _known(where, "variable in reward_config", rewards)
    for name, pair in rewards.items():
        if len(pair) != 2:
            raise APIUsageError(f"{where}: reward_config must have two numbers for {name}, got {pair!r}")
    return {name: (float(pair[0]), float(pair[1])) for name, pair in rewards.items()}


def check_amounts(where: str, button: str, amounts: object) -> None:
    """Raise APIUsageError unless ``amounts`` are a count and two finite numbers."""
    option = f"delta_button_config[{button!r}]"
    if not isinstance(amounts, tuple | list) or len(amounts) != 3:
        raise APIUsageError(f"{where}: {option} must be a count, a smallest and a largest amount, got {amounts!r}")
    count, *limits = amounts
    if type(count) is not int or count < 1:
        raise APIUsageError(f"{where}: {option} must start with a count of at least 1, got {amounts!r}")
    check_numbers(where, **{option: limits[0], f"{option}, largest": limits[1]})


def combinations(
    where: str, buttons: list[str], amounts: Mapping[str, tuple[int, float, float]], force_speed: bool
) -> list[list[float]]:
    """Return all useful ways to press ``buttons``, each as a number for every button.

    At most one of several contradicting buttons, such as left and right, or of all weapons is pressed.

    Args:
        where: Prefix of the error message.
        buttons: Names of the buttons.
        amounts: Number of amounts, smallest and largest amount, for buttons with an amount. Others are not pressed.
        force_speed: Whether to press SPEED in each.

    Raises:
        UnknownNameError: ``amounts`` has a button that is not in ``buttons``.
    """
    for name in amounts:
        if name not in buttons:
            raise UnknownNameError.of(where, "button in delta_button_config", name, buttons)
        check_amounts(where, name, amounts[name])
    parts: list[list[dict[str, float]]] = []
    for button in buttons:
        group = next((names for names in _EXCLUSIVE if button in names), (button,))
        mine = [name for name in buttons if name in group]
        if mine[0] != button:
            continue  # handled with the first button of the group
        if button.endswith("_DELTA"):
            count, low, high = amounts.get(button, (1, 0.0, 0.0))
            parts.append([{button: float(amount)} for amount in np.linspace(low, high, count)])
        elif button == "SPEED" and force_speed:
            parts.append([{button: 1.0}])
        else:
            parts.append([{}, *({name: 1.0} for name in mine)])
    found = []
    for choice in itertools.product(*parts):
        pressed = {name: amount for part in choice for name, amount in part.items()}
        found.append([pressed.get(name, 0.0) for name in buttons])
    return found
