"""Robots stepped in C, compared byte by byte with Gymnasium's."""

import numpy as np
import pytest

import pufferlib
from pufferlib.buffers import allocate
from pufferlib.registry.twins import twin_of
from tests.needs import missing_binding

absent = missing_binding("mujoco")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

ROBOTS = (
    "Ant",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "InvertedPendulum",
    "Pusher",
    "Reacher",
    "Swimmer",
    "Walker2d",
)
WEIGHTS = {"forward_reward_weight": 1.7, "ctrl_cost_weight": 0.3, "reset_noise_scale": 0.07}
VARIED = [
    ("Ant", {**WEIGHTS, "healthy_z_range": (0.3, 0.9), "contact_force_range": (-0.2, 0.5), "main_body": "aux_1"}),
    ("Ant", {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.01, "frame_skip": 2}),
    ("Ant", {"exclude_current_positions_from_observation": False, "terminate_when_unhealthy": False}),
    ("HalfCheetah", {**WEIGHTS, "clip_action": True, "exclude_current_positions_from_observation": False}),
    ("HalfCheetah", {"ctrl_cost_weight": 1, "max_episode_steps": 7}),
    ("Hopper", {**WEIGHTS, "healthy_state_range": (-2.5, 2.5), "healthy_angle_range": (-0.1, 0.2)}),
    ("Hopper", {"terminate_when_unhealthy": False, "healthy_reward": 0.3, "frame_skip": 2}),
    ("Humanoid", {**WEIGHTS, "contact_cost_weight": 1e-4, "contact_cost_range": (0.5, 2.0), "clip_action": True}),
    ("Humanoid", {"include_cinert_in_observation": False, "include_qfrc_actuator_in_observation": False}),
    ("Humanoid", {"include_cvel_in_observation": False, "terminate_when_unhealthy": False, "healthy_reward": 2}),
    ("HumanoidStandup", {"impact_cost_weight": 1e-4, "impact_cost_range": (-1.0, 0.5), "reset_noise_scale": 0.1}),
    ("InvertedDoublePendulum", {"healthy_reward": 3.5, "frame_skip": 3, "max_episode_steps": 5}),
    ("InvertedPendulum", {"reset_noise_scale": 0.1, "clip_action": True}),
    ("Pusher", {"reward_near_weight": 0.7, "reward_dist_weight": 1.3, "reward_control_weight": 0.2}),
    ("Reacher", {"reward_dist_weight": 1.3, "reward_control_weight": 0.7, "frame_skip": 3}),
    ("Swimmer", {**WEIGHTS, "exclude_current_positions_from_observation": False}),
    ("Walker2d", {**WEIGHTS, "healthy_z_range": (1.0, 1.4), "healthy_angle_range": (-0.3, 0.4)}),
]


def as_bytes(outcome):
    """Return the outcome of a step of Gymnasium as bytes by name."""
    observation, reward, terminated, truncated, infos = outcome
    values = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated, **infos}
    return {name: np.float64(value).tobytes() for name, value in values.items()}


def compare(name, copies, steps, **keywords):
    """Step copies in C and environments of Gymnasium with the same seeds and actions. Return the number of ends."""
    twin = twin_of(name, keywords)
    rows = allocate(twin.observation_space, twin.action_space, copies)
    games = twin.games(copies, "same_step", 2)
    games.bind(**rows)
    originals = [pufferlib.make(name, **keywords).env.env for _ in range(copies)]  # below EpisodeStats
    games.reset(range(copies))
    for index, original in enumerate(originals):
        assert rows["observations"][index].tobytes() == original.reset(seed=index)[0].tobytes()
    low, high = twin.task.low, twin.task.high
    ends = 0
    rng = np.random.default_rng(0)
    for step in range(steps):
        actions = rng.uniform(low, high, rows["actions"].shape).astype(np.float32)
        games.step(actions * 2 if keywords.get("clip_action") else actions)
        for index, original in enumerate(originals):
            outcome = original.step(rows["actions"][index])
            over = outcome[2] or outcome[3]
            row = rows["final_observations" if over else "observations"][index]
            flags = rows["terminals"][index], rows["truncations"][index]
            found = as_bytes((row, games.exact_rewards[index], *flags, infos_of(games, index, over)))
            assert found == as_bytes(outcome), (step, index)
            assert rows["rewards"][index] == np.float32(outcome[1])
            ends += over
            if over:
                assert rows["observations"][index].tobytes() == original.reset()[0].tobytes(), (step, index)
    games.close()
    return ends


def infos_of(games, index, over):
    return games.last_infos(index) if over else games.infos_of(index)


@pytest.mark.parametrize("robot", ROBOTS)
def test_same_seeds_and_actions_give_the_bytes_of_gymnasium(robot):
    assert compare(f"mujoco/{robot}-v5", copies=2, steps=60, max_episode_steps=50) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("robot", ROBOTS)
def test_long_play_gives_the_bytes_of_gymnasium(robot):
    assert compare(f"{robot}-v5", copies=100, steps=1000) > 0


@pytest.mark.parametrize(("robot", "keywords"), VARIED, ids=str)
def test_keywords_have_the_effect_of_gymnasiums(robot, keywords):
    compare(f"mujoco/{robot}", copies=2, steps=40, **keywords)
