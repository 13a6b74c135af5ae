"""Atari 2600 games of the Arcade Learning Environment, as ``atari/<game>``.

Install ale-py (GPL-2.0, games included) with ``puffer install atari``.

* Observation: uint8 ``(stack, size, size)``, by default ``(4, 84, 84)``, grayscale, oldest frame first.
* Action: Discrete, the buttons that the game uses (3 to 18). ``full_action_space`` offers all 18.
* Reward: points scored during the step, not clipped unless ``reward_clip`` is set.
* Terminal: the game is over (or a life is lost, with ``episodic_life``). Truncation: ``max_frames``.

Options: the arguments of ``AtariGame``, and:

* ``episodic_life``: a lost life ends the episode. The next episode continues the same game.
* ``reward_clip``: rewards become their sign. The score in the infos stays in points.
* ``rules``: "gymnasium", or "envpool" for starts, lives and infos as in EnvPool (``PooledGame``).

Sources: Mnih et al. 2015, https://doi.org/10.1038/nature14236 (preprocessing). Machado et al. 2018,
https://doi.org/10.1613/jair.5699 (sticky actions, whole games).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Listed here so that names() imports nothing. Four games of ale-py are left out because they need a
# second player.
_GAMES = """
adventure air_raid alien amidar assault asterix asteroids atlantis atlantis2 backgammon bank_heist basic_math
battle_zone beam_rider berzerk blackjack bowling boxing breakout carnival casino centipede chopper_command
crazy_climber crossbow darkchambers defender demon_attack donkey_kong double_dunk earthworld elevator_action enduro
entombed et fishing_derby flag_capture freeway frogger frostbite galaxian gopher gravitar hangman haunted_house hero
human_cannonball ice_hockey jamesbond journey_escape kaboom kangaroo keystone_kapers king_kong klax koolaid krull
kung_fu_master laser_gates lost_luggage mario_bros miniature_golf montezuma_revenge mr_do ms_pacman name_this_game
othello pacman phoenix pitfall pitfall2 pong pooyan private_eye qbert riverraid road_runner robotank seaquest
sir_lancelot skiing solaris space_invaders space_war star_gunner superman surround tennis tetris tic_tac_toe_3d
time_pilot trondead turmoil tutankham up_n_down venture video_checkers video_chess video_cube video_pinball
wizard_of_wor word_zapper yars_revenge zaxxon
"""


def names() -> tuple[str, ...]:
    """Return the names of the games in snake_case, sorted."""
    return tuple(_GAMES.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), options_of=("AtariGame", "PooledGame"))
