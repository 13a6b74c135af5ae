"""DeepMind Lab's levels, as ``dmlab/rooms_watermaze``, if you have the module deepmind_lab.

The module is not on any package index, so this binding has only been tested against a mock.

* Observation: uint8 ``(height, width, 3)``, by default ``(72, 96, 3)``: the player's view.
* Action: Discrete(9), the actions of Espeholt et al. 2018: forward, backward, left, right, look left, look right,
  forward looking left, forward looking right, fire.
* Reward: the level's reward, summed over ``frame_skip`` frames.
* Terminal: the level ended. For most levels this means that the time is up, but the level does not report the reason.

Options: ``height``, ``width`` (pixels), ``frame_skip`` (at 60 frames per second) and ``render_mode``, None or
"rgb_array". A seed is passed to the level's ``reset``.

Sources: Beattie et al. 2016, https://arxiv.org/abs/1612.03801. Espeholt et al. 2018,
https://arxiv.org/abs/1802.01561 (the levels and actions).
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

_LEVELS = """
explore_goal_locations_large explore_goal_locations_small explore_object_locations_large
explore_object_locations_small explore_object_rewards_few explore_object_rewards_many
explore_obstructed_goals_large explore_obstructed_goals_small language_answer_quantitative_question
language_execute_random_task language_select_described_object language_select_located_object
lasertag_one_opponent_large lasertag_one_opponent_small lasertag_three_opponents_large
lasertag_three_opponents_small natlab_fixed_large_map natlab_varying_map_randomized natlab_varying_map_regrowth
psychlab_arbitrary_visuomotor_mapping psychlab_continuous_recognition psychlab_sequential_comparison
psychlab_visual_search rooms_collect_good_objects_test rooms_collect_good_objects_train
rooms_exploit_deferred_effects_test rooms_exploit_deferred_effects_train rooms_keys_doors_puzzle
rooms_select_nonmatching_object rooms_watermaze skymaze_irreversible_path_hard skymaze_irreversible_path_varied
"""


def names() -> tuple[str, ...]:
    """Return the levels of DMLab-30, sorted."""
    return tuple(_LEVELS.split())


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes the level ``name``.

    Raises:
        UnknownNameError: No level has this name. The error suggests similar names.
    """
    return creator(__name__, name, names(), adaptor="env:LabGame")
