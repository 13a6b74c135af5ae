"""Gradient steps in C: equal to those of torch, and used only for what C has."""

import copy
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiDiscrete
from torch import nn

from pufferlib.models import Default, make_policy
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.spaces import MixedBox
from pufferlib.training import ppo
from pufferlib.training.accelerate import build_fused_step
from pufferlib.training.kernels import StepInC, build_step_in_c, fused_ppo_loss
from pufferlib.training.optimizers import build_optimizer
from pufferlib.training.rollout import Minibatch
from pufferlib.training.trainer import Trainer
from tests.tiers import once
from tests.training.broken_rollouts import assert_nan_raises_and_keeps_weights

FLOATS = Box(-9, 9, (7,), np.float32)


def env_of(actions, observations=FLOATS, mask=None):
    return SimpleNamespace(
        single_observation_space=observations, single_action_space=actions, emulated=None, action_mask=mask
    )


def batch_of(policy, space, rows, legal=None, **changes):
    draw = {"generator": torch.Generator().manual_seed(0)}
    observations = torch.from_numpy(np.stack([space.sample() for _ in range(rows)]))[None]
    if legal is not None:
        observations[..., legal] = (torch.rand(1, rows, legal.stop - legal.start, **draw) < 0.6).float()
        observations[..., legal.start] = 1
        observations[:, ::7, legal] = 0  # no action is legal
    with torch.no_grad():
        params, values = policy(observations)
        actions = policy.distribution.sample(params, draw["generator"])
        log_probs = policy.distribution.log_prob(params, actions)
    fields = {
        "observations": observations,
        "actions": actions,
        "log_probs": log_probs + 0.2 * torch.randn(1, rows, **draw),
        "values": values + 0.2 * torch.randn(1, rows, **draw),
        "advantages": 1 + torch.randn(1, rows, **draw),
        "returns": torch.randn(1, rows, **draw),
        "mask": None,
        "state": {},
        "episode_starts": None,
    }
    return Minibatch(**{**fields, **changes})


def learned(policy, batch, config, steps, is_c):
    """Return the figures of some steps, then the parameters, their gradients and the state of the optimizer."""
    policy = copy.deepcopy(policy)
    optimizer = build_optimizer(config, policy)
    figures = []
    if is_c:
        step = build_step_in_c(policy, optimizer, fused_ppo_loss, config)
        step.begin(config)
        figures = [figure for _ in range(steps) for figure in step(batch)]
        assert not step.has_failed()
    for _ in range(0 if is_c else steps):
        optimizer.zero_grad()
        figures += ppo.accumulate_gradients(policy, batch, config)
        ppo.apply_gradients(policy, optimizer, config)
    states = [optimizer.state[parameter] for parameter in policy.parameters()]
    moments = [state[name] for state in states for name in ("step", "exp_avg", "exp_avg_sq")]
    gradients = [parameter.grad for parameter in policy.parameters()]
    return [torch.stack(figures), *policy.parameters(), *gradients, *moments]


MIXED = MixedBox(np.array([0, -1, -1]), np.array([2, 1, 1]), np.array([True, False, False]), np.float32)
NETWORKS = [
    {},
    {"networks": "separate", "activation": "tanh"},
    {"hidden_sizes": (33, 16, 50), "activation": "elu"},
    {"networks": "separate", "hidden_sizes": (20,), "critic_hidden_sizes": (40, 9), "log_std_init": -0.5},
]


ACTIONS = [Discrete(5), MultiDiscrete([2, 4]), Box(-1, 1, (3,), np.float32), MIXED]
ROWS = [1, 64, 300]


