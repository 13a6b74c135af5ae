"""Procgen: steps compared with the library, seeds, ends of episodes, options and the policy."""

from typing import Any

import numpy as np
import pytest

import pufferlib
from pufferlib.bindings import procgen
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.seeding import env_seed
from tests.needs import missing_binding

if reason := missing_binding("procgen"):
    pytest.skip(reason, allow_module_level=True)

from pufferlib.bindings.procgen.env import MODES, NUM_ACTIONS, ProcgenGames, ProcgenGym3Env

STEPS = 400


def play(env: Any, seed: int | None, steps: int = STEPS, columns: slice = slice(None)) -> list[Any]:
    """Return copies of all results. The actions are the ``columns`` of those of a batch of four."""
    actions = np.random.default_rng(0).integers(NUM_ACTIONS, size=(steps, 4))[:, columns]
    seen = [(env.reset(seed)[0].tobytes(), b"", b"")]
    for row in actions:
        observations, rewards, terminals, *_ = env.step(row)
        seen.append((observations.tobytes(), rewards.tobytes(), terminals.tobytes()))
    return seen


def test_names_match_the_library() -> None:
    from procgen.env import ENV_NAMES

    assert procgen.names() == tuple(sorted(ENV_NAMES))


def test_steps_match_the_library() -> None:
    env = ProcgenGames("bigfish", num_envs=1, distribution_mode="easy")
    raw = ProcgenGym3Env(1, "bigfish", distribution_mode="easy", rand_seed=3, num_threads=0)
    ends = 0
    observations, _ = env.reset(seed=3)
    assert np.array_equal(observations, raw.observe()[1]["rgb"])
    for action in np.random.default_rng(0).integers(NUM_ACTIONS, size=STEPS):
        raw.act(np.array([action]))
        reward, observation, first = raw.observe()
        observations, rewards, terminals, truncations, _ = env.step([action])
        assert np.array_equal(observations, observation["rgb"])
        assert (rewards[0], terminals[0], truncations[0]) == (reward[0], first[0], False)
        ends += int(first[0])
    assert ends > 1, "the test must include later levels"
    env.close()
    raw.close()


def test_environments_of_a_batch_equal_single_ones() -> None:
    batch = ProcgenGames("coinrun", num_envs=4, distribution_mode="easy")
    threaded = ProcgenGames("coinrun", num_envs=4, distribution_mode="easy", num_threads=2)
    alone = ProcgenGames("coinrun", distribution_mode="easy")
    together = play(batch, 5)
    assert play(threaded, 5) == together
    for index in (0, 3):
        single = play(alone, env_seed(5, index), columns=slice(index, index + 1))
        assert [step[0] for step in single] == [
            step[0][index * 64 * 64 * 3 : (index + 1) * 64 * 64 * 3] for step in together
        ]
    for env in (batch, threaded, alone):
        env.close()


def test_seed_reproduces_later_resets_without_seed() -> None:
    env = ProcgenGames("maze", num_envs=2, seed=4)
    first = play(env, None, 5, slice(0, 2))  # the seed of the constructor
    second = play(env, None, 5, slice(0, 2))
    assert first[0] != second[0]
    assert play(env, 4, 5, slice(0, 2)) == first
    assert play(env, None, 5, slice(0, 2)) == second
    assert play(env, 5, 5, slice(0, 2)) != first
    env.close()


def test_end_starts_the_next_level_and_reports_the_episode() -> None:
    env = ProcgenGames("bigfish", num_envs=2, distribution_mode="easy")
    env.reset(seed=1)
    sums, lengths, infos_seen = np.zeros(2, np.float32), np.zeros(2, int), 0
    for row in np.random.default_rng(1).integers(NUM_ACTIONS, size=(STEPS, 2)):
        _, rewards, terminals, truncations, infos = env.step(row)
        sums += rewards
        lengths += 1
        assert len(infos) == terminals.sum()
        assert not truncations.any()
        for index, info in zip(np.flatnonzero(terminals), infos, strict=True):
            assert info["episode_return"] == info["score"] == sums[index]
            assert info["episode_length"] == lengths[index]
            assert info["completed"] in (0, 1)
            sums[index], lengths[index] = 0, 0
            infos_seen += 1
    assert infos_seen > 2
    env.close()


