"""The Behaviour Suite (bsuite, Apache-2.0): small experiments that each ask one question of an agent.

Names are those of bsuite, experiment and setting: ``bsuite/catch/0``, ``bsuite/deep_sea/20``. Without
a number it is setting 0: ``bsuite/catch``.

* Observation: float32, the small array that the experiment shows.
* Action: Discrete, 2 to 11.
* Reward: that of the experiment.
* Terminal: what the experiment ends with discount 0. Truncation: any other end.

The only option is ``render_mode``, None or "rgb_array": the array as a picture, black to white.

Fixed here: bsuite prints a line for each experiment that it loads. It fixes a seed for each setting;
what the setting *is* (which arm pays, which action goes right) stays as it fixes it, and chance
within that follows the seed of the batch. The experiments ``mnist``, ``mnist_noise`` and
``mnist_scale`` download their data: here they need the four files of MNIST in ``/tmp/mnist``, where
bsuite looks for them, and nothing is downloaded.

Source: Osband et al. 2020, https://arxiv.org/abs/1908.03568.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Experiment: how many settings it has.
_SETTINGS = {
    "bandit": 20,
    "bandit_noise": 20,
    "bandit_scale": 20,
    "cartpole": 20,
    "cartpole_noise": 20,
    "cartpole_scale": 20,
    "cartpole_swingup": 20,
    "catch": 20,
    "catch_noise": 20,
    "catch_scale": 20,
    "deep_sea": 21,
    "deep_sea_stochastic": 21,
    "discounting_chain": 20,
    "memory_len": 23,
    "memory_size": 17,
    "mnist": 20,
    "mnist_noise": 20,
    "mnist_scale": 20,
    "mountain_car": 20,
    "mountain_car_noise": 20,
    "mountain_car_scale": 20,
    "umbrella_distract": 23,
    "umbrella_length": 23,
}


def names() -> tuple[str, ...]:
    """The experiments with their settings, sorted."""
    return tuple(sorted(f"{name}/{setting}" for name, count in _SETTINGS.items() for setting in range(count)))


def env_creator(name: str) -> Callable[..., Any]:
    """A picklable function ``(buf=None, seed=0)`` that starts the experiment ``name``.

    Raises:
        UnknownNameError: No experiment has this name; the nearest ones are suggested.
    """
    return creator(__name__, f"{name}/0" if name in _SETTINGS else name, names())
