"""Board, card and matrix games of OpenSpiel (Apache-2.0), as ``openspiel/<short name>``.

* Observation, a Dict: ``observation`` float32, what the player knows, in the shape that OpenSpiel gives it,
  such as ``(3, 6, 7)`` in connect_four; ``action_mask`` int8, 1 for each legal action. Policies of this
  library choose legal actions only.
* Action: Discrete, OpenSpiel's actions. One that is not legal counts as the next one that is.
* Reward: what the player won since its last step; in most games that is 0 until the end.
* Terminal: the game is over. There is no truncation: OpenSpiel's games end.

``players="random"`` (the default) is the game as one player sees it: all others play legal actions at
random, as does chance, and a step goes on until it is this player's turn again. The info of the last step
tells whether it ``won``. ``players="self"`` is a PettingZoo environment with all players, ``player_0`` and
on, in one policy's hands. In each step those whose turn it is act; who waits sees the game too, has only
action 0 in its mask, and nothing comes of it.

Options:

* ``players``: "random" or "self".
* ``seat``: with "random", the player to be: 0, 1, ...; None draws one for each game.
* ``observe``: "information_state" is all that the player has seen from the start of the game,
  "observation" what it sees now. By default the first where the game offers it.
* ``settings``: OpenSpiel's parameters of the game: ``{"board_size": 9}`` for go.
* ``render_mode``: None, "ansi", the state as OpenSpiel writes it, or "rgb_array", a picture of that text.

Left out of its 126 games are those that need parameters to be loaded at all, mean field games, and the few
that show no tensor.

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
    """The games, by OpenSpiel's short names."""
    return tuple(_GAMES.split())


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0, **options)`` that makes the game ``name``.

    Raises:
        UnknownNameError: No game has this name; the nearest ones are suggested.
    """
    return creator(__name__, name, names())
