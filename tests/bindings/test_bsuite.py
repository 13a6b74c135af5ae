"""bsuite: names, seeds, rendering, no output and no downloads."""

import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import bsuite
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.needs import missing_binding

if reason := missing_binding("bsuite"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.bsuite import env as binding  # only with bsuite


def play(env: Any, seed: int, steps: int = 200) -> list[Any]:
    """Return the results of random steps after a reset with ``seed``. The actions are the same in each call."""
    rng = np.random.default_rng(0)
    seen = [env.reset(seed=seed)[0].tobytes()]
    for _ in range(steps):
        observation, reward, terminated, truncated, _ = env.step(int(rng.integers(env.action_space.n)))
        seen.append((observation.tobytes(), reward, terminated, truncated))
        if terminated or truncated:
            seen.append(env.reset()[0].tobytes())
    return seen


def test_names_match_the_settings_of_bsuite() -> None:
    assert bsuite.names() == tuple(sorted(binding.sweep.SWEEP))


@pytest.mark.parametrize(
    "name", sorted({name.partition("/")[0] for name in bsuite.names() if not name.startswith("mnist")})
)
def test_seed_reproduces_every_experiment(name: str) -> None:
    env = binding.make_env(f"{name}/3")
    first = play(env, 1)
    assert play(env, 1) == first
    assert play(binding.make_env(f"{name}/3"), 1) == first
    is_random = name not in ("bandit", "bandit_scale", "deep_sea", "discounting_chain")
    assert (play(env, 2) != first) == is_random


def test_setting_does_not_depend_on_the_seed() -> None:
    env = binding.make_env("bandit/5")

    def arm_rewards() -> list[float]:
        rewards = []
        for arm in range(11):
            env.reset(seed=arm)
            rewards.append(env.step(arm)[1])
        return rewards

    assert sorted(arm_rewards()) == pytest.approx(np.linspace(0, 1, 11))
    assert arm_rewards() == [env.dm_env._rewards[arm] for arm in range(11)]


def test_make_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    pufferlib.make("bsuite/catch").close()  # short for catch/0
    assert capfd.readouterr() == ("", "")


def test_ends_of_episodes_are_terminals() -> None:
    env = binding.make_env("catch/0")
    env.reset(seed=0)
    ends = [env.step(1)[2:4] for _ in range(9)]
    assert ends == [(False, False)] * 8 + [(True, False)]


def test_mnist_is_never_downloaded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(binding, "MNIST", tmp_path)
    monkeypatch.setattr(urllib.request, "urlopen", lambda *_: pytest.fail("nothing may be downloaded"))
    with pytest.raises(APIUsageError, match=rf"bsuite/mnist_noise/2: expected the MNIST files in {tmp_path}, but t"):
        pufferlib.make("bsuite/mnist_noise/2")


def test_render_returns_the_observation_as_an_image() -> None:
    env = binding.make_env("catch/0", render_mode="rgb_array")
    observation, _ = env.reset(seed=0)
    image = env.render()
    assert image is not None
    assert np.array_equal(image[8::16, 8::16, 0] == 255, observation == 1)
    with pytest.raises(APIUsageError, match="render_mode must be None or 'rgb_array', got 'human'"):
        pufferlib.make("bsuite/catch/0", render_mode="human")


def test_unknown_experiments_and_options_suggest_others() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'catch/"):
        bsuite.env_creator("catch/99")
    with pytest.raises(UnknownNameError, match="unexpected keyword argument 'size'"):
        pufferlib.make("bsuite/catch/0", size=3)
