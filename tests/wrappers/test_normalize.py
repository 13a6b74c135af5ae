"""NormalizeObservation and NormalizeReward, compared with Gymnasium's wrappers and with numpy."""

import functools

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, Tuple
from gymnasium.wrappers import vector as theirs

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.pytorch import nativize_dtype, nativize_tensor
from pufferlib.vector import to_gymnasium
from pufferlib.wrappers.vector import FrameStack, NormalizeObservation, NormalizeReward
from tests.envs import FunctionEnv
from tests.wrappers.batches import MATRIX, Spy, comes_and_goes, make, play, varied


@pytest.mark.parametrize("backend", ["serial", "workers"])
def test_normalize_observation_matches_gymnasium(backend):
    mine, other = (make(layout=backend, autoreset="next_step") for _ in range(2))
    mine = NormalizeObservation(mine, clip=1e9)
    other = theirs.NormalizeObservation(pufferlib.vector.to_gymnasium(other))
    with mine:
        assert np.allclose(mine.reset(seed=5)[0], other.reset(seed=5)[0], atol=1e-3)
        for step in range(40):
            actions = np.full(4, step % 2)
            assert np.allclose(mine.step(actions)[0], other.step(actions)[0], atol=1e-3)
        assert np.allclose(mine.mean, other.obs_rms.mean, atol=1e-4)
        assert np.allclose(mine.var, other.obs_rms.var, rtol=1e-3)
    other.close()


def test_normalize_reward_matches_gymnasium():
    mine, other = (make(varied(truncates=True)) for _ in range(2))  # Gymnasium resets returns at truncations only
    mine = NormalizeReward(mine, gamma=0.9, clip=1e9)
    other = theirs.NormalizeReward(pufferlib.vector.to_gymnasium(other), gamma=0.9)
    with mine:
        mine.reset(seed=5)
        other.reset(seed=5)
        for step in range(40):
            actions = np.full(4, step % 2)
            rewards, expected = mine.step(actions)[1], other.step(actions)[1]
            assert step < 5 or np.allclose(
                rewards, expected, rtol=1e-3
            )  # Gymnasium starts with some weight on variance 1
    other.close()


def test_rare_rewards_keep_their_differences():
    """Divided by the deviation of the returns, which is 0.1 here, all of them would be above the limit of 10."""
    creator = varied(FunctionEnv, length=200, reward=lambda env: (1.0 + env.actions[-1]) * (env.count == 200))
    with NormalizeReward(make(creator, num_envs=2), gamma=1) as vecenv:
        vecenv.reset()
        rewards = np.array([vecenv.step(np.array([0, 1]))[1].copy() for _ in range(1000)])
        assert vecenv.rms == pytest.approx(np.sqrt((1 + 4) / 2))
    assert np.allclose(rewards[199::200], [[2 * np.sqrt(10), 10]] * 5)


@pytest.mark.parametrize(("layout", "autoreset"), MATRIX)
def test_mean_and_variance_match_numpy(layout, autoreset):
    spy = Spy(make(layout=layout, autoreset=autoreset))
    with NormalizeReward(NormalizeObservation(spy), gamma=0.5) as vecenv:
        received = [observations.copy() for observations, *_ in play(vecenv, 30)]
        shown = [row["observation"] for row in spy.rows]
        assert np.allclose(vecenv.vecenv.mean, np.mean(shown, 0), atol=1e-3)
        assert np.allclose(vecenv.vecenv.var, np.var(shown, 0), rtol=1e-3)
        returns, seen = np.zeros(4), []
        for row in spy.rows:
            if row["acted"]:
                returns[row["agent"]] = returns[row["agent"]] * 0.5 + row["reward"]
                seen.append(returns[row["agent"]])
            if row["ended"] or row["begins"]:
                returns[row["agent"]] = 0
        assert np.isclose(vecenv.var, np.var(seen), rtol=1e-3)
        assert np.allclose(vecenv.rewards, spy.rewards / np.sqrt(np.var(seen)), rtol=1e-3)
    assert 1 < np.abs(received[10:]).max() < 3


@pytest.mark.parametrize("wrap", [NormalizeObservation, lambda envs: FrameStack(envs, 3)], ids=["normalize", "stack"])
def test_adapters_return_wrapped_labels_as_the_wrapper_does(wrap):
    with wrap(pufferlib.make("FrozenLake-v1", num_envs=2, backend="Serial")) as wrapped:
        envs = to_gymnasium(wrapped)
        observations, _ = envs.reset(seed=1)
        assert observations.dtype == envs.single_observation_space.dtype == wrapped.single_observation_space.dtype
        assert np.array_equal(observations, wrapped.observations)
        assert observations.shape[1:] == envs.single_observation_space.shape


