import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from torch.nn import functional

import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.models import Default, MixedCNN, NatureCNN, Policy, ResNet, make_policy
from pufferlib.models.image_policies import ImageConv2d
from pufferlib.wrappers.vector import FrameStack
from tests.envs import EnvDescription, FunctionEnv, ScriptedPufferEnv

VECTOR = Box(-1, 1, (6,), np.float32)
IMAGE = Box(0, 255, (4, 84, 84), np.uint8)
ACTIONS = [Discrete(3), MultiDiscrete([2, 3]), Box(-1, 1, (2,), np.float32)]


class MaskedEnv(ScriptedPufferEnv):
    """Environment whose first five observed numbers are the action mask."""

    action_mask = slice(0, 5)


@pytest.mark.parametrize("action_space", ACTIONS, ids=str)
@pytest.mark.parametrize("memory", ["none", "LSTM", "GRU", "MinGRU"])
def test_forward_and_forward_eval_shapes(action_space, memory):
    policy = make_policy(EnvDescription(VECTOR, action_space), hidden_size=8, memory=memory)
    outputs = policy.distribution.num_params
    params, values = policy.forward_eval(torch.zeros(5, 6), policy.initial_state(5))
    assert params.shape == (5, outputs)
    assert values.shape == (5,)
    params, values = policy(torch.zeros(7, 5, 6), policy.initial_state(5), torch.zeros(7, 5, dtype=torch.bool))
    assert params.shape == (7, 5, outputs)
    assert values.shape == (7, 5)
    assert policy.is_continuous == isinstance(action_space, Box)
    (params.sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    shapes = r"must have shape \(steps, rows, 6\), got \(5, 6\); call forward_eval"
    with pytest.raises(APIUsageError, match=shapes):
        policy(torch.zeros(5, 6))


def test_default_dtype_other_than_float32_is_refused():
    torch.set_default_dtype(torch.float64)
    try:
        with pytest.raises(APIUsageError, match=r"Default: torch's default dtype must be float32, got torch.float64"):
            make_policy(EnvDescription(VECTOR, Discrete(4)))
    finally:
        torch.set_default_dtype(torch.float32)


def test_initial_policy_is_almost_uniform():
    policy = Default(EnvDescription(VECTOR, Discrete(4)))
    params, _ = policy.forward_eval(torch.rand(20, 6))
    assert params.softmax(-1).sub(0.25).abs().max() < 0.02


def test_nature_cnn_needs_images():
    policy = NatureCNN(EnvDescription(IMAGE, Discrete(6)), hidden_size=32)
    params, _ = policy.forward_eval(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))
    assert params.shape == (2, 6)
    assert sum(parameter.numel() for parameter in policy.convolutions.parameters()) == 77_984
    images = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    plain = policy.encoder(policy.convolutions(images.float()))
    assert torch.allclose(policy.encode_observations(images), plain, atol=1e-5)
    with pytest.raises(APIUsageError, match="NatureCNN: observations must be uint8 images"):
        NatureCNN(EnvDescription(VECTOR, Discrete(6)))


@pytest.mark.parametrize("high", [1, 5])
@pytest.mark.parametrize("network", [NatureCNN, ResNet])
def test_images_are_scaled_by_their_bounds(network, high):
    bytes_, small = (EnvDescription(Box(0, most, (3, 40, 40), np.uint8), Discrete(6)) for most in (255, high))
    policy, other = network(bytes_, hidden_size=32), network(small, hidden_size=32)
    other.load_state_dict(policy.state_dict())
    images = torch.randint(0, 2, (2, 3, 40, 40), dtype=torch.uint8)
    expected = policy.encode_observations(images * 255)
    found = other.encode_observations(images * high)
    # The weights are rounded after they are scaled, and small sums cancel numbers of this size.
    assert torch.allclose(found, expected, atol=1e-5 * expected.max().item())


