"""Kinetix, 2D physics puzzles on JAX, as ``kinetix/<level>``: bring green to blue and keep it off red.

Names are the included levels (``s/h4_thrust_aim``, where s, m and l are sizes) and ``random-s``, ``random-m``,
``random-l``, where every episode has a new random level.

It needs JAX in an isolated Python environment: run ``puffer install kinetix``, or use the image ``tank-full``.
``num_envs`` environments run there in one batch. They behave like any native environment. Compiling takes ten
seconds to minutes, once per machine. The result is cached in the user's cache folder.

* Observation: float32, a flat list of all shapes, joints and thrusters, ``(140,)`` for size s.
* Action: motors and thrusters. ``action="multi_discrete"``: three choices per motor, two per thruster.
  "discrete": one of them at a time. "continuous": Box from -1 to 1.
* Reward: 1 when a green shape touches a blue one, -1 when it touches a red one. In between, ``dense_reward`` for
  every unit that green and blue come closer.
* Terminal: such a touch. Truncation: ``max_timesteps``.
* Infos: ``perf``, 1.0 for episodes that reached blue.

Options:

* ``num_envs``: number of environments in the batch, default 16.
* ``action``: see above.
* ``max_timesteps``: default 256 steps of two physics frames each.
* ``dense_reward``: default 0.1. With 0, only touches are rewarded.
* ``timeout_s``: timeout for construction, a reset or a step, including compilation, default 600.
* ``render_mode``: None, or "rgb_array", which shows the first environment.

The included levels have no randomness. Only ``random-...`` depend on the seed. If the physics becomes unstable, the
episode ends, and NaN is replaced by 0.

Source: Matthews et al. 2025, https://arxiv.org/abs/2410.23208
"""

from collections.abc import Callable
from typing import Any

from pufferlib.errors import APIUsageError

from .._shared.isolated import isolated_creator
from .._shared.jax import VARIABLES
from .._shared.options import check_counts

__all__ = ["env_creator", "names"]

TAKES_NUM_ENVS = True  # one environment is a batch

_ACTIONS = ("multi_discrete", "discrete", "continuous")

_LEVELS = {
    "s": """
        h0_weak_thrust h1_thrust_over_ball h2_one_wheel_car h3_point_the_thruster h4_thrust_aim h5_rotate_fall
        h6_unicycle_right h7_unicycle_left h8_unicycle_balance h9_explode_then_thrust_over
    """,
    "m": """
        arm_hard arm_left arm_right arm_up h0_unicycle h10_thrust_right_easy h11_thrust_left_easy
        h12_thrustfall_left h13_thrustfall_right h14_thrustblock h15_thrustshoot h16_thrustcontrol_right
        h17_thrustcontrol_left h18_thrust_right_very_easy h19_thrust_left_very_easy h1_car_left h2_car_right
        h3_car_thrust h4_thrust_the_needle h5_angry_birds h6_thrust_over h7_car_flip h8_weird_vehicle
        h9_spin_the_right_way
    """,
    "l": """
        car_launch car_swing_around chain_lander chain_thrust gears grasp_easy grasp_hard h0_angrybirds
        h10_morph_direction_2 h11_obstacle_avoidance h12_platformer_1 h13_platformer_2 h14_simple_thruster
        h15_swing_up h16_thruster_goal h17_unicycle h1_car_left h2_car_ramp h3_car_right h4_cartpole
        h5_flappy_bird h6_lorry h7_maze_1 h8_maze_2 h9_morph_direction hard_beam_balance hard_cartpole_thrust
        hard_cartpole_wheels hard_lunar_lander hard_pinball lever_puzzle mjc_half_cheetah
        mjc_half_cheetah_easy mjc_hopper mjc_hopper_easy mjc_swimmer mjc_walker mjc_walker_easy pr rail
    """,
}


def names() -> tuple[str, ...]:
    """Return the included levels and the three sizes of random levels."""
    levels = [f"{size}/{level}" for size, listed in _LEVELS.items() for level in listed.split()]
    return tuple(sorted([*levels, *(f"random-{size}" for size in _LEVELS)]))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0, **options)`` that makes a batch of the level ``name``."""
    return isolated_creator(__name__, name, names(), _arguments, variables=VARIABLES)


def _arguments(
    where: str,
    *,
    num_envs: int = 16,
    action: str = "multi_discrete",
    max_timesteps: int = 256,
    dense_reward: float = 0.1,
) -> dict[str, Any]:
    check_counts(where, num_envs=num_envs, max_timesteps=max_timesteps)
    if action not in _ACTIONS:
        raise APIUsageError(f"{where}: action must be one of {', '.join(_ACTIONS)}, got {action!r}")
    if not isinstance(dense_reward, int | float) or not 0 <= dense_reward < float("inf"):
        raise APIUsageError(f"{where}: dense_reward must be a number >= 0, got {dense_reward!r}")
    return {
        "num_envs": int(num_envs),
        "action": action,
        "max_timesteps": int(max_timesteps),
        "dense_reward": float(dense_reward),
    }