def test_final_observations_are_normalized_but_not_counted():
    spy = Spy(make())
    with NormalizeObservation(spy) as vecenv:
        ends = 0
        for _, _, terminals, *_ in play(vecenv, 30):
            rows = np.flatnonzero(terminals)
            raw = vecenv.vecenv.final_observations[rows]
            expected = (raw - vecenv.mean) / np.sqrt(vecenv.var)
            assert np.allclose(vecenv.final_observations[rows], expected, atol=1e-3)
            ends += len(rows)
        assert ends > 10


def test_absent_agents_do_not_count():
    with NormalizeReward(NormalizeObservation(make(comes_and_goes(), num_envs=2)), gamma=1) as vecenv:
        present, returns, seen = [], np.zeros(6), []
        masks = np.ones(6, bool)
        for step, (_, _, terminals, truncations, _, _, now) in enumerate(play(vecenv, 12)):
            raw = vecenv.vecenv.vecenv
            if step:
                returns[masks] += raw.rewards[masks]
                seen += returns[masks].tolist()
            returns[terminals | truncations] = 0
            masks = now.copy()
            present += raw.observations[masks, 0].tolist()
        # play() takes one more step after its last yield.
        returns[masks] += vecenv.vecenv.vecenv.rewards[masks]
        seen += returns[masks].tolist()
        present += vecenv.vecenv.vecenv.observations[vecenv.masks, 0].tolist()
        assert np.isclose(vecenv.vecenv.mean.item(), np.mean(present), atol=1e-3)
        assert np.isclose(vecenv.var, np.var(seen), rtol=1e-3)


def test_statistics_do_not_change_if_training_is_off():
    with NormalizeReward(NormalizeObservation(make())) as vecenv:
        vecenv.reset()
        vecenv.step(np.zeros(4, int))
        before = vecenv.state_dict()
        vecenv.training = False
        assert not vecenv.vecenv.training
        for _ in range(5):
            observations, *_ = vecenv.step(np.zeros(4, int))
        assert np.isfinite(observations).all()
        assert all(np.array_equal(value, before[key]) for key, value in vecenv.state_dict().items())


def test_small_variance_of_large_numbers_is_exact():
    space = Box(-2e9, 2e9, (1,), np.float64)
    creator = varied(functools.partial(FunctionEnv, space, observe=_far_away))
    with NormalizeObservation(make(creator)) as vecenv:
        for _ in play(vecenv, 20):
            pass
        assert np.isclose(vecenv.mean.item(), 1e9, atol=1)
        assert 0.05 < vecenv.var.item() < 0.2


def _far_away(env):
    return np.array([1e9 + env.np_random.random()])


NESTED = Dict({"place": Tuple([Box(-9, 9, (2,), np.float64), Discrete(3)]), "speed": Box(0, 50, (), np.float32)})


def test_only_real_leaves_of_nested_observations_are_normalized():
    creator = varied(observation_space=NESTED)
    with NormalizeObservation(make(creator)) as vecenv:
        assert set(vecenv.mean) == {"place.f0", "speed"}
        env = pufferlib.vector.to_gymnasium(vecenv)
        assert env.single_observation_space["place"][0] == Box(-10, 10, (2,), np.float32)
        env.reset(seed=7)
        for _ in range(20):
            observations, *_ = env.step(np.zeros(4, int))
            raw = vecenv.vecenv.observations.view(vecenv.vecenv.driver_env.obs_dtype)[:, 0]
            places = (raw["place"]["f0"] - vecenv.mean["place.f0"]) / np.sqrt(vecenv.var["place.f0"])
            assert np.allclose(observations["place"][0], places, atol=1e-3)
            assert np.array_equal(observations["place"][1], raw["place"]["f1"])
            assert np.abs(observations["speed"]).max() < 4
        assert all(
            space.contains(row)
            for space, row in zip(env.observation_space["place"], observations["place"], strict=True)
        )


