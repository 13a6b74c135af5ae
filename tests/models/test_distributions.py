import copy
import math

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete, MultiBinary, MultiDiscrete
from torch.distributions import Categorical as TorchCategorical, Normal

from pufferlib.errors import APIUsageError
from pufferlib.models.distributions import action_distribution
from pufferlib.spaces import MixedBox


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


#: A real, an integer from 2, a real far from 1, an integer from 0.
MIXED = MixedBox(np.array([-1, 2, 0, 0]), np.array([1, 4, 100, 1]), np.array([0, 1, 0, 1], bool), np.float32)
SPACES = [
    MIXED,
    Discrete(4),
    Discrete(3, start=-1),
    MultiDiscrete([2, 5]),
    MultiDiscrete([[2, 3], [4, 5]]),
    Box(-2, 2, (3,), np.float32),
    Box(-2, 2, (), np.float32),
    Box(-1, 1, (2, 2), np.float64),
    Box(-100, 100, (2,), np.int8),
    Box(np.array([[3], [-2]]), np.array([[9], [2**15]]), dtype=np.int64),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_samples_are_in_the_space_for_any_batch_shape(space):
    distribution = action_distribution(space)
    params = torch.randn(5, 6, distribution.num_params, generator=generator())
    for actions in (distribution.sample(params, generator()), distribution.mode(params)):
        assert actions.shape == (5, 6, *space.shape)
        assert actions.dtype == distribution.dtype
        env_actions = distribution.to_env(actions[0].numpy())
        assert env_actions.dtype == (space.dtype if isinstance(space, Box) else np.int32)
        for action in env_actions:
            sample = np.asarray(action, space.dtype)
            assert space.contains(int(sample) if isinstance(space, Discrete) else sample)
        assert distribution.log_prob(params, actions).shape == (5, 6)
    assert distribution.entropy(params).shape == (5, 6)


def test_categorical_matches_torch():
    distribution = action_distribution(MultiDiscrete([2, 5]))
    params = torch.randn(100, 7, generator=generator())
    actions = distribution.sample(params, generator())
    parts = [TorchCategorical(logits=params[:, :2]), TorchCategorical(logits=params[:, 2:])]
    expected = parts[0].log_prob(actions[:, 0]) + parts[1].log_prob(actions[:, 1])
    assert torch.allclose(distribution.log_prob(params, actions), expected, atol=1e-6)
    assert torch.allclose(distribution.entropy(params), parts[0].entropy() + parts[1].entropy(), atol=1e-6)


def test_gaussian_matches_torch():
    distribution = action_distribution(Box(-1, 1, (3,), np.float32))
    params = torch.randn(100, 6, generator=generator())
    actions = distribution.sample(params, generator())
    normal = Normal(params[:, :3], params[:, 3:].exp())
    assert torch.allclose(distribution.log_prob(params, actions), normal.log_prob(actions).sum(-1), atol=1e-4)
    assert torch.allclose(distribution.entropy(params), normal.entropy().sum(-1), atol=1e-5)


def test_mixed_matches_its_parts():
    mixed = action_distribution(MIXED)
    integers, reals = action_distribution(MultiDiscrete([3, 2])), action_distribution(Box(-1, 1, (2,), np.float32))
    params = torch.randn(100, 5 + 4, generator=generator()).requires_grad_()
    actions = mixed.sample(params, generator())
    parts = [(integers, params[:, :5], actions[:, [1, 3]].long()), (reals, params[:, 5:], actions[:, [0, 2]])]
    log_probs = sum(part.log_prob(given, taken) for part, given, taken in parts)
    entropies = sum(part.entropy(given) for part, given, _ in parts)
    torch.testing.assert_close(mixed.log_prob(params, actions), log_probs)
    torch.testing.assert_close(mixed.entropy(params), entropies)
    plain = params.detach()
    for one, other in zip(mixed.evaluate(plain, actions), (log_probs, entropies), strict=True):
        torch.testing.assert_close(one, other.detach())
    weights = torch.randn(2, 100, generator=generator(1))
    (expected,) = torch.autograd.grad((weights[0] * log_probs + weights[1] * entropies).sum(), params)
    torch.testing.assert_close(mixed.differentiate(plain, actions, *weights), expected)


def test_mixed_actions_in_units_of_the_environment():
    mixed = action_distribution(MIXED)
    assert mixed.is_far.tolist() == [False, False, True, False]
    params = torch.tensor([[0.0, 1, 2, 5, 0, -3, 0.5, 0, 0]])
    assert mixed.mode(params).tolist() == [[-3, 2, 0.5, 0]]
    for is_on, expected in ((True, [-1, 4, 75, 0]), (False, [-1, 4, 0.5, 0])):
        mixed.rescale(is_on)
        assert mixed.is_rescaled == is_on
        taken = mixed.to_env(mixed.mode(params).numpy())
        assert (taken.dtype, taken.tolist()) == (np.float32, [expected])


def test_categorical_samples_have_the_right_frequencies():
    logits = torch.tensor([0.1, 0.2, 0.7]).log().repeat(200_000, 1)
    actions = action_distribution(Discrete(3)).sample(logits, generator())
    frequencies = torch.bincount(actions, minlength=3) / len(actions)
    assert frequencies.tolist() == pytest.approx([0.1, 0.2, 0.7], abs=0.005)


def test_gaussian_samples_have_the_right_moments():
    params = torch.tensor([1.0, math.log(0.5)]).repeat(200_000, 1)
    actions = action_distribution(Box(-1, 1, (1,), np.float32)).sample(params, generator())
    assert actions.mean().item() == pytest.approx(1.0, abs=0.01)
    assert actions.std().item() == pytest.approx(0.5, abs=0.01)


def test_to_env_clips_and_adds_start():
    gaussian = action_distribution(Box(-1, 1, (1,), np.float32))
    assert gaussian.to_env(np.array([[-3.0], [0.5]], np.float32)).tolist() == [[-1.0], [0.5]]
    discrete = action_distribution(Discrete(3, start=5))
    assert discrete.to_env(np.array([0, 2])).tolist() == [5, 7]


@pytest.mark.parametrize(
    ("low", "high", "start", "scale"),
    [
        (-1, 1, 0, 1),
        (-2, 2, 0, 1),
        (-0.5, 0.5, 0, 1),
        (-0.5, 2, 0, 1),
        (-2.01, 2, -0.005, 2.005),
        (-0.4, 0.4, 0, 0.4),
        (-1, 0.49, -0.255, 0.745),
        (0, 1, 0.5, 0.5),
        (0, 1000, 500, 500),
        (-10, 90, 40, 50),
        (9, 10, 9.5, 0.5),
        (-np.inf, np.inf, 0, 1),
        (0, np.inf, 0, 1),
        (-np.inf, 3, 0, 1),
        (-3.4e38, 3.4e38, 0, 1),
        (5, 5, 0, 1),
    ],
)
def test_rescaled_actions_by_hand(low, high, start, scale):
    gaussian = action_distribution(Box(low, high, (1,), np.float64))
    for is_on in (True, False, True):
        gaussian.rescale(is_on)
        expected = (start, scale) if is_on else (0, 1)
        actions = np.array([[-5.0], [-1.0], [-0.5], [0.0], [1.0], [5.0]])
        middle = expected[0] + expected[1] * actions
        assert gaussian.to_env(actions) == pytest.approx(np.clip(middle, low, high), rel=1e-12)
        assert gaussian.start.ravel() == pytest.approx([expected[0]])
        assert gaussian.scale.ravel() == pytest.approx([expected[1]])
    assert gaussian.is_rescaled == gaussian.is_far.any() == ((start, scale) != (0, 1))


def test_components_are_rescaled_one_by_one():
    low, high = np.array([[0, -1], [-np.inf, 5]], "f4"), np.array([[1000, 1], [np.inf, 6]], "f4")
    gaussian = action_distribution(Box(low, high))
    gaussian.rescale(True)
    actions = np.array([[[-1, -1], [-1, -1]], [[0, 0], [70, 0]], [[1, 3], [3, 1]]], np.float32)
    taken = gaussian.to_env(actions)
    assert taken.dtype == np.float32
    assert taken.tolist() == [[[0, -1], [-1, 5]], [[500, 0], [70, 5.5]], [[1000, 1], [3, 6]]]
    clipped = np.clip(actions, [[-1, -1], [-99, -1]], [[1, 1], [99, 1]])
    assert ((taken - gaussian.start) / gaussian.scale).tolist() == clipped.tolist()


def test_generator_state_reproduces_actions():
    distribution = action_distribution(Discrete(5))
    params = torch.zeros(50, 5)
    assert torch.equal(distribution.sample(params, generator(3)), distribution.sample(params, generator(3)))
    assert not torch.equal(distribution.sample(params, generator(3)), distribution.sample(params, generator(4)))


@pytest.mark.parametrize(
    ("space", "todo"),
    [
        (MultiBinary(3), "wrap it with pufferlib.emulation"),
        (Box(-(2**63), 2**63 - 1, (2,), np.int64), f"at most 65536 values, got {2**65} in .*; give it smaller"),
    ],
    ids=str,
)
def test_unsupported_spaces_are_refused(space, todo):
    with pytest.raises(APIUsageError, match=f"action_distribution: .*{todo}"):
        action_distribution(space)


def draw(distribution, params, noise):
    actions = torch.empty(len(params), *distribution.shape, dtype=distribution.dtype)
    log_probs = torch.empty(len(params))
    return distribution.draw(params, noise, actions, log_probs), actions, log_probs


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_draw_gives_the_same_actions_in_c_and_torch(space):
    distribution = action_distribution(space)
    rows = 1500 if distribution.num_params < 1000 else 3
    params = torch.randn(rows, distribution.num_params, generator=generator())
    noise = distribution.noise((rows,), generator())
    finite, actions, log_probs = draw(distribution, params, noise)
    assert finite
    assert torch.allclose(log_probs, distribution.log_prob(params, actions), atol=1e-4)
    _, slow, _ = draw(distribution, params.double(), noise)  # float64 is drawn by torch
    assert torch.isclose(actions, slow).float().mean() > 0.999


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_actions_without_probability_are_never_drawn(dtype):
    logits = torch.tensor([-1e9, 0.0, -1e9, 1.0, -1e9], dtype=dtype).repeat(4, 1)
    noise = torch.tensor([[0.0], [0.2], [0.999], [1 - 2**-24]])
    finite, actions, _ = draw(action_distribution(Discrete(5)), logits, noise)
    assert finite
    assert actions.tolist() == [1, 1, 3, 3]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("space", [Discrete(3), Box(-1, 1, (2,)), MIXED], ids=str)
def test_draw_reports_outputs_that_are_not_finite(space, dtype):
    distribution = action_distribution(space)
    params = torch.zeros(70, distribution.num_params, dtype=dtype)
    noise = distribution.noise((70,), generator())
    assert draw(distribution, params, noise)[0]
    for wrong in (math.nan, math.inf):
        params[67, 1] = wrong
        assert not draw(distribution, params, noise)[0]


def test_log_prob_of_actions_out_of_range_is_nan():
    log_probs, _ = action_distribution(Discrete(3)).evaluate(torch.zeros(3, 3), torch.tensor([2, 3, -1]))
    assert log_probs.isnan().tolist() == [False, True, True]


def test_distribution_can_be_copied():
    distribution = copy.deepcopy(action_distribution(MultiDiscrete([2, 5])))
    assert distribution.sample(torch.zeros(3, 7), generator()).shape == (3, 2)


@pytest.mark.parametrize("size", [1, 3, 17])
def test_normal_distributions_in_c_match_autograd(size):
    normal, generator = action_distribution(Box(-1, 1, (size,), np.float32)), torch.Generator().manual_seed(0)
    outputs = torch.randn(2, 40, 2 * size + 1, generator=generator)
    outputs[..., size:] *= 3
    params = outputs[..., :-1].requires_grad_()  # rows are apart, as beside the values of a network
    actions = torch.randn(2, 40, size, generator=generator)
    weights = torch.randn(2, 2, 40, generator=generator).unbind()
    by_torch = normal.log_prob(params, actions), normal.entropy(params)
    (expected,) = torch.autograd.grad(by_torch, params, weights)
    plain = params.detach()
    for in_c, one in zip(normal.evaluate(plain, actions), by_torch, strict=True):
        torch.testing.assert_close(in_c, one.detach(), rtol=1e-5, atol=1e-5)
    in_c = normal.differentiate(plain, actions, *weights)
    torch.testing.assert_close(in_c, expected, rtol=1e-5, atol=1e-5)
