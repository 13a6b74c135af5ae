"""``to_rllib`` and ``to_multi_agent``: environments in RLlib's new API stack."""

import functools
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete

import pufferlib
import pufferlib.vector
from pufferlib.emulation import PettingZooPufferEnv
from pufferlib.errors import APIUsageError, UnknownNameError
from tests.envs import FunctionEnv, MaskedEnv, ScriptedParallelEnv, alive, counting_env
from tests.needs import skip_without

skip_without("rllib", "ray.rllib.algorithms.ppo")

import ray  # noqa: E402
from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.core.rl_module.default_model_config import DefaultModelConfig  # noqa: E402
from ray.rllib.core.rl_module.rl_module import RLModuleSpec  # noqa: E402
from ray.rllib.env.multi_agent_env_runner import MultiAgentEnvRunner  # noqa: E402
from ray.rllib.env.single_agent_env_runner import SingleAgentEnvRunner  # noqa: E402
from ray.rllib.examples.rl_modules.classes.action_masking_rlm import ActionMaskingTorchRLModule  # noqa: E402
from ray.rllib.utils.pre_checks.env import check_multiagent_environments  # noqa: E402
from ray.tune import register_env  # noqa: E402

from pufferlib.frameworks.rllib import to_multi_agent, to_rllib  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports RLlib

pytestmark = [
    pytest.mark.filterwarnings("default"),  # warnings of RLlib itself
    pytest.mark.filterwarnings("ignore:.*Overriding environment rllib"),  # each algorithm registers the same ids
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module", autouse=True)
def _shut_down_ray():
    yield
    ray.shutdown()
    for name in [
        name for name in gymnasium.registry if name.startswith("rllib-")
    ]:  # workers would import RLlib to unpickle it
        del gymnasium.registry[name]


def make_config(creator, num_envs=4, mode="vector_entry_point", **env_config):
    register_env("mine", creator)
    return (
        PPOConfig()
        .environment("mine", env_config=env_config)
        .env_runners(num_env_runners=0, num_envs_per_env_runner=num_envs, gym_env_vectorize_mode=mode)
        .debugging(seed=3)
    )


def sample(config, steps):
    """Return episodes with random actions."""
    runner = SingleAgentEnvRunner(config=config)
    episodes = runner.sample(num_timesteps=steps, random_actions=True)
    runner.stop()
    return episodes


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_runner_samples_whole_episodes(backend):
    workers = {"num_workers": 2, "overwork": True} if backend != "Serial" else {}
    creator = to_rllib(emulated_counter, backend=backend, **workers)
    episodes = sample(make_config(creator, length=3), 32)
    assert sum(len(episode) for episode in episodes) == 32
    done = [episode for episode in episodes if episode.is_done]
    assert len(done) == 8
    for episode in done:
        assert episode.get_observations()[:, 0].tolist() == [0, 1, 2, 3]
        assert episode.get_rewards().tolist() == [1, 1, 1]
        assert episode.is_terminated


def emulated_counter(buf=None, seed=0, length=3):
    env = counting_env(length)
    env.knows_rllib = "ray.rllib" in sys.modules
    return pufferlib.emulation.GymnasiumPufferEnv(env, buf=buf, seed=seed)


def test_gymnasium_class_is_emulated_and_gets_env_config():
    episodes = sample(make_config(to_rllib(FunctionEnv), length=3, info=report_count), 16)
    done = [episode for episode in episodes if episode.is_done]
    assert [len(episode) for episode in done] == [3] * 4
    assert [info.get("count") for info in done[0].get_infos()] == [None, 1, 2, 3]


def report_count(env):
    return {"count": env.count}


def test_workers_do_not_import_rllib():
    creator = to_rllib(emulated_counter, backend="Multiprocessing", num_workers=2, overwork=True)
    runner = SingleAgentEnvRunner(config=make_config(creator, num_envs=2))
    assert runner.env.unwrapped.get_attr("knows_rllib") == (False, False)
    runner.stop()


def test_c_environments_are_rows_of_one_environment():
    episodes = sample(make_config(to_rllib("squared"), num_envs=64, size=3), 64 * 20)
    assert any(episode.is_done for episode in episodes)
    expected = pufferlib.make("squared", num_envs=64, size=3)
    first = expected.reset(3)[0]
    starts = [tuple(episode.get_observations(0).ravel()) for episode in episodes if episode.t_started == 0]
    assert {tuple(row.ravel()) for row in first} <= set(starts)


@pytest.mark.parametrize("name", ["CartPole-v1", "cartpole"])
def test_runners_differ_unless_seeds_are_equal(name):
    runners = [to_rllib(name)({"num_envs": 2}) for _ in range(2)]
    first, second = (runner.reset()[0] for runner in runners)
    assert not (first == second).any()
    first, second = (runner.reset(seed=5)[0] for runner in runners)
    assert (first == second).all()
    first, second = (to_rllib(name, seed=5)({"num_envs": 2}).reset()[0] for _ in range(2))
    assert (first == second).all()


def test_agents_of_an_environment_are_rows():
    agents = pufferlib.make("rware", num_envs=1).num_agents
    runner = SingleAgentEnvRunner(config=make_config(to_rllib("rware"), num_envs=2 * agents))
    assert runner.env.unwrapped.vecenv.num_envs == 2
    runner.stop()
    with pytest.raises(APIUsageError, match=f"counts agents, and must be a multiple of the {agents} of an env"):
        to_rllib("rware")({"num_envs": 2 * agents + 1})


@pytest.mark.parametrize(
    ("space", "shown", "action", "sent"),
    [
        (Discrete(3, start=-1), Discrete(3), 2, 1),
        (
            MultiDiscrete([[2, 3], [4, 5]], start=[[0, 1], [0, 0]]),
            MultiDiscrete([2, 3, 4, 5]),
            [1, 2, 3, 4],
            [[1, 3], [3, 4]],
        ),
        (Box(-1, 9, (1,), np.int8), Box(-1, 9, (1,), np.float32), [1.6], [2]),
    ],
)
def test_action_spaces_start_at_zero_and_have_one_axis(space, shown, action, sent):
    observations = space if space.dtype == np.int64 else None
    creator = functools.partial(FunctionEnv, observations, space)
    env = to_rllib(functools.partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=creator))({"num_envs": 2})
    assert env.single_action_space == shown
    observed, _ = env.reset(seed=1)
    assert observed in env.observation_space
    env.step(np.array([action] * 2))
    assert [np.asarray(actions[-1]).tolist() for actions in env.get_attr("actions")] == [sent] * 2
    env.close()
    parallel = ScriptedParallelEnv("a", {"a": "alive"}, action_space=space)
    agents = to_multi_agent(parallel)
    assert agents.action_spaces["a"] == shown
    agents.reset()
    agents.step({"a": np.array(action)})
    assert np.asarray(parallel.got[-1]["a"]).tolist() == sent
    agents.close()