@pytest.mark.parametrize(
    "keys",
    [{"a.b": 1, "a": {"b": 1000}}, {"a/b": 1, "a.b": 1000}, {"a.b": {"c": 1}, "a": {"b.c": 1000}}],
    ids=str,
)
def test_fields_with_equal_joined_names_have_separate_statistics(keys):
    def space_of(scale):
        if isinstance(scale, dict):
            return Dict({key: space_of(inner) for key, inner in scale.items()})
        return Box(-scale, scale, (2,), np.float32)

    creator = varied(observation_space=space_of(keys))
    with NormalizeObservation(make(creator)) as vecenv:
        for _ in play(vecenv, 20):
            pass
        small, large = sorted(float(var.mean()) for var in vecenv.var.values())
        assert large > 1e5 * small
        state, var = vecenv.state_dict(), vecenv.var
    with NormalizeObservation(make(creator)) as again:
        again.load_state_dict(state)
        assert all(np.array_equal(again.var[name], var[name]) for name in var)


def test_nativize_tensor_reads_normalized_observations():
    torch = pytest.importorskip("torch")
    from pufferlib.pytorch import nativize_dtype, nativize_tensor

    with NormalizeObservation(make(varied(observation_space=NESTED))) as vecenv:
        observations, _ = vecenv.reset()
        assert vecenv.driver_env.emulated is vecenv.emulated
        fields = nativize_tensor(torch.from_numpy(observations), nativize_dtype(vecenv.emulated))
        assert fields["place"]["f0"].dtype == fields["speed"].dtype == torch.float32
        assert fields["place"]["f0"].abs().max() < 3
        assert fields["place"]["f1"].dtype == torch.int32
    reals = Dict({"a": Box(-1, 1, (2,), np.float64), "b": Box(-1, 1, (3,), np.float32)})
    with NormalizeObservation(make(varied(observation_space=reals))) as vecenv:
        assert vecenv.single_observation_space == Box(-10, 10, (5,), np.float32)
        fields = nativize_tensor(torch.from_numpy(vecenv.reset()[0]), nativize_dtype(vecenv.emulated))
        assert fields["b"].shape == (4, 3)


def test_native_environment_is_normalized():
    env = pufferlib.make("cartpole", num_envs=64, seed=1)
    with NormalizeReward(NormalizeObservation(env)) as vecenv:
        assert isinstance(vecenv, pufferlib.PufferEnv)
        vecenv.reset()
        shown = [vecenv.step(vecenv.action_space.sample())[0].copy() for _ in range(100)]
        assert vecenv.observations.shape == (64, 4)
        assert 0.5 < np.std(shown) < 1.5


def test_float_field_of_action_mask_is_not_normalized():
    real, mask = Box(-np.inf, np.inf, (2,), np.float32), Box(0, 1, (3,), np.float32)
    space = Dict({"observation": real, "action_mask": mask})
    rng = np.random.default_rng(0)

    def observe(_env):
        return {"observation": rng.normal(size=2).astype(np.float32), "action_mask": np.eye(3, dtype=np.float32)[1]}

    creator = functools.partial(FunctionEnv, space, Discrete(3), length=4, observe=observe)
    vecenv = NormalizeObservation(make(functools.partial(GymnasiumPufferEnv, env_creator=creator)))
    with vecenv:
        for observations, *_ in play(vecenv, 10):
            fields = nativize_tensor(torch.from_numpy(observations), nativize_dtype(vecenv.emulated))
            assert fields["action_mask"].tolist() == [[0, 1, 0]] * 4
        assert list(vecenv.mean) == ["observation"]


def test_action_mask_is_not_normalized():
    env = pufferlib.make("tripletriad", num_envs=4)
    mask = env.action_mask
    assert mask is not None
    with NormalizeObservation(env) as vecenv:
        observations, _ = vecenv.reset()
        for _ in range(20):
            assert np.array_equal(observations[:, mask] != 0, env.observations[:, mask] != 0)
            observations, *_ = vecenv.step(vecenv.action_space.sample())


def test_wrong_arguments_are_refused():
    with make(varied(observation_space=Dict({"a": Discrete(3)}))) as vecenv:
        with pytest.raises(APIUsageError, match="must have real numbers, got integers only"):
            NormalizeObservation(vecenv)
        with pytest.raises(APIUsageError, match="gamma must be within 0 and 1, got 2"):
            NormalizeReward(vecenv, gamma=2)
        with pytest.raises(APIUsageError, match="NormalizeReward: clip must be above 0, got 0"):
            NormalizeReward(vecenv, clip=0)
        for other in (pufferlib.vector.to_gymnasium(vecenv), gymnasium.make("CartPole-v1")):
            with pytest.raises(APIUsageError, match=r"vecenv must be what pufferlib\.vector\.make returns, got"):
                NormalizeReward(other)
