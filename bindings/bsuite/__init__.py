"""The Behaviour Suite (bsuite, Apache-2.0): small experiments that each test one capability of an agent.

Names are bsuite's experiment and setting: ``bsuite/catch/0``, ``bsuite/deep_sea/20``. Without a number,
``bsuite/catch``, it is setting 0.

* Observation: the small float32 array of the experiment.
* Action: Discrete, 2 to 11.
* Reward: the experiment's reward.
* Terminal: an end with discount 0. Truncation: any other end.

The only option is ``render_mode``, None or "rgb_array", which shows the array as an image, black to white.

Differences from the package: bsuite prints a line for each experiment that it loads. Here it does not.
bsuite fixes a seed for each setting. What defines the setting (which arm pays, which action goes right)
still uses it. All other randomness follows the seed of the batch. The experiments ``mnist``,
``mnist_noise`` and ``mnist_scale`` would download their data. Here they need the four MNIST files in
``/tmp/mnist``, where bsuite looks for them, and nothing is downloaded.

Source: Osband et al. 2020, https://arxiv.org/abs/1908.03568.
"""

from collections.abc import Callable
from typing import Any

from .._shared.creator import creator

__all__ = ["env_creator", "names"]

# Number of settings of each experiment.
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
    """Return the experiments with their settings, sorted."""
    return tuple(sorted(f"{name}/{setting}" for name, count in _SETTINGS.items() for setting in range(count)))


def env_creator(name: str) -> Callable[..., Any]:
    """Return a picklable function ``(buf=None, seed=0)`` that makes the experiment ``name``.

    Raises:
        UnknownNameError: No experiment has this name. The error suggests similar names.
    """
    return creator(__name__, f"{name}/0" if name in _SETTINGS else name, names())