@pytest.mark.all
def test_mixed_actions_are_sampled_and_learned():
    space = Dict({"aim": Box(-2, 2, (2,), np.float32), "button": Discrete(3, start=5), "flags": MultiBinary(2)})
    creator = functools.partial(FunctionEnv, Box(-1, 1, (3,), np.float32), space, length=4)
    config = make_config(
        to_rllib(functools.partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=creator))
    ).training(train_batch_size_per_learner=64, minibatch_size=32, num_epochs=1)
    algorithm = config.build_algo()
    env = algorithm.env_runner.env.unwrapped
    assert env.single_action_space == Dict({"aim": space["aim"], "button": Discrete(3), "flags": MultiDiscrete([2, 2])})
    algorithm.train()
    for actions in env.get_attr("actions"):
        assert len(actions) > 5
        assert all(map(space.contains, actions))
    algorithm.stop()


def masked_observations():
    """Return an environment whose observations have the keys that RLlib's module for masks needs."""
    keys = {"action_mask": "action_mask", "observations": "left"}
    space = gymnasium.spaces.Dict({key: MaskedEnv.observation_space[field] for key, field in keys.items()})
    return gymnasium.wrappers.TransformObservation(
        MaskedEnv(), lambda observation: {key: observation[field] for key, field in keys.items()}, space
    )


def test_action_masking_module_takes_only_legal_actions():
    creator = functools.partial(pufferlib.emulation.GymnasiumPufferEnv, env_creator=masked_observations)
    module = RLModuleSpec(module_class=ActionMaskingTorchRLModule)
    runner = SingleAgentEnvRunner(config=make_config(to_rllib(creator), num_envs=2).rl_module(rl_module_spec=module))
    episodes = runner.sample(num_timesteps=60)  # the environment raises if an action is illegal
    assert sum(map(len, episodes)) >= 60
    runner.stop()


