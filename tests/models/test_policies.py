import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.models import Default, LSTMWrapper, MixedCNN, NatureCNN, ResNet, make_policy
from pufferlib.models.recurrent import lstm, step_by_step
from tests.envs import EnvDescription, FunctionEnv

VECTOR = Box(-1, 1, (6,), np.float32)
IMAGE = Box(0, 255, (4, 84, 84), np.uint8)
ACTIONS = [Discrete(3), MultiDiscrete([2, 3]), Box(-1, 1, (2,), np.float32)]


@pytest.mark.parametrize("action_space", ACTIONS, ids=str)
@pytest.mark.parametrize("recurrent", [False, True])
def test_shapes_of_one_step_and_of_segments(action_space, recurrent):
    policy = make_policy(EnvDescription(VECTOR, action_space), hidden_size=8, recurrent=recurrent)
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


def test_the_first_policy_is_close_to_uniform():
    policy = Default(EnvDescription(VECTOR, Discrete(4)))
    params, _ = policy.forward_eval(torch.rand(20, 6))
    assert params.softmax(-1).sub(0.25).abs().max() < 0.02


def test_nature_cnn_reads_images_only():
    policy = NatureCNN(EnvDescription(IMAGE, Discrete(6)), hidden_size=32)
    params, _ = policy.forward_eval(torch.zeros(2, 4, 84, 84, dtype=torch.uint8))
    assert params.shape == (2, 6)
    assert sum(parameter.numel() for parameter in policy.convolutions.parameters()) == 77_984
    images = torch.randint(0, 256, (2, 4, 84, 84), dtype=torch.uint8)
    plain = policy.encoder(policy.convolutions(images.float().contiguous() / 255))
    assert torch.allclose(policy.encode_observations(images), plain, atol=1e-5)
    with pytest.raises(APIUsageError, match="NatureCNN: observations must be uint8 images"):
        NatureCNN(EnvDescription(VECTOR, Discrete(6)))


def test_resnet_is_the_network_of_impala():
    policy = make_policy(EnvDescription(Box(0, 255, (3, 64, 64), np.uint8), Discrete(15)), "ResNet", hidden_size=256)
    assert sum(parameter.numel() for parameter in policy.parameters()) == 626_256  # as published for Procgen
    params, values = policy.forward_eval(torch.randint(0, 256, (2, 3, 64, 64), dtype=torch.uint8))
    assert params.shape == (2, 15)
    (params.sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())
    with pytest.raises(APIUsageError, match="ResNet: observations must be uint8 images"):
        ResNet(EnvDescription(VECTOR, Discrete(6)))


def test_residual_blocks_add_to_what_comes_in():
    block = ResNet(EnvDescription(IMAGE, Discrete(6)), hidden_size=8, width=2).convolutions[0][2]
    images = torch.randn(2, 2, 5, 5)
    for parameter in block.parameters():
        torch.nn.init.zeros_(parameter)
    assert torch.equal(block(images), images)


PICTURE = {"screen": Box(0, 255, (3, 36, 40), np.uint8)}
BESIDE = {"numbers": Box(0, 1, (2,), np.float32), "label": Discrete(4)}


@pytest.mark.parametrize("alone", [False, True])
def test_mixed_cnn_reads_the_picture_and_everything_beside_it(alone):
    env = GymnasiumPufferEnv(FunctionEnv(Dict(PICTURE if alone else PICTURE | BESIDE), Discrete(3)))
    policy = make_policy(env, "MixedCNN", hidden_size=16)
    row = torch.as_tensor(env.reset(seed=1)[0].copy())[None]
    before = policy.encode_observations(row)
    for field in env.env.observation_space:
        changed = row.numpy().copy()
        changed.view(env.obs_dtype)[field] = 0  # whatever it was, it was something else
        assert not torch.equal(policy.encode_observations(torch.as_tensor(changed)), before)
    params, values = policy.forward_eval(row)
    assert params.shape == (1, 3)
    (params.sum() + values.sum()).backward()
    assert all(parameter.grad is not None for parameter in policy.parameters())


