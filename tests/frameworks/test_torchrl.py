"""``to_torchrl``: vector environments as EnvBase, with TorchRL's checker, transforms, collectors and PPO."""

import functools
import sys

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv, PettingZooPufferEnv
from pufferlib.errors import APIUsageError
from tests.envs import MIXED, FunctionEnv, MaskedEnv, ScriptedParallelEnv, ScriptedPufferEnv, alive, counting_env
from tests.needs import skip_without

skip_without("torchrl", "torchrl.collectors", "torchrl.objectives")

import torch  # noqa: E402
from tensordict.nn import TensorDictModule  # noqa: E402
from torch.distributions import Categorical  # noqa: E402
from torchrl.collectors import Collector  # noqa: E402
from torchrl.envs import ActionMask, Compose, FrameSkipTransform, RewardSum, StepCounter, TransformedEnv  # noqa: E402
from torchrl.envs.utils import check_env_specs  # noqa: E402
from torchrl.modules import ProbabilisticActor, ValueOperator  # noqa: E402
from torchrl.objectives import ClipPPOLoss  # noqa: E402
from torchrl.objectives.value import GAE  # noqa: E402

from pufferlib.frameworks.torchrl import to_torchrl  # noqa: E402

cloudpickle.register_pickle_by_value(sys.modules[__name__])  # so that no worker imports pytest

NESTED = Dict(
    {
        "place": Box(-99, 99, (2,), np.float32),
        "near": Dict({"kind": Discrete(4, start=7), "flags": MultiBinary(3)}),
        "items": MultiDiscrete([3, 4, 5]),
        "grid": MultiDiscrete([[2, 3], [4, 5]]),
        "gold": Box(0, np.inf, (), np.float64),
        "turn": Discrete(6),
    }
)


def make_emulated(creator, num_envs=4, backend="Serial", **options):
    options = {"autoreset": "same_step", "overwork": True, **options}
    creator = functools.partial(GymnasiumPufferEnv, env_creator=creator)
    return pufferlib.vector.make(creator, num_envs=num_envs, backend=backend, **options)


VECTOR_ENVS = {
    "box": lambda: make_emulated(functools.partial(gymnasium.make, "CartPole-v1")),
    "nested": lambda: make_emulated(functools.partial(FunctionEnv, NESTED, length=5)),
    "continuous actions": lambda: make_emulated(functools.partial(gymnasium.make, "Pendulum-v1")),
    "mixed actions": lambda: make_emulated(functools.partial(FunctionEnv, None, MIXED, length=5)),
    "multi-discrete actions": lambda: make_emulated(
        functools.partial(FunctionEnv, None, MultiDiscrete([3, 4]), length=5)
    ),
    "workers": lambda: make_emulated(functools.partial(FunctionEnv, NESTED), backend="Multiprocessing", num_workers=2),
    "c": lambda: pufferlib.make("breakout", num_envs=3),
    "several agents": lambda: pufferlib.make("rware", num_envs=2),
    "action masks": lambda: pufferlib.make("tripletriad", num_envs=3),
}


@pytest.mark.parametrize("kind", VECTOR_ENVS)
def test_check_env_specs_passes(kind):
    vecenv = VECTOR_ENVS[kind]()
    env = to_torchrl(vecenv)
    assert env.batch_size == (vecenv.num_agents,)
    check_env_specs(env, seed=1)
    env.close()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_rollout_has_final_and_reset_observations(backend):
    creators = [functools.partial(counting_env, length, truncates=length == 3) for length in (2, 3)]
    creators = [functools.partial(GymnasiumPufferEnv, env_creator=creator) for creator in creators]
    workers = {"num_workers": 2, "overwork": True} if backend != "Serial" else {}
    env = to_torchrl(pufferlib.vector.make(creators, num_envs=2, backend=backend, autoreset="same_step", **workers))
    data = env.rollout(7, break_when_any_done=False)
    seen, shown = data["observation"][..., 0].tolist(), data["next", "observation"][..., 0].tolist()
    assert seen == [[0, 1, 0, 1, 0, 1, 0], [0, 1, 2, 0, 1, 2, 0]]
    assert shown == [[1, 2, 1, 2, 1, 2, 1], [1, 2, 3, 1, 2, 3, 1]]
    ends = {name: data["next", name][..., 0].int().tolist() for name in ("terminated", "truncated", "done")}
    assert ends["terminated"] == [[0, 1, 0, 1, 0, 1, 0], [0] * 7]
    assert ends["truncated"] == [[0] * 7, [0, 0, 1, 0, 0, 1, 0]]
    assert ends["done"] == [[0, 1, 0, 1, 0, 1, 0], [0, 0, 1, 0, 0, 1, 0]]
    assert (data["next", "reward"] == 1).all()
    env.close()