def test_to_multi_agent_maps_agents_to_policies():
    for creator in (lambda config: to_multi_agent(pufferlib.make("rware", num_envs=1, **config)), scripted):
        check_multiagent_environments(creator({}))
        config = make_config(creator, num_envs=2, mode="sync").multi_agent(
            policies={"first", "others"},
            policy_mapping_fn=lambda agent, episode, **_: "first" if agent in ("a", "agent_0") else "others",
        )
        runner = MultiAgentEnvRunner(config=config)
        episodes = runner.sample(num_timesteps=20, random_actions=True)
        assert {module for episode in episodes for module in map(episode.module_for, episode.agent_ids)} == {
            "first",
            "others",
        }
        runner.stop()


def scripted(config, last="cut"):
    return to_multi_agent(
        ScriptedParallelEnv(["a", "b", "c"], {"a": "alive", "b": "dead", "c": "alive"}, {"a": last, "c": "dead"})
    )


@pytest.mark.parametrize(("last", "cut"), [("cut", True), ("dead", False)])
def test_multi_agent_episode_is_truncated_or_terminated(last, cut):
    env = scripted({}, last)
    env.reset(seed=0)
    _, _, terminated, truncated, _ = env.step(dict.fromkeys("abc", 0))
    assert (terminated, truncated) == (
        {"a": False, "b": True, "c": False, "__all__": False},
        {**dict.fromkeys("abc", False), "__all__": False},
    )
    _, _, terminated, truncated, _ = env.step(dict.fromkeys("ac", 0))
    assert terminated == {"a": not cut, "c": True, "__all__": not cut}
    assert truncated["__all__"] is cut
    runner = MultiAgentEnvRunner(
        config=make_config(functools.partial(scripted, last=last), num_envs=1, mode="sync").multi_agent(
            policies={"all"}, policy_mapping_fn=lambda *_, **__: "all"
        )
    )
    episode = next(episode for episode in runner.sample(num_timesteps=6, random_actions=True) if episode.is_done)
    agents = episode.agent_episodes
    assert (agents["a"].is_terminated, agents["b"].is_terminated, agents["c"].is_terminated) == (not cut, True, True)
    runner.stop()


def test_unsupported_environments_and_modes_are_refused():
    creator = to_rllib("CartPole-v1")
    with pytest.raises(APIUsageError, match=r'set config.env_runners\(gym_env_vectorize_mode="vector_entry_point"\)'):
        creator({})
    with pytest.raises(UnknownNameError, match="to_rllib: unknown environment 'CartPoel-v1'; did you mean"):
        to_rllib("CartPoel-v1")
    with pytest.raises(APIUsageError, match="autoreset must be \"next_step\", which RLlib expects, got 'same_step'"):
        to_rllib("CartPole-v1", autoreset="same_step")({"num_envs": 2})
    crowd = functools.partial(ScriptedParallelEnv, *[alive("a", "b")] * 9)
    creator = to_rllib(functools.partial(PettingZooPufferEnv, env_creator=crowd))
    with pytest.raises(APIUsageError, match="to_rllib: an environment must have one agent, got 3"):
        creator({"num_envs": 2})
    with pytest.raises(APIUsageError, match="must be a native PufferEnv"):
        to_multi_agent(PettingZooPufferEnv(env_creator=crowd))


@pytest.mark.all
def test_rllib_ppo_solves_cartpole():
    register_env("cartpole", to_rllib("CartPole-v1"))
    ppo = {"num_epochs": 10, "minibatch_size": 256, "lr": 2e-3, "gamma": 0.99, "lambda_": 0.95, "grad_clip": 0.5}
    no_extras = {"use_kl_loss": False, "vf_clip_param": float("inf"), "vf_loss_coeff": 0.5, "clip_param": 0.2}
    config = (
        PPOConfig()
        .environment("cartpole")
        .env_runners(num_env_runners=0, num_envs_per_env_runner=16, gym_env_vectorize_mode="vector_entry_point")
        .training(train_batch_size_per_learner=1024, **ppo, **no_extras)
        .rl_module(
            model_config=DefaultModelConfig(fcnet_hiddens=[64, 64], fcnet_activation="tanh", vf_share_layers=False)
        )
        .reporting(metrics_num_episodes_for_smoothing=10)
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    best = 0.0
    for _ in range(100):
        runners = algorithm.train()["env_runners"]
        best = max(best, runners.get("episode_return_mean", 0.0))
        if best >= 475:
            break
    algorithm.stop()
    assert best >= 475
