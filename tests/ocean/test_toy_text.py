"""Toy text environments, compared with Gymnasium's byte by byte."""

import gymnasium
import numpy as np
import pytest
from gymnasium.envs.toy_text.frozen_lake import generate_random_map

import pufferlib
from pufferlib import ocean
from pufferlib.seeding import env_seed

IDS = {
    "blackjack": "Blackjack-v1",
    "cliff_walking": "CliffWalking-v1",
    "frozen_lake": "FrozenLake-v1",
    "taxi": "Taxi-v4",
}


def assert_same(ours, references, steps):
    """Step games and Gymnasium's environments with the same seeds and random actions. Return the number of ends."""
    rng = np.random.default_rng(1)
    view, _ = ours.reset(seed=0)
    firsts = [env.reset(seed=env_seed(0, game))[0] for game, env in enumerate(references)]
    assert view.tobytes() == np.array(firsts, np.int32).tobytes()
    ends = 0
    for step in range(steps):
        actions = rng.integers(ours.single_action_space.n, size=len(references))
        view, rewards, terminals, truncations, _ = ours.step(actions)
        for game, env in enumerate(references):
            observation, reward, terminated, truncated, _ = env.step(int(actions[game]))
            over = terminated or truncated
            row = ours.final_observations[game] if over else view[game]
            seen = (row.tolist(), rewards[game], terminals[game], truncations[game])
            wanted = (np.atleast_1d(observation).tolist(), reward, terminated, truncated and not terminated)
            assert seen == wanted, (game, step)
            if over:
                ends += 1
                assert view[game].tolist() == np.atleast_1d(env.reset()[0]).tolist(), (game, step)
    return ends


@pytest.mark.parametrize(("games", "steps"), [(10, 300), pytest.param(100, 1000, marks=pytest.mark.all)])
@pytest.mark.parametrize("name", IDS)
def test_same_seeds_and_actions_give_the_bytes_of_gymnasium(name, games, steps):
    references = [gymnasium.make(IDS[name], max_episode_steps=200) for _ in range(games)]
    limit = {} if name == "blackjack" else {"max_steps": 200}
    assert assert_same(ocean.OceanEnv(name, num_envs=games, **limit), references, steps) >= games


VARIED = [
    ("blackjack", {"sab": False}, {"sab": False}),
    ("blackjack", {"sab": False, "natural": True}, {"sab": False, "natural": True}),
    ("cliff_walking", {"is_slippery": True}, {"is_slippery": True}),
    ("frozen_lake", {"size": 8}, {"map_name": "8x8"}),
    ("frozen_lake", {"is_slippery": False}, {"is_slippery": False}),
    ("frozen_lake", {"success_rate": 0.7}, {"success_rate": 0.7}),
    (
        "frozen_lake",
        {"goal_reward": 10, "hole_reward": -5, "frozen_reward": -1},
        {"reward_schedule": (10, -5, -1)},
    ),
    ("frozen_lake", {"size": 6, "map_seed": 3}, {"desc": generate_random_map(6, seed=3)}),
    ("frozen_lake", {"size": 11, "map_seed": 9, "frozen_share": 0.65}, {"desc": generate_random_map(11, 0.65, 9)}),
    ("taxi", {"is_rainy": True}, {"is_rainy": True}),
    ("taxi", {"is_rainy": True, "rainy_probability": 0.35}, {"is_rainy": True, "rainy_probability": 0.35}),
    (
        "taxi",
        {"is_rainy": True, "fickle_passenger": True, "fickle_probability": 0.9},
        {"is_rainy": True, "fickle_passenger": True, "fickle_probability": 0.9},
    ),
]


@pytest.mark.parametrize(("name", "kwargs", "theirs"), VARIED, ids=str)
def test_parameters_have_the_effect_of_gymnasiums(name, kwargs, theirs):
    references = [gymnasium.make(IDS[name], max_episode_steps=100, **theirs) for _ in range(5)]
    limit = {} if name == "blackjack" else {"max_steps": 100}
    assert assert_same(ocean.OceanEnv(name, num_envs=5, **limit, **kwargs), references, 300) >= 5


def test_passenger_who_changes_their_mind_is_the_same():
    """Random actions hardly ever pick the passenger up. These games start in the taxi's place, so they do."""
    kwargs = {"fickle_passenger": True, "fickle_probability": 0.9}
    reference = gymnasium.make("Taxi-v4", **kwargs).unwrapped
    ours = ocean.OceanEnv("taxi", num_envs=1, **kwargs)
    changes = 0
    for seed in range(300):
        state, _ = reference.reset(seed=seed)
        view, _ = ours.reset(seed=seed)
        assert view[0, 0] == state
        destination = state % 4
        for action in path_to_passenger(reference, state) + [4] + [0, 1, 2, 3] * 3:
            state, reward, *_ = reference.step(action)
            view, rewards, *_ = ours.step(np.array([action]))
            assert (view[0, 0], rewards[0]) == (state, reward)
        changes += state % 4 != destination
    assert changes > 200


def path_to_passenger(taxi, state):
    """Return the moves from the taxi to the passenger, the shortest that there are."""
    row, column, passenger, _ = taxi.decode(state)
    known, waiting = {(row, column): []}, [(row, column)]
    for place in waiting:
        for action in range(4):
            row, column, *_ = taxi.decode(taxi.P[taxi.encode(*place, passenger, 0)][action][0][1])
            if (row, column) not in known:
                known[row, column] = [*known[place], action]
                waiting.append((row, column))
    return known[taxi.locs[passenger]]


@pytest.mark.parametrize(("name", "env_id"), IDS.items())
def test_spaces_are_those_of_the_emulated_original(name, env_id):
    ours, original = ocean.OceanEnv(name, num_envs=1), pufferlib.make(env_id)
    assert ours.single_action_space == original.single_action_space
    assert ours.single_observation_space.shape[0] == len(np.atleast_1d(original.env.observation_space.sample()))
    original.close()


def test_map_that_gymnasium_does_not_have_is_refused():
    with pytest.raises(ValueError, match="size must be 4 or 8 without map_seed, which makes a random map"):
        ocean.OceanEnv("frozen_lake", num_envs=1, size=5)