def test_nested_observations_have_the_keys_of_their_space():
    vecenv = make_emulated(functools.partial(FunctionEnv, NESTED))
    data = to_torchrl(vecenv).reset()
    (last,) = vecenv.get_attr("observations", env_ids=1)
    assert data["near", "kind"][1] == last[-1]["near"]["kind"]
    assert data["grid"][1].tolist() == last[-1]["grid"].tolist()
    assert data["near", "flags"].shape == (4, 3)
    assert data["gold"].dtype == torch.float64
    vecenv.close()


def test_mixed_actions_have_the_keys_of_their_space():
    env = to_torchrl(make_emulated(functools.partial(FunctionEnv, None, MIXED)))
    env.reset()
    sent = env.rand_action()
    assert sent["action", "rest", "1"].shape == (4, 1)
    env.step(sent)
    for row, (action,) in enumerate(env.vecenv.get_attr("actions")):
        assert MIXED.contains(action)
        assert action["aim"].tolist() == sent["action", "aim"][row].tolist()
        assert action["button"] == int(sent["action", "button"][row])
    env.close()


@pytest.mark.parametrize("kind", ["emulated", "c"])
def test_transforms_can_truncate_episodes(kind):
    vecenv = make_emulated(counting_env, num_envs=2) if kind == "emulated" else pufferlib.make("cartpole", num_envs=2)
    env = TransformedEnv(to_torchrl(vecenv), Compose(StepCounter(max_steps=2), RewardSum()))
    data = env.rollout(5, break_when_any_done=False)
    assert data["next", "episode_reward"][..., 0].tolist() == [[1, 2, 1, 2, 1]] * 2
    if kind == "emulated":
        assert data["observation"][..., 0].tolist() == [[0, 1, 0, 1, 0]] * 2
    else:
        assert data["observation"][:, ::2].abs().max() < 0.05 < data["next", "observation"].abs().max()
    env.close()


def test_rows_can_be_reset_within_episodes():
    env = to_torchrl(make_emulated(functools.partial(counting_env, 3), num_envs=3))
    data = env.rollout(2)[:, -1]["next"].exclude("reward")
    data["_reset"] = torch.tensor([[True], [False], [True]])
    data = env.reset(data)
    assert data["observation"].tolist() == [[0], [2], [0]]
    data["action"] = torch.zeros(3, dtype=torch.int64)
    assert env.step(data)["next", "done"].tolist() == [[False], [True], [False]]
    env.close()


def test_done_rows_wait_with_break_when_all_done():
    creators = [functools.partial(counting_env, length) for length in (1, 3)]
    creators = [functools.partial(GymnasiumPufferEnv, env_creator=creator) for creator in creators]
    env = to_torchrl(pufferlib.vector.make(creators, num_envs=2, backend="Serial", autoreset="same_step"))
    for _ in range(2):
        data = env.rollout(9, break_when_any_done=False, break_when_all_done=True)
        assert data["next", "observation"][..., 0].tolist() == [[1, 1, 1], [1, 2, 3]]
    env.close()


@pytest.mark.parametrize("kind", ["box", "c"])
def test_set_seed_reproduces_rollouts(kind):
    env = to_torchrl(VECTOR_ENVS[kind]())
    first, repeated = (seeded_rollout(env, 7) for _ in range(2))
    other = seeded_rollout(env, 8)
    assert (first == repeated).all()
    assert not (first["observation"] == other["observation"]).all()
    env.close()


def seeded_rollout(env, seed):
    env.set_seed(seed)
    torch.manual_seed(0)
    return env.rollout(30, break_when_any_done=False)


def test_c_environments_have_infos_and_action_masks():
    env = to_torchrl(pufferlib.make("tripletriad", num_envs=8, log_interval=1))
    data = env.reset()
    infos = []
    for _ in range(40):
        mask = data["action_mask"]
        assert mask.shape == (8, env.action_spec.space.n)
        data["action"] = mask.int().argmax(-1)
        _, data = env.step_and_maybe_reset(data)
        infos += env.infos
    assert any("score" in info for info in infos)
    env.close()


@pytest.mark.parametrize("backend", ["Serial", "Multiprocessing"])
def test_action_mask_comes_from_the_observation(backend):
    env = to_torchrl(make_emulated(MaskedEnv, 2, backend, num_workers=1 if backend != "Serial" else None))
    data = TransformedEnv(env, ActionMask()).rollout(40, break_when_any_done=False)
    assert data["action_mask"].dtype == torch.bool
    assert data["action_mask"].shape == (2, 40, 3)
    assert (data["action_mask"] == (data["left"] > 0)).all()
    env.close()


def test_unrelated_field_named_action_mask_is_refused():
    space = Dict({"action_mask": Box(0, 1, (5,))})
    with pytest.raises(APIUsageError, match="string keys that TorchRL does not use itself, got 'action_mask'"):
        to_torchrl(make_emulated(functools.partial(FunctionEnv, space)))


def test_collector_samples_batches():
    env = to_torchrl(pufferlib.make("breakout", num_envs=16))
    collector = Collector(env, frames_per_batch=64, total_frames=128)
    shapes = [data.shape for data in collector]
    assert shapes == [(16, 4)] * 2
    collector.shutdown()


