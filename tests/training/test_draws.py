import pytest
import torch

from pufferlib.settings.config import TrainConfig
from pufferlib.training.rollout import by_priority, in_order, shuffled


def test_shuffled_and_in_order_draw_every_part_once():
    draws = list(shuffled(10, 4, torch.Generator().manual_seed(0)))
    assert [len(draw.parts) for draw in draws] == [4, 4, 2]
    assert sorted(torch.cat([draw.parts for draw in draws]).tolist()) == list(range(10))
    assert torch.cat([draw.parts for draw in in_order(10, 4)]).tolist() == list(range(10))


def many(advantages, masks=None, **settings):
    masks = torch.ones_like(advantages, dtype=torch.bool) if masks is None else masks
    config = TrainConfig(**settings)
    generator = torch.Generator().manual_seed(0)
    draws = [draw for _ in range(2_000) for draw in by_priority(advantages, masks, 2, config, generator)]
    parts = torch.cat([draw.parts for draw in draws])
    weights = dict(zip(parts.tolist(), torch.cat([draw.weights for draw in draws]).tolist(), strict=True))
    return torch.bincount(parts, minlength=advantages.shape[1]) / len(parts), weights, len(draws)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 2.0])
def test_by_priority_chances_and_weights_by_hand(alpha):
    # three segments of two steps with mean sizes 1, 3 and 4
    advantages = torch.tensor([[2.0, -1.0, 4.0], [0.0, 5.0, -4.0]])
    powers = torch.tensor([1.0, 3.0, 4.0]) ** alpha
    chances, weights, count = many(advantages, priority_alpha=alpha, priority_beta=0.5)
    assert count == 4_000  # two minibatches of two hold three parts
    assert torch.allclose(chances, powers / powers.sum(), atol=0.03)
    expected = (3 * powers / powers.sum()) ** -0.5
    assert [weights[part] for part in range(3)] == pytest.approx(expected.tolist(), rel=1e-4)


def test_by_priority_ignores_masked_steps():
    advantages = torch.tensor([[1.0, 1.0, 9.0], [9.0, 3.0, 9.0]])
    masks = torch.tensor([[True, True, False], [False, True, False]])
    chances, weights, _ = many(advantages, masks, priority_alpha=1.0, priority_beta=1.0)
    assert chances[:2].tolist() == pytest.approx([1 / 3, 2 / 3], abs=0.03)
    assert chances[2] == 0
    assert weights == pytest.approx({0: 1.5, 1: 0.75}, rel=1e-4)


def test_by_priority_draws_uniformly_for_equal_advantages():
    chances, weights, _ = many(torch.zeros(1, 4), priority_alpha=1.0, priority_beta=1.0)
    assert chances.tolist() == pytest.approx([0.25] * 4, abs=0.03)
    assert set(weights.values()) == {1.0}