IMAGES = {
    "bytes": lambda images: images,
    "channels last": lambda images: images.contiguous(memory_format=torch.channels_last),
    "at an odd address": lambda images: torch.cat([images.new_zeros(1), images.flatten()])[1:].view(images.shape),
    "width that is no multiple of 4": lambda images: images[..., :-1].contiguous(),
    "one row": lambda images: images[:1],
    "floats": lambda images: images.float(),
}


@pytest.mark.parametrize("given", IMAGES.values(), ids=IMAGES)
@pytest.mark.parametrize("options", [(4, 32, 8, 4), (4, 16, 3, 1, 1)], ids=["NatureCNN", "ResNet"])
def test_image_convolution_scales_images(options, given):
    torch.manual_seed(0)
    convolution = ImageConv2d(*options, scale=1 / 255)
    images = given(torch.randint(0, 256, (3, 4, 40, 44), dtype=torch.uint8))
    before = images.clone()
    expected = functional.conv2d(images / 255, convolution.weight, convolution.bias, *options[3:])
    seen = convolution(images)
    assert torch.allclose(seen, expected, atol=1e-5)
    (gradient,), (other,) = (torch.autograd.grad(x.square().sum(), [convolution.weight]) for x in (expected, seen))
    assert torch.allclose(gradient, other, rtol=1e-4, atol=1e-2)
    assert torch.equal(images, before)


@pytest.mark.parametrize("network", [NatureCNN, ResNet])
def test_images_can_have_channels_last(network):
    first, last = (EnvDescription(Box(0, 255, shape, np.uint8), Discrete(6)) for shape in ((3, 40, 48), (40, 48, 3)))
    policy, other = network(first, hidden_size=32), network(last, hidden_size=32)
    other.load_state_dict(policy.state_dict())
    images = torch.randint(0, 256, (2, 3, 40, 48), dtype=torch.uint8)
    seen = policy.encode_observations(images)
    assert torch.allclose(other.encode_observations(images.permute(0, 2, 3, 1).contiguous()), seen, atol=1e-5)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((4, 84, 84), 4),
        ((84, 84, 4), 4),
        ((96, 128, 3), 3),
        ((1, 40, 60), 1),
        ((119, 8, 8), 119),
        ((8, 8, 119), 119),
        ((8, 8, 8), 8),
    ],
)
def test_channel_axis_is_detected(shape, expected):
    network = ResNet(EnvDescription(Box(0, 255, shape, np.uint8), Discrete(2)), hidden_size=4, channels=2)
    assert network.convolutions[0][0].in_channels == expected


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("NatureCNN", {}, [32, 64, 64]),
        ("NatureCNN", {"channels": 5}, [5, 10, 10]),
        ("MixedCNN", {"channels": 5}, [5, 10, 10]),
        ("ResNet", {"channels": 2}, [2] * 5 + [4] * 10),
    ],
)
def test_channels_of_convolutions(name, options, expected):
    image = Box(0, 255, (3, 40, 40), np.uint8)
    actions = Discrete(3)
    emulated = GymnasiumPufferEnv(FunctionEnv(Dict(image=image), actions))
    env = emulated if name == "MixedCNN" else EnvDescription(image, actions)
    layers = make_policy(env, name, hidden_size=8, **options).convolutions.modules()
    assert [layer.out_channels for layer in layers if isinstance(layer, torch.nn.Conv2d)] == expected


def test_nature_cnn_refuses_small_images():
    with pytest.raises(APIUsageError, match="NatureCNN: images must have 36 lines and columns or more, got 35 and 84"):
        NatureCNN(EnvDescription(Box(0, 255, (35, 84, 3), np.uint8), Discrete(6)))
    policy = NatureCNN(EnvDescription(Box(0, 255, (36, 36, 1), np.uint8), Discrete(6)), hidden_size=8)
    assert policy.encode_observations(torch.zeros(1, 36, 36, 1, dtype=torch.uint8)).shape == (1, 8)