def test_unsupported_environments_and_modes_are_refused():
    with pytest.raises(APIUsageError, match="autoreset must be \"same_step\", got 'next_step', in which TorchRL"):
        to_torchrl(make_emulated(counting_env, autoreset="next_step"))
    with pytest.raises(APIUsageError, match=r"arrays or Dicts of them, got Tuple\(.* as near.pair; a tensordict has"):
        to_torchrl(make_emulated(functools.partial(FunctionEnv, Dict({"near": Dict({"pair": Tuple([Discrete(2)])})}))))
    for key in ("done", "shape"):
        with pytest.raises(APIUsageError, match=f"string keys that TorchRL does not use itself, got '{key}'"):
            to_torchrl(make_emulated(functools.partial(FunctionEnv, Dict({key: Discrete(2)}))))
    with pytest.raises(APIUsageError, match="got 'dtype' in near"):
        to_torchrl(make_emulated(functools.partial(FunctionEnv, Dict({"near": Dict({"dtype": Discrete(2)})}))))
    crowd = functools.partial(ScriptedParallelEnv, *[alive("a", "b")] * 9)
    creator = functools.partial(PettingZooPufferEnv, env_creator=crowd)
    with pytest.raises(APIUsageError, match="to_torchrl: an environment must have one agent, got 3"):
        to_torchrl(pufferlib.vector.make(creator, backend="Serial", num_envs=2, autoreset="same_step"))


def test_steps_after_the_end_and_partial_resets_of_agents_are_refused():
    env = to_torchrl(make_emulated(functools.partial(counting_env, 1)))
    data = env.rollout(1)[:, -1]["next"]
    data["action"] = torch.zeros(4, dtype=torch.int64)
    with pytest.raises(APIUsageError, match=r"must be reset before the next step, got rows \[0, 1, 2, 3\]; use"):
        env.step(data)
    env.reset()
    skipping = TransformedEnv(env, FrameSkipTransform(2))
    with pytest.raises(APIUsageError, match="FrameSkipTransform steps past ends: repeat actions in the environment"):
        skipping.rollout(1)
    env.close()
    env = to_torchrl(ScriptedPufferEnv(num_agents=2))
    data = env.reset()
    data["_reset"] = torch.tensor([[False], [True]])
    with pytest.raises(APIUsageError, match=r"resets all its agents at once, got rows \[1\] with unfinished episodes"):
        env.reset(data)
    env.close()
    env = to_torchrl(pufferlib.make("rware", num_envs=1))
    data = env.reset()
    data["_reset"] = torch.tensor([[True]] + [[False]] * (len(data) - 1))
    with pytest.raises(APIUsageError, match=r"to_torchrl: _reset must have all \d+ rows of an environment or none"):
        env.reset(data)
    env.close()


@pytest.mark.all
@pytest.mark.timeout(600)
def test_torchrl_ppo_solves_cartpole():
    torch.manual_seed(0)
    creator = pufferlib.env_creator("CartPole-v1")
    vecenv = pufferlib.vector.make(creator, num_envs=32, backend="Serial", autoreset="same_step")
    env = TransformedEnv(to_torchrl(vecenv), RewardSum())
    actor = ProbabilisticActor(
        TensorDictModule(network(2), ["observation"], ["logits"]),
        in_keys=["logits"],
        spec=env.action_spec,
        distribution_class=Categorical,
        return_log_prob=True,
    )
    critic = ValueOperator(network(1))
    loss = ClipPPOLoss(actor, critic, entropy_coeff=0.0)
    advantage = GAE(gamma=0.99, lmbda=0.95, value_network=critic, average_gae=True)
    optimizer = torch.optim.Adam(loss.parameters(), 2e-3)
    options = {"frames_per_batch": 1024, "total_frames": 200 * 1024, "auto_register_policy_transforms": False}
    collector = Collector(env, actor, **options)
    best = 0.0
    for data in collector:
        returns = data["next", "episode_reward"][data["next", "done"]]
        if len(returns) and (best := max(best, returns.mean().item())) >= 475:
            break
        learn(loss, advantage, optimizer, data)
    collector.shutdown()
    assert best >= 475


def network(outputs):
    layers = (torch.nn.Linear(4, 64), torch.nn.Tanh(), torch.nn.Linear(64, 64), torch.nn.Tanh())
    return torch.nn.Sequential(*layers, torch.nn.Linear(64, outputs))


def learn(loss, advantage, optimizer, data):
    with torch.no_grad():
        advantage(data)
    steps = data.reshape(-1)
    for _ in range(10):
        for chosen in torch.randperm(len(steps)).split(256):
            losses = loss(steps[chosen])
            optimizer.zero_grad()
            sum(value for name, value in losses.items() if name.startswith("loss_")).backward()
            torch.nn.utils.clip_grad_norm_(loss.parameters(), 0.5)
            optimizer.step()