def test_mixed_cnn_says_what_it_needs():
    with pytest.raises(APIUsageError, match="MixedCNN: observations must be a Dict or Tuple with one uint8 image"):
        MixedCNN(EnvDescription(IMAGE, Discrete(6)))


def test_lstm_memory_restarts_where_an_episode_does():
    torch.manual_seed(0)
    policy = make_policy(EnvDescription(VECTOR, Discrete(3)), hidden_size=8, recurrent=True)
    steps, rows = 6, 4
    observations = torch.randn(steps, rows, 6)
    starts = torch.rand(steps, rows) < 0.4
    first = {name: torch.randn(rows, 8) for name in policy.initial_state(rows)}
    params, values = policy(observations, first, starts)
    for row in range(rows):
        state = {name: memory[row : row + 1].clone() for name, memory in first.items()}
        for step in range(steps):
            if starts[step, row]:
                state = policy.initial_state(1)
            one_params, one_value = policy.forward_eval(observations[step, row : row + 1], state)
            assert torch.allclose(params[step, row], one_params[0], atol=1e-6)
            assert torch.allclose(values[step, row], one_value[0], atol=1e-6)


@pytest.mark.parametrize("starts", [None, torch.rand(9, 5, generator=torch.Generator().manual_seed(0)) < 0.3])
def test_a_segment_through_the_lstm_has_the_values_and_gradients_of_its_steps(starts):
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(6, 4)
    inputs, h, c = (torch.randn(*shape, requires_grad=True) for shape in ((9, 5, 6), (5, 4), (5, 4)))
    weights = torch.randn(9, 5, 4), torch.randn(5, 4)
    keep = torch.ones(9, 1, 1) if starts is None else (~starts).float().unsqueeze(-1)
    both = []
    for outputs, memory in (lstm(cell, inputs, h, c, starts), step_by_step(cell, inputs, h, c, keep)):
        loss = (outputs * weights[0]).sum() + (memory * weights[1]).sum()
        both.append([outputs, memory, *torch.autograd.grad(loss, [inputs, h, c, *cell.parameters()])])
    for ours, torchs in zip(*both, strict=True):
        assert torch.allclose(ours, torchs, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_an_lstm_may_compute_in_another_precision(dtype):
    torch.manual_seed(0)
    cell = torch.nn.LSTMCell(6, 4)
    inputs, h, c = torch.randn(3, 5, 6), torch.zeros(5, 4), torch.zeros(5, 4)
    expected, _ = lstm(cell, inputs, h, c, None)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.allclose(lstm(cell, inputs, h, c, None)[0].float(), expected, atol=0.02)
    outputs, _ = lstm(cell.to(dtype), inputs.to(dtype), h.to(dtype), c.to(dtype), None)
    assert outputs.dtype == dtype
    assert torch.allclose(outputs.float(), expected, atol=0.02)


def test_learning_with_an_lstm_costs_each_step_the_same_however_many_there_are():
    """Indexing the inputs of a segment, for one, would have autograd fill an array of all steps at each of them."""
    policy = make_policy(EnvDescription(VECTOR, Discrete(3)), hidden_size=8, recurrent=True)

    def written(steps):
        with Written() as mode:
            starts = torch.zeros(steps, 4, dtype=torch.bool)
            params, values = policy(torch.zeros(steps, 4, 6), policy.initial_state(4), starts)
            (params.sum() + values.sum()).backward()
        return mode.numbers

    assert written(64) - written(32) <= 2 * (written(32) - written(16))


class Written(TorchDispatchMode):
    """Counts the numbers that operations write."""

    numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if not operation.is_view:
            self.numbers += sum(part.numel() for part in tree_leaves(result) if isinstance(part, torch.Tensor))
        return result


def test_lstm_remembers_within_an_episode():
    # With fewer units it happens that the observation moves none of them, and there is nothing to remember.
    policy = make_policy(EnvDescription(VECTOR, Discrete(3)), hidden_size=64, recurrent=True)
    state = policy.initial_state(1)
    first, _ = policy.forward_eval(torch.ones(1, 6), state)
    second, _ = policy.forward_eval(torch.ones(1, 6), state)
    assert not torch.equal(first, second)
    assert torch.equal(policy.forward_eval(torch.ones(1, 6))[0], first)  # without a state: a first step


# Three pieces to lay on two places; what fits where is in the observation.
MASKED = Dict({"action_mask": MultiBinary(5), "board": Box(0, 9, (4,), np.int32)})


@pytest.mark.parametrize("recurrent", [False, True])
def test_a_field_called_action_mask_forbids_actions(recurrent):
    env = GymnasiumPufferEnv(FunctionEnv(MASKED, MultiDiscrete([2, 3])))
    policy = make_policy(env, hidden_size=8, recurrent=recurrent)
    rows = np.zeros((2, 6), env.obs_dtype)
    rows["action_mask"] = [0, 1, 1, 0, 1]
    rows["action_mask"][1, 5] = 0  # an agent that is absent
    observations = torch.from_numpy(rows.view(env.single_observation_space.dtype).reshape(2, 6, -1))
    params, _ = policy(observations)
    likely = params.split([2, 3], -1)[1].softmax(-1)
    assert (likely[0, :, 1] == 0).all()
    assert torch.allclose(likely[0].sum(-1), torch.ones(6))
    assert torch.allclose(likely[1, 5], torch.full((3,), 1 / 3))
    assert torch.isfinite(policy.distribution.entropy(params)).all()
    one_step, _ = policy.forward_eval(observations[0], policy.initial_state(6))
    assert torch.allclose(one_step, params[0])


@pytest.mark.parametrize("made", [EnvDescription, lambda env: torch.nn.Linear(2, 2)])
def test_a_network_that_is_no_policy_is_refused(made):
    with pytest.raises(
        APIUsageError, match=r"must be a pufferlib\.models\.Policy, got .*; derive it from that, and de"
    ):
        make_policy(EnvDescription(VECTOR, Discrete(3)), made)


def test_a_field_called_action_mask_that_fits_no_action_is_an_observation_like_others():
    env = GymnasiumPufferEnv(FunctionEnv(MASKED, Discrete(4)))
    assert make_policy(env).action_mask(torch.from_numpy(env.observations)) is None


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("action_space", [Discrete(5), MultiDiscrete([2, 3])], ids=str)
def test_the_elements_that_an_environment_calls_its_action_mask_forbid_actions(action_space, recurrent):
    space = Box(0, 255, (4, 3), np.uint8)
    policy = make_policy(EnvDescription(space, action_space, slice(2, 7)), hidden_size=8, recurrent=recurrent)
    observations = torch.randint(0, 256, (2, 6, 4, 3), dtype=torch.uint8)
    legal = torch.tensor([0, 255, 1, 0, 7], dtype=torch.uint8)
    observations.flatten(2)[..., 2:7] = legal
    params, values = policy(observations)
    likely = params.softmax(-1)
    assert (likely[..., legal == 0] == 0).all()
    generator = torch.Generator().manual_seed(0)
    actions = policy.distribution.sample(params.repeat(50, 1, 1), generator).flatten(0, 1)
    if isinstance(action_space, Discrete):
        assert set(actions.tolist()) == {1, 2, 4}
        expected = -(likely[..., legal > 0] * likely[..., legal > 0].log()).sum(-1)
        assert torch.allclose(policy.distribution.entropy(params), expected)
    else:
        assert {tuple(action) for action in actions.tolist()} == {(1, 0), (1, 2)}
    (params[..., legal > 0].sum() + policy.distribution.entropy(params).sum() + values.sum()).backward()
    assert all(parameter.grad.isfinite().all() for parameter in policy.parameters())
    one_step, _ = policy.forward_eval(observations[0], policy.initial_state(6))
    assert torch.allclose(one_step, params[0])


def test_wrong_policies_are_refused():
    env = EnvDescription(VECTOR, Discrete(3))
    with pytest.raises(UnknownNameError, match="unknown policy 'Defualt'; did you mean 'Default'"):
        make_policy(env, "Defualt")
    with pytest.raises(APIUsageError, match="hidden_size 16 must equal input_size and hidden_size"):
        LSTMWrapper(env, Default(env, hidden_size=16))