def test_resnet_has_the_parameters_of_impala():
    policy = make_policy(EnvDescription(Box(0, 255, (3, 64, 64), np.uint8), Discrete(15)), "ResNet", hidden_size=256)
    assert sum(parameter.numel() for parameter in policy.parameters()) == 626_256  # as published for Procgen
    params, values = policy.forward_eval(torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8))
    assert params.shape == (2, 15)
    (params.sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    with pytest.raises(APIUsageError, match="ResNet: observations must be uint8 images"):
        ResNet(EnvDescription(VECTOR, Discrete(6)))


def test_residual_blocks_with_zero_weights_return_their_input():
    block = ResNet(EnvDescription(IMAGE, Discrete(6)), hidden_size=8, channels=2).convolutions[0][2]
    images = torch.randn(2, 2, 5, 5)
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(block(images), images)


SCREEN = {"screen": Box(0, 255, (3, 36, 40), np.uint8)}
OTHER_FIELDS = {"numbers": Box(0, 1, (2,), np.float32), "label": Discrete(4)}


@pytest.mark.parametrize("alone", [False, True])
def test_mixed_cnn_uses_image_and_all_other_fields(alone):
    env = GymnasiumPufferEnv(FunctionEnv(Dict(SCREEN if alone else SCREEN | OTHER_FIELDS), Discrete(3)))
    policy = make_policy(env, "MixedCNN", hidden_size=16)
    row = torch.as_tensor(env.reset(seed=1)[0].copy())[None]
    before = policy.encode_observations(row)
    for field in env.env.observation_space:
        changed = row.numpy().copy()
        changed.view(env.obs_dtype)[field] = 0  # the sample was not zero
        assert not torch.equal(policy.encode_observations(torch.as_tensor(changed)), before)
    params, values = policy.forward_eval(row)
    assert params.shape == (1, 3)
    (params.sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_mixed_cnn_needs_an_image_in_a_dict():
    with pytest.raises(APIUsageError, match="MixedCNN: observations must be a Dict or Tuple with one uint8 image"):
        MixedCNN(EnvDescription(IMAGE, Discrete(6)))


# The mask has 5 elements, for the two components of MultiDiscrete([2, 3]).
MASKED = Dict({"action_mask": MultiBinary(5), "board": Box(0, 9, (4,), np.int32)})


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_action_mask_field_forbids_actions(memory):
    env = GymnasiumPufferEnv(FunctionEnv(MASKED, MultiDiscrete([2, 3])))
    policy = make_policy(env, hidden_size=8, memory=memory)
    rows = np.zeros((2, 6), env.obs_dtype)
    rows["action_mask"] = [0, 1, 1, 0, 1]
    rows["action_mask"][1, 5] = 0  # an absent agent
    observations = torch.from_numpy(rows.view(env.single_observation_space.dtype).reshape(2, 6, -1))
    params, _ = policy(observations)
    probabilities = params.split([2, 3], -1)[1].softmax(-1)
    assert (probabilities[0, :, 1] == 0).all()
    assert torch.allclose(probabilities[0].sum(-1), torch.ones(6))
    assert torch.allclose(probabilities[1, 5], torch.full((3,), 1 / 3))
    assert torch.isfinite(policy.distribution.entropy(params)).all()
    one_step, _ = policy.forward_eval(observations[0], policy.initial_state(6))
    assert torch.allclose(one_step, params[0])
    with torch.autocast("cpu", torch.float16):
        halved, _ = policy.forward_eval(observations[0], policy.initial_state(6))
    assert (halved.split([2, 3], -1)[1].float().softmax(-1)[:, 1] == 0).all()


@pytest.mark.parametrize("made", [EnvDescription, lambda env: torch.nn.Linear(2, 2)])
def test_network_that_is_no_policy_is_refused(made):
    with pytest.raises(
        APIUsageError, match=r"must be a pufferlib\.models\.Policy, got .*; derive it from that, and de"
    ):
        make_policy(EnvDescription(VECTOR, Discrete(3)), made)


def test_empty_action_is_refused():
    with pytest.raises(APIUsageError, match=r"action must have at least one number, got Box\(.*\(0,\)"):
        make_policy(EnvDescription(VECTOR, Box(-1, 1, (0,), np.float32)))


def test_empty_observation_is_refused():
    with pytest.raises(APIUsageError, match=r"observation must have at least one number, got Box\(.*\(0,\)"):
        make_policy(EnvDescription(Box(-1, 1, (0,), np.float32), Discrete(3)))


def test_action_mask_field_of_another_size_is_ignored():
    env = GymnasiumPufferEnv(FunctionEnv(MASKED, Discrete(4)))
    assert make_policy(env).action_mask(torch.from_numpy(env.observations)) is None


@pytest.mark.parametrize("memory", ["none", "LSTM"])
@pytest.mark.parametrize("action_space", [Discrete(5), MultiDiscrete([2, 3])], ids=str)
def test_action_mask_slice_forbids_actions(action_space, memory):
    space = Box(0, 255, (4, 3), np.uint8)
    policy = make_policy(EnvDescription(space, action_space, slice(2, 7)), hidden_size=8, memory=memory)
    observations = torch.randint(0, 256, (2, 6, 4, 3), dtype=torch.uint8)
    legal = torch.tensor([0, 255, 1, 0, 7], dtype=torch.uint8)
    observations.flatten(2)[..., 2:7] = legal
    params, values = policy(observations)
    probabilities = params.softmax(-1)
    assert (probabilities[..., legal == 0] == 0).all()
    generator = torch.Generator().manual_seed(0)
    actions = policy.distribution.sample(params.repeat(50, 1, 1), generator).flatten(0, 1)
    if isinstance(action_space, Discrete):
        assert set(actions.tolist()) == {1, 2, 4}
        expected = -(probabilities[..., legal > 0] * probabilities[..., legal > 0].log()).sum(-1)
        assert torch.allclose(policy.distribution.entropy(params), expected)
    else:
        assert {tuple(action) for action in actions.tolist()} == {(1, 0), (1, 2)}
    (params[..., legal > 0].sum() + policy.distribution.entropy(params).sum() + values.sum()).backward()
    assert all(parameter.grad.isfinite().all() for parameter in policy.parameters())
    one_step, _ = policy.forward_eval(observations[0], policy.initial_state(6))
    assert torch.allclose(one_step, params[0])


@pytest.mark.parametrize("wrap", [lambda vecenv: vecenv, lambda vecenv: FrameStack(vecenv, 2)], ids=["batch", "stack"])
def test_action_mask_of_a_batch_is_that_of_its_environments(wrap):
    vecenv = wrap(pufferlib.vector.make(MaskedEnv, env_kwargs={"size": 6}, num_envs=2, backend="Serial"))
    for env in (vecenv, vecenv.driver_env):
        assert make_policy(env).mask_elements == vecenv.driver_env.action_mask


def test_unknown_policy_suggests_a_name():
    env = EnvDescription(VECTOR, Discrete(3))
    with pytest.raises(UnknownNameError, match="unknown policy 'Defualt'; did you mean 'Default'"):
        make_policy(env, "Defualt")


class Narrow(Policy):
    def __init__(self, env):
        super().__init__(env, hidden_size=16)

    def encode_observations(self, observations):
        return observations[:, :3]


def test_features_of_wrong_size_raise():
    policy = Narrow(EnvDescription(VECTOR, Discrete(3)))
    observations = torch.zeros(2, 5, *VECTOR.shape)
    for act in (policy.forward_eval, lambda rows: policy(rows[None])):
        with pytest.raises(APIUsageError, match=r"Narrow\.encode_observations: must .* \(rows, 16\), got 3 numbers"):
            act(observations[0])
