"""Board, card and matrix games of OpenSpiel (Apache-2.0), as ``openspiel/<short name>``.

* Observation, a Dict: ``observation`` float32, the player's information in OpenSpiel's shape, such as ``(3, 6, 7)`` in
  connect_four, and ``action_mask`` int8, 1 for each legal action. Policies of this library choose legal actions only.
* Action: Discrete, OpenSpiel's actions. An illegal action counts as the next legal one.
* Reward: the player's winnings since its last step, in most games 0 until the end.
* Terminal: the game is over. There is no truncation, because OpenSpiel's games are finite.

With ``players="random"`` (the default) there is a single agent. All other players choose legal actions at random, and a
step continues until it is the agent's turn again. The info of the last step has ``won``. With ``players="self"`` it is
a PettingZoo environment with all players, ``player_0`` and so on, for one shared policy. In each step, the players
whose turn it is act. The others also get an observation. Their mask allows only action 0, which has no effect.

Options:

* ``players``: "random" or "self".
* ``seat``: the agent's player number with "random": 0, 1, ... None chooses one at random for each game.
* ``observe``: "information_state" is everything that the player has observed since the start of the game, "observation"
  only the current observation. By default the former if the game offers it.
* ``settings``: OpenSpiel's parameters of the game, for example ``{"board_size": 9}`` for go.
* ``render_mode``: None, "ansi", the state as OpenSpiel prints it, or "rgb_array", an image of that text.

OpenSpiel has 126 games. Games that require parameters, mean field games, and a few without tensor observations are left
out.

Source: Lanctot et al., "OpenSpiel" (2019), https://doi.org/10.48550/arXiv.1908.09453.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_GAMES = """
2048 amazons antichess backgammon banqi bargaining battleship blackjack blotto breakthrough bridge
bridge_uncontested_bidding capture_the_flag catch checkers chess chinese_checkers cliff_walking clobber
colored_trails connect_four coop_box_pushing crazy_eights crazyhouse cursor_go dark_chess dark_hex dark_hex_ir
deep_sea dots_and_boxes dou_dizhu einstein_wurfelt_nicht euchre first_sealed_auction gin_rummy go go_fish gomoku
goofspiel hanabi havannah hearts hex hive kriegspiel kuhn_poker laser_tag latent_ttt leduc_poker lewis_signaling
liars_dice lines_of_action maedn mancala markov_soccer matching_pennies_3p matrix_bos matrix_brps matrix_cd
matrix_coordination matrix_mp matrix_pd matrix_rps matrix_rpsw matrix_sh matrix_shapleys_game mnk negotiation nim
nine_mens_morris oh_hell oshi_zumo othello oware pathfinding pentago phantom_go phantom_ttt pig quoridor rbc
repeated_leduc_poker sheriff shogi skat snake solitaire spades stones_and_gems tic_tac_toe tiny_bridge_2p
tiny_bridge_4p tiny_hanabi trade_comm twixt ultimate_tic_tac_toe universal_poker xiangqi y yacht
"""


def names() -> tuple[str, ...]:
    """Return OpenSpiel's short names of the games."""
    return tuple(_GAMES.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name. The error suggests similar names.
    """
    return creator(__name__, name, names())