def test_num_levels_limits_the_levels() -> None:
    env = ProcgenGames("maze", num_levels=1, start_level=7)
    first = {env.reset(seed)[0].tobytes() for seed in (1, 2, None)}
    env.close()
    assert len(first) == 1


@pytest.mark.parametrize(("mode", "game"), [("memory", "maze"), ("extreme", "chaser"), ("exploration", "coinrun")])
def test_every_distribution_mode_resets(mode: str, game: str) -> None:
    env = ProcgenGames(game, distribution_mode=mode)
    observations, _ = env.reset(seed=0)
    assert observations.any()
    assert mode in MODES
    env.close()


def test_calls_before_reset_and_after_close_raise() -> None:
    env = ProcgenGames("ninja")
    with pytest.raises(APIUsageError, match=r"procgen/ninja\.step: the environment was not reset; call reset first"):
        env.step([0])
    env.reset(seed=0)
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step([0]), env.render):
        with pytest.raises(APIUsageError, match="the environment is closed; make a new one"):
            call()


@pytest.mark.parametrize("actions", [[NUM_ACTIONS], [0, 0], [0.5], None])
def test_wrong_actions_are_refused(actions: Any) -> None:
    env = ProcgenGames("ninja")
    env.reset(seed=0)
    with pytest.raises(APIUsageError, match="actions must be 1 integers from 0 to 14"):
        env.step(actions)
    env.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"distribution_mode": "medium"}, "unknown distribution_mode 'medium'"),
        ({"distribution_mode": "memory"}, "distribution_mode must be one of 'easy', 'hard', got 'memory'"),
        ({"distribution_mode": "exploration"}, "distribution_mode must be one of 'easy', 'hard', got 'exploration'"),
        ({"num_envs": 0}, "num_envs must be an int >= 1"),
        ({"num_levels": -1}, "num_levels must be an int >= 0"),
        ({"num_levels": 2**30, "start_level": 2**30}, "start_level \\+ num_levels must be < 2\\*\\*31"),
        ({"num_threads": 1.5}, "num_threads must be an int >= 0"),
        ({"center_agent": 1}, "center_agent must be True or False, got 1"),
        ({"render_mode": "human"}, "render_mode must be None or 'rgb_array', got 'human'"),
        ({"distribution": "easy"}, "unexpected keyword argument 'distribution'; did you mean 'distribution_mode'"),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(APIUsageError, match=message):
        procgen.env_creator("bigfish")(**options)


def test_unknown_game_suggests_another() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'bigfish'"):
        procgen.env_creator("big-fish")


def test_procgen_cnn_uses_all_pixels() -> None:
    torch = pytest.importorskip("torch")
    from pufferlib.bindings.procgen import policy as policies
    from pufferlib.models import make_policy

    with ProcgenGames("bigfish", num_envs=4) as env:
        policy = make_policy(env, "ProcgenCNN", hidden_size=32, more=policies)
        observations = torch.from_numpy(env.reset(1)[0].copy())
    params, values = policy.forward_eval(observations)
    assert (params.shape, values.shape) == ((4, NUM_ACTIONS), (4,))
    for corner in (0, -1):  # strides could skip the last pixels
        seen = observations.clone()
        seen[:, corner, corner] ^= 255
        assert (policy.forward_eval(seen)[1] != values).all()
    with pytest.raises(APIUsageError, match=r"ProcgenCNN: observations must be images .* got Box\(.*\(4,\)"):
        make_policy(pufferlib.make("cartpole"), "ProcgenCNN", more=policies)