@pytest.mark.parametrize(
    ("rows", "actions", "options"),
    once(
        [(rows, actions, options) for rows in ROWS for actions in ACTIONS for options in NETWORKS],
        [
            *((64, actions, options) for actions in ACTIONS for options in NETWORKS),
            *((rows, MIXED, NETWORKS[2]) for rows in ROWS),
        ],
    ),
    ids=str,
)
def test_steps_match_those_of_torch(rows, actions, options):
    torch.manual_seed(0)
    FLOATS.seed(0)
    if isinstance(actions, Discrete | MultiDiscrete):
        options = {key: value for key, value in options.items() if key != "log_std_init"}
    policy = Default(env_of(actions), hidden_size=24, **options)
    config = TrainConfig(learning_rate=3e-3, ent_coef=0.02, vf_clip_coef=0.3, norm_adv=rows > 1, max_grad_norm=0.4)
    batch = batch_of(policy, FLOATS, rows)
    for by_torch, in_c in zip(*(learned(policy, batch, config, 6, is_c) for is_c in (False, True)), strict=True):
        torch.testing.assert_close(in_c, by_torch, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize("counted", ["mask", "weights"])
def test_steps_of_masked_actions_and_steps_match_those_of_torch(counted):
    torch.manual_seed(0)
    FLOATS.seed(0)
    policy, generator = Default(env_of(Discrete(4), mask=slice(2, 6)), hidden_size=16), torch.Generator().manual_seed(1)
    mask = torch.rand(1, 90, generator=generator) < 0.7
    changes = {"mask": mask, "weights": torch.rand(1, 90, generator=generator) * mask if counted == "weights" else None}
    batch = batch_of(policy, FLOATS, 90, policy.mask_elements, **changes)
    config = TrainConfig(max_grad_norm=0.0)
    for by_torch, in_c in zip(*(learned(policy, batch, config, 4, is_c) for is_c in (False, True)), strict=True):
        torch.testing.assert_close(in_c, by_torch, rtol=2e-4, atol=2e-6)


@pytest.mark.parametrize(
    "space", [Box(0, 9, (3, 3), np.uint8), Box(0, 200_000, (2,), np.int32), Box(-9, 9, (5,), np.float64)], ids=str
)
def test_steps_with_other_observations_match_those_of_torch(space):
    torch.manual_seed(0)
    space.seed(0)
    policy = Default(env_of(Discrete(3), space), hidden_size=16)
    batch = batch_of(policy, space, 50)
    for by_torch, in_c in zip(*(learned(policy, batch, TrainConfig(), 4, c) for c in (False, True)), strict=True):
        torch.testing.assert_close(in_c, by_torch, rtol=2e-4, atol=2e-6)


def built(config=None, *, loss=fused_ppo_loss, change=lambda policy: None, memory="none", **options):
    config = config or TrainConfig()
    policy = make_policy(env_of(Box(-1, 1, (2,), np.float32)), "Default", 16, 1, memory, **options)
    change(policy)
    return build_step_in_c(policy, build_optimizer(config, policy), loss, config)


def test_what_c_lacks_is_left_to_torch():
    assert isinstance(built(), StepInC)
    for options in ({"layer_norm": True}, {"activation": "gelu"}, {"state_dependent_std": True}, {"memory": "LSTM"}):
        assert built(**options) is None
    for settings in ({"precision": "bfloat16"}, {"accumulate_minibatches": 2}, {"optimizer": "muon"}):
        assert built(TrainConfig(**settings)) is None
    assert built(loss=ppo.ppo_loss) is None

    def freeze(policy):
        policy.encoder[0].weight.requires_grad = False

    def add_hook(policy):
        policy.encoder.register_forward_hook(lambda *_: None)

    def add_layer(policy):
        policy.encoder.append(nn.Linear(16, 16))

    assert [built(change=change) for change in (freeze, add_hook, add_layer)] == [None] * 3


@pytest.mark.parametrize(("target_kl", "expected"), [(0.0, 20), (1e-9, 1)])
def test_target_kl_ends_update(target_kl, expected):
    torch.manual_seed(0)
    FLOATS.seed(0)
    policy = Default(env_of(Discrete(3)), hidden_size=16)
    config = TrainConfig(target_kl=target_kl)
    step = build_step_in_c(policy, build_optimizer(config, policy), fused_ppo_loss, config)
    step.begin(config)
    batch = batch_of(policy, FLOATS, 32)
    figures = torch.stack([figure for _ in range(20) for figure in step(batch)])
    assert int(figures[:, 0].isfinite().sum()) == expected
    assert step.has_ended() is (expected == 1)


@pytest.fixture
def trainer(tmp_path):
    settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.horizon": 16, "train.minibatch_size": 32}
    trainer = Trainer(load_config("CartPole-v1", {**settings, "train.device": "cpu"}), tmp_path)
    yield trainer
    trainer.close()


def add_forward_hook(trainer, seen):
    trainer.policy.encoder.register_forward_hook(lambda *_: seen.append(None))


def add_backward_hook(trainer, seen):
    trainer.policy.encoder[2].register_full_backward_hook(lambda *_: seen.append(None))


def add_hook_of_gradient(trainer, seen):
    trainer.policy.encoder[0].weight.register_hook(lambda _: seen.append(None))


def add_hook_of_optimizer(trainer, seen):
    trainer.optimizer.register_step_post_hook(lambda *_: seen.append(None))


def replace_step(trainer, seen):
    own = trainer.optimizer.step
    trainer.optimizer.step = lambda: (seen.append(None), own())


@pytest.mark.parametrize(
    "change", [add_forward_hook, add_backward_hook, add_hook_of_gradient, add_hook_of_optimizer, replace_step]
)
def test_hooks_are_called(trainer, change):
    trainer.step()
    seen = []
    change(trainer, seen)
    trainer.step()
    assert seen


def test_frozen_layers_and_weight_decay_take_effect(trainer):
    trainer.step()
    trainer.policy.encoder[0].weight.requires_grad = False
    before = {name: weights.detach().clone() for name, weights in trainer.policy.named_parameters()}
    trainer.step()
    same = [name for name, weights in trainer.policy.named_parameters() if torch.equal(weights, before[name])]
    assert same == ["encoder.0.weight"]
    trainer.policy.encoder[0].weight.requires_grad = True
    trainer.optimizer.param_groups[0].update(weight_decay=1e3, lr=0.0)  # the decay shows in the moments
    trainer.step()
    decayed = trainer.optimizer.state[trainer.policy.encoder[0].weight]["exp_avg_sq"]
    assert float(decayed.max()) > 1e2


def test_nan_raises_and_keeps_weights(trainer):
    trainer.step()
    trained = trainer.policy, trainer.optimizer, fused_ppo_loss, trainer.config.train
    assert isinstance(build_fused_step(*trained, trainer.device, ranks=1), StepInC)
    assert build_fused_step(*trained, trainer.device, ranks=2) is None
    assert_nan_raises_and_keeps_weights(trainer)
