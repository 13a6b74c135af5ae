"""Ocean environments by Gymnasium id: ``gymnasium.make``, ``make_vec`` and Gymnasium's checker."""

import subprocess
import sys
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import pufferlib
from pufferlib import ocean
from pufferlib.errors import APIUsageError
from tests.tiers import once

SEVERAL_AGENTS = {"moba", "multiagent", "nmmo3", "rware", "snake", "trash_pickup"}


@pytest.mark.parametrize("name", sorted(set(ocean.names()) - SEVERAL_AGENTS))
def test_gymnasium_check_env_passes(name):
    env = gymnasium.make(f"puffer/{name}")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*value is .*infinity", UserWarning)  # speeds of cartpole are unbounded
        warnings.filterwarnings(
            "ignore", ".*symmetric and normalized", UserWarning
        )  # pendulum has the torque of Gymnasium's
        check_env(env.unwrapped, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("name", sorted(SEVERAL_AGENTS))
def test_multiagent_environments_name_make_vec(name):
    with pytest.raises(APIUsageError, match=rf"one agent, got \d+ in puffer/{name}; use gymnasium.make_vec"):
        gymnasium.make(f"puffer/{name}")


def test_unknown_keyword_raises_a_type_error_in_the_words_of_python():
    message = "Cartpole: unexpected keyword argument 'frameskip'; known: "
    with pytest.raises(TypeError, match=message) as caught:  # TorchRL's GymEnv then leaves frameskip out
        gymnasium.make("puffer/cartpole", frameskip=1)
    assert isinstance(caught.value, pufferlib.UnknownNameError)
    with pytest.raises(pufferlib.UnknownNameError, match="unknown render_mode") as caught:
        pufferlib.frameworks.gymnasium.GameEnv("cartpole", render_mode="foo")
    assert not isinstance(caught.value, TypeError)


def test_reset_options_are_refused():
    env = gymnasium.make("puffer/cartpole")
    env.reset(options={})
    with pytest.raises(
        APIUsageError, match=r"got options={'low': 1}; give them to gymnasium.make\(\"puffer/cartpole\"\)"
    ):
        env.reset(options={"low": 1})
    env.close()


@pytest.mark.parametrize("autoreset", ["same_step", "next_step", "disabled"])
def test_last_step_returns_the_final_observation(autoreset):
    env = gymnasium.make("puffer/squared", size=3, autoreset=autoreset)
    observation, _ = env.reset(seed=4)
    env.action_space.seed(4)
    while True:
        before = observation
        observation, _, terminated, truncated, info = env.step(env.action_space.sample())
        if terminated or truncated:
            break
    assert info["score"] is not None
    assert not np.array_equal(observation, before)
    assert observation.any()
    assert env.reset()[0].shape == observation.shape
    env.close()


def test_make_vec_returns_one_batch_of_c_environments():
    envs = gymnasium.make_vec("puffer/breakout", num_envs=1024)
    observations, _ = envs.reset(seed=0)
    assert observations.shape[0] == envs.num_envs == 1024
    expected = pufferlib.make("breakout", num_envs=1024)
    assert np.array_equal(expected.reset(0)[0], observations)
    assert np.array_equal(expected.step(np.ones(1024, int))[0], envs.step(np.ones(1024, int))[0])
    envs.close()


@pytest.mark.parametrize("imports", once(["import gymnasium", "import gymnasium, pufferlib"], ["import gymnasium"]))
def test_ids_are_found_with_and_without_importing_pufferlib(imports):
    name = "puffer/squared" if "pufferlib" in imports else "pufferlib:puffer/squared"
    done = subprocess.run(
        [sys.executable, "-c", f"{imports}\nprint(gymnasium.make({name!r}).spec.id)"], capture_output=True, text=True
    )
    assert done.stdout.strip().endswith("puffer/squared"), done.stderr


FIND_FIRST = "pufferlib, importlib.util; importlib.util.find_spec('gymnasium'); import gymnasium"
IMPORTS = ["pufferlib, gymnasium", "gymnasium, pufferlib", "pufferlib, gymnasium.spaces", FIND_FIRST]


@pytest.mark.parametrize("imports", once(IMPORTS, [IMPORTS[0], FIND_FIRST]))
def test_ids_are_registered_in_any_order_of_imports(imports):
    code = f"import {imports}; print(gymnasium.make_vec('puffer/breakout', num_envs=3).num_envs)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("3\n", "")
