"""Rules of pymultiagent, without and with emulation."""

import numpy as np
import pytest

import pufferlib
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.ocean.pymultiagent import PyMultiagent


@pytest.mark.parametrize(("first", "second"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_each_agent_is_paid_for_its_action(first, second):
    env = PyMultiagent()
    observations, _ = env.reset(seed=0)
    assert {agent: seen.tolist() for agent, seen in observations.items()} == {1: [0], 2: [1]}
    _, rewards, terminals, truncations, infos = env.step({1: first, 2: second})
    assert rewards == {1: float(first == 0), 2: float(second == 1)}
    assert terminals == {1: True, 2: True}
    assert truncations == {1: False, 2: False}
    assert [infos[agent]["score"] for agent in (1, 2)] == list(rewards.values())
    assert env.agents == []


def test_emulated_environment_equals_multiagent():
    python, native = pufferlib.make("pymultiagent"), pufferlib.make("multiagent")
    assert isinstance(python, PettingZooPufferEnv)
    assert python.single_observation_space == native.single_observation_space
    assert python.single_action_space == native.single_action_space
    rng = np.random.default_rng(0)
    for _ in range(20):
        python.reset(seed=0)
        native.reset(seed=0)
        np.testing.assert_array_equal(python.observations, native.observations)
        actions = rng.integers(0, 2, 2)
        python.step(dict(zip((1, 2), actions, strict=True)))
        native.step(actions)
        for name in ("rewards", "terminals", "truncations", "masks"):
            np.testing.assert_array_equal(getattr(python, name), getattr(native, name))
        np.testing.assert_array_equal(python.observations, native.final_observations)
    python.close()
    native.close()


def test_image_shows_the_rewards():
    env = PyMultiagent(render_mode="rgb_array")
    env.reset()
    images = {env.render().tobytes()}
    for actions in ({1: 0, 2: 1}, {1: 1, 2: 1}, {1: 0, 2: 0}):
        env.reset()
        env.step(actions)
        images.add(env.render().tobytes())
    assert len(images) == 4
