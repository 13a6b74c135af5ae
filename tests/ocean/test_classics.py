"""Classic control environments, compared with Gymnasium's byte by byte."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.classic_control import acrobot, cartpole, pendulum

from pufferlib import ocean
from pufferlib.ocean.types import env_types
from pufferlib.seeding import env_seed
from tests.ocean.libm import LIBM, cos, sin
from tests.tiers import once

IDS = {
    "cartpole": "CartPole-v1",
    "acrobot": "Acrobot-v1",
    "mountain_car": "MountainCar-v0",
    "mountain_car_continuous": "MountainCarContinuous-v0",
    "pendulum": "Pendulum-v1",
}
every_classic = pytest.mark.parametrize("name", IDS)


@pytest.fixture
def same_sines(monkeypatch):
    """Make Gymnasium use sines of the C library. On processors with AVX-512, those of numpy differ in the last bit."""
    for module in (cartpole, pendulum):
        monkeypatch.setattr(module, "np", LIBM)
    monkeypatch.setattr(acrobot, "sin", sin)
    monkeypatch.setattr(acrobot, "cos", cos)


def make_gymnasium(name, attributes=None, **kwargs):
    env = gymnasium.make(IDS[name], **kwargs)
    for key, value in (attributes or {}).items():
        setattr(env.unwrapped, key, value)
    return env


def act_at_random(space, rng):
    if isinstance(space, gymnasium.spaces.Discrete):
        return lambda _: int(rng.integers(space.n))
    return lambda _: rng.uniform(space.low, space.high).astype(np.float32)


def compare(ours, reference, seed, steps, act):
    """Step both environments with the same actions. Return the numbers of terminals and truncations."""
    view, _ = ours.reset(seed=seed)
    expected, _ = reference.reset(seed=seed)
    assert view[0].tobytes() == expected.tobytes()
    ends = {"terminal": 0, "truncation": 0}
    for step in range(steps):
        action = act(view[0])
        ours.step(np.array([action]))
        expected, reward, terminated, truncated, _ = reference.step(action)
        over = terminated or truncated
        seen = ours.final_observations if over else view
        assert seen[0].tobytes() == expected.astype(np.float32).tobytes(), (step, seen[0], expected)
        assert ours.rewards[0] == np.float32(reward)
        assert (ours.terminals[0], ours.truncations[0]) == (terminated, truncated and not terminated)
        if over:
            ends["terminal" if terminated else "truncation"] += 1
            expected, _ = reference.reset()
            assert view[0].tobytes() == expected.tobytes(), (
                "the random generator must be in the same state as Gymnasium's"
            )
    ours.close()
    reference.close()
    return ends["terminal"], ends["truncation"]


# ---- Equality with Gymnasium ------------------------------------------------------------------------


@every_classic
@pytest.mark.parametrize("seed", once([0, 7, 2**31 - 1], [2**31 - 1]))
@pytest.mark.usefixtures("same_sines")
def test_same_seed_and_actions_give_the_bytes_of_gymnasium(name, seed):
    reference = make_gymnasium(name)
    act = act_at_random(reference.action_space, np.random.default_rng(seed))
    assert sum(compare(ocean.OceanEnv(name, num_envs=1), reference, seed, 2000, act)) >= 2


SCRIPTED = {  # policies that reach ends which random actions do not reach
    "cartpole": (lambda s: int(s @ [0.1, 0.5, 4.0, 1.0] > 0), (0, 2)),
    "acrobot": (lambda s: 0 if s[4] > 0 else 2, (1, 0)),
    "mountain_car": (lambda s: 2 if s[1] >= 0 else 0, (1, 0)),
    "mountain_car_continuous": (lambda s: np.array([1 if s[1] >= 0 else -1], np.float32), (1, 0)),
    "pendulum": (lambda s: np.array([2 if s[2] > 0 else -2], np.float32), (0, 5)),
}


@every_classic
@pytest.mark.usefixtures("same_sines")
def test_scripted_episodes_give_the_bytes_of_gymnasium(name):
    act, least = SCRIPTED[name]
    ends = compare(ocean.OceanEnv(name, num_envs=1), make_gymnasium(name), 3, 1000, act)
    assert all(count >= wanted for count, wanted in zip(ends, least, strict=True)), ends


VARIED = [
    ("cartpole", {"sutton_barto_reward": True}, {"sutton_barto_reward": True}),
    ("cartpole", {"max_steps": 20}, {"max_episode_steps": 20}),
    ("cartpole", {"gravity": 20, "pole_mass": 0.3}, {"attributes": {"gravity": 20.0}}),
    ("acrobot", {"nips": True}, {"attributes": {"book_or_nips": "nips"}}),
    ("acrobot", {"torque_noise": 0.4, "step_s": 0.1}, {"attributes": {"torque_noise_max": 0.4, "dt": 0.1}}),
    (
        "mountain_car",
        {"goal_velocity": 0.03, "force": 0.0012},
        {"goal_velocity": 0.03, "attributes": {"force": 0.0012}},
    ),
    ("mountain_car", {"max_steps": 50}, {"max_episode_steps": 50}),
    ("mountain_car_continuous", {"goal_velocity": 0.03}, {"goal_velocity": 0.03}),
    ("mountain_car_continuous", {"power": 0.003}, {"attributes": {"power": 0.003}}),
    ("pendulum", {"g": 9.81}, {"g": 9.81}),
    ("pendulum", {"mass": 0.8, "length": 1.3}, {"attributes": {"m": 0.8, "l": 1.3}}),
]


@pytest.mark.parametrize(("name", "kwargs", "theirs"), VARIED)
@pytest.mark.usefixtures("same_sines")
def test_parameters_have_the_effect_of_gymnasiums(name, kwargs, theirs):
    reference = make_gymnasium(name, **theirs)
    if "pole_mass" in kwargs:
        reference.unwrapped.masspole, reference.unwrapped.total_mass = 0.3, 1.3
        reference.unwrapped.polemass_length = 0.3 * 0.5
    act = (
        SCRIPTED[name][0]
        if name.startswith("mountain")
        else act_at_random(reference.action_space, np.random.default_rng(5))
    )
    compare(ocean.OceanEnv(name, num_envs=1, **kwargs), reference, 5, 1000, act)


@every_classic
def test_spaces_and_time_limit_equal_gymnasium(name):
    env, reference = ocean.OceanEnv(name), make_gymnasium(name)
    assert env.single_observation_space == reference.observation_space
    assert env.single_action_space == reference.action_space
    defaults = {parameter.name: parameter.default for parameter in env_types()[name].parameters}
    assert defaults["max_steps"] == reference.spec.max_episode_steps


@every_classic
def test_unpatched_gymnasium_differs_by_at_most_one_bit(name):
    ours, reference = ocean.OceanEnv(name, num_envs=1), make_gymnasium(name)
    act = act_at_random(reference.action_space, np.random.default_rng(1))
    for seed in range(20):
        view, _ = ours.reset(seed=seed)
        expected, _ = reference.reset(seed=seed)
        for _ in range(8):
            np.testing.assert_array_max_ulp(view[0], expected, maxulp=1)
            action = act(view[0])
            ours.step(np.array([action]))
            expected = reference.step(action)[0].astype(np.float32)


@every_classic
def test_each_environment_of_a_batch_starts_from_its_seed(name):
    starts, _ = ocean.OceanEnv(name, num_envs=4).reset(seed=11)
    reference = make_gymnasium(name)
    for index in range(4):
        expected, _ = reference.reset(seed=env_seed(11, index))
        np.testing.assert_array_max_ulp(starts[index], expected, maxulp=1)


# ---- Beyond Gymnasium -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mountain_car_continuous", "pendulum"])
@pytest.mark.parametrize(("given", "meant"), [(7, 1), (-np.inf, -1), (np.inf, 1), (np.nan, 0)])
def test_continuous_actions_are_clipped(name, given, meant):
    strange, plain = (ocean.OceanEnv(name, num_envs=1, seed=2) for _ in range(2))
    limit = plain.single_action_space.high
    for env, action in ((strange, given), (plain, meant * limit[0])):
        env.reset()
        env.step(np.array([[action]], np.float32))
    assert strange.observations.tobytes() == plain.observations.tobytes()
    assert strange.rewards[0] == plain.rewards[0]


@pytest.mark.parametrize(("name", "idle"), [("acrobot", 1), ("mountain_car", 1)])
@pytest.mark.parametrize("action", [-1, 3, 2**31 - 1])
def test_invalid_actions_do_nothing(name, idle, action):
    strange, plain = (ocean.OceanEnv(name, num_envs=1, seed=2) for _ in range(2))
    for env, chosen in ((strange, action), (plain, idle)):
        env.reset()
        env.step([chosen])
    assert strange.observations.tobytes() == plain.observations.tobytes()


def report_of(name, act, **kwargs):
    """Return the report of the first episode, and the sum of its rewards."""
    env = ocean.OceanEnv(name, num_envs=1, seed=4, log_interval=1, **kwargs)
    env.reset()
    total = 0.0
    while True:
        *_, infos = env.step(np.array([act(env.observations[0])]))
        total += env.rewards[0]
        if env.terminals[0] or env.truncations[0]:
            return infos[0], total


@every_classic
def test_score_is_the_return(name):
    report, total = report_of(name, SCRIPTED[name][0])
    assert report["score"] == pytest.approx(total, rel=1e-5)
    assert report["score"] == pytest.approx(report["episode_return"], rel=1e-6)


def test_perf_is_a_share_of_the_best_result():
    steps = report_of("acrobot", SCRIPTED["acrobot"][0])[0]
    assert steps["perf"] == pytest.approx(1 - steps["episode_length"] / 500)
    assert report_of("acrobot", lambda _: 1)[0]["perf"] == 0
    for name, still in (("mountain_car", 1), ("mountain_car_continuous", np.zeros(1, np.float32))):
        assert report_of(name, SCRIPTED[name][0])[0]["perf"] == 1
        assert report_of(name, lambda _, still=still: still)[0]["perf"] == 0
    upright = []

    def watch(state):
        upright.append(abs(np.arctan2(state[1], state[0])) < 0.2)
        return np.zeros(1, np.float32)

    report, _ = report_of("pendulum", watch, g=-10)  # with this gravity the pendulum stays upright
    assert 0 < report["perf"] == pytest.approx(np.mean(upright))


@pytest.mark.parametrize("name", ["acrobot", "mountain_car", "mountain_car_continuous"])
def test_frameskip_repeats_the_action(name):
    once, often = (ocean.OceanEnv(name, num_envs=1, seed=6, max_steps=50, frameskip=skip) for skip in (7, 1))
    once.reset()
    often.reset()
    for action in (1, 1, 1, 0, 0, 0, 0.5, 1):  # the last step has a single frame
        given = np.full(
            once.actions.shape, action * (1 if name == "mountain_car_continuous" else 2), once.actions.dtype
        )
        once.step(given)
        rewards = []
        while len(rewards) < 7 and not (rewards and often.truncations[0]):
            often.step(given)
            rewards.append(often.rewards[0])
        assert once.observations.tobytes() == often.observations.tobytes()
        assert once.rewards[0] == pytest.approx(sum(rewards))
        assert once.truncations[0] == often.truncations[0] == (len(rewards) == 1)


def test_state_is_finite_with_extreme_parameters():
    env = ocean.OceanEnv("acrobot", num_envs=16, gravity=100, step_s=1, torque_noise=100)
    env.reset(seed=0)
    for _ in range(200):
        env.step(np.full(16, 2))
        assert np.isfinite(env.observations).all()


@pytest.mark.parametrize("name", IDS)
def test_image_depends_on_the_state(name):
    env = ocean.OceanEnv(name, num_envs=1, seed=1)
    env.reset()
    act, images = act_at_random(env.single_action_space, np.random.default_rng(0)), []
    for _ in range(4):
        images.append(env.render().tobytes())
        env.step(np.array([act(None)]))
    assert len(set(images)) == 4
