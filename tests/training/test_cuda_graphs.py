import copy
import itertools
import math

import pytest
import torch

from pufferlib.errors import APIUsageError, PufferError
from pufferlib.models import distributions, make_policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.graphs import GraphedStep, Recorded, uses_cuda_graphs
from pufferlib.training.optimizers import build_optimizer
from pufferlib.training.rollout import Minibatch, Rollout
from tests.tiers import once
from tests.training.tape import TapeRecorder

CPU = torch.device("cpu")


@pytest.fixture
def by_torch(monkeypatch):
    """Turn off the C kernels, which a tape cannot record."""
    monkeypatch.setattr(distributions, "is_plain", lambda params: False)
    for name in ("gated", "mingru"):
        monkeypatch.setattr(f"pufferlib.models.recurrent.{name}.kernel_dtype", lambda *tensors: None)


def test_recorded_work_is_replayed_from_the_third_call():
    memory, calls, recorder = torch.zeros(()), [], TapeRecorder()

    def add():
        calls.append(None)
        return memory.add_(1).clone()

    recorded = Recorded(add, recorder)
    assert [int(recorded()) for _ in range(6)] == [1, 2, 3, 4, 5, 6]
    assert (len(calls), recorder.replays) == (3, 4)


def test_synchronizing_work_cannot_be_recorded():
    recorded = Recorded(lambda: torch.ones(1).item(), TapeRecorder())
    recorded()
    recorded()
    with pytest.raises(
        PufferError, match=r"train\.cuda_graphs: the network must do the same work .* set train\.cuda_graphs to false"
    ):
        recorded()


def batch_of(policy, rows, **more):
    fields = {name: torch.rand(2, rows) for name in ("log_probs", "values", "advantages", "returns")}
    state = policy.initial_state(rows)
    starts = torch.rand(2, rows) < 0.2 if state else None
    return Minibatch(
        torch.rand(2, rows, 3), torch.randint(3, (2, rows)), **fields, **{"mask": None, **more}, state=state,
        episode_starts=starts,
    )  # fmt: skip


CHOICES = list(itertools.product(["adam", "muon"], [1, 2]))


@pytest.mark.parametrize("memory", once(["none", "LSTM", "GRU", "MinGRU"], ["none", "LSTM"]))
@pytest.mark.parametrize(("optimizer", "parts"), once(CHOICES, [("adam", 1), ("muon", 2)]))
def test_graphed_steps_match_plain_steps(target_env, by_torch, optimizer, memory, parts):
    """Learning rates, coefficients, minibatches and their shapes change from step to step."""
    weights = []
    for is_graphed in (False, True):
        torch.manual_seed(0)
        policy = make_policy(target_env(4), hidden_size=8, memory=memory)
        config = TrainConfig(optimizer=optimizer, accumulate_minibatches=parts, max_grad_norm=0.1)
        chosen, recorder = build_optimizer(config, policy), TapeRecorder()
        graphed = GraphedStep(policy, chosen, ppo.ppo_loss, recorder, CPU)
        for update in range(4):
            rate, clip, entropy = 0.01 / (update + 1), 0.2 / (update + 1), 0.1 * update
            config = TrainConfig(
                optimizer=optimizer, accumulate_minibatches=parts, max_grad_norm=0.1, clip_coef=clip, ent_coef=entropy
            )
            for group in chosen.param_groups:
                group["lr"] = rate
            graphed.begin(config)
            for rows in (4, 4, 6, 6):
                batch = batch_of(policy, rows, mask=torch.rand(2, rows) < 0.8 if rows == 6 else None)
                if is_graphed:
                    graphed(batch)
                else:
                    chosen.zero_grad()
                    ppo.accumulate_gradients(policy, batch, config, ppo.ppo_loss)
                    ppo.apply_gradients(policy, chosen, config)
            assert not graphed.has_failed()
        weights.append([each.detach() for each in policy.parameters()])
        assert chosen.param_groups[0]["lr"] == rate
    assert len(recorder.tapes) == 2
    assert recorder.replays == 2 * 8 - 4
    for one, other in zip(*weights, strict=True):
        # Muon computes in bfloat16.
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3 if optimizer == "muon" else 1e-5)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_nan_loss_leaves_weights_unchanged(target_env, by_torch, optimizer):
    policy = make_policy(target_env(4), hidden_size=8)
    config = TrainConfig(optimizer=optimizer)
    graphed = GraphedStep(policy, build_optimizer(config, policy), ppo.ppo_loss, TapeRecorder(), CPU)
    graphed.begin(config)
    for _ in range(4):
        graphed(batch_of(policy, 4))
    before = [weights.detach().clone() for weights in policy.parameters()]
    broken = batch_of(policy, 4)
    broken.returns[0, 0] = torch.nan
    for batch in (broken, batch_of(policy, 4)):
        graphed(batch)
    assert graphed.has_failed()
    assert all(torch.equal(*pair) for pair in zip(before, policy.parameters(), strict=True))
    graphed.begin(config)
    graphed(batch_of(policy, 4))
    assert not graphed.has_failed()
    assert not torch.equal(before[0], next(policy.parameters()))


@pytest.mark.parametrize(("optimizer", "parts"), once(CHOICES, [("adam", 1)]))
@pytest.mark.parametrize(("target_kl", "passes"), [(0.0, 2), (1e9, 2), (5e-4, 1)])
def test_target_kl_ends_graphed_update_at_same_minibatch(target_env, by_torch, optimizer, parts, target_kl, passes):
    """No step waits for the KL divergence. The second pass does not start if the first one has ended the update."""
    weights, figures, launches = [], [], 0
    for is_graphed in (False, True):
        torch.manual_seed(0)
        env = target_env(8)
        policy = make_policy(env, hidden_size=8)
        config = TrainConfig(
            optimizer=optimizer, target_kl=target_kl, update_epochs=2, accumulate_minibatches=parts, learning_rate=0.02
        )
        chosen = build_optimizer(config, policy)
        graphed = GraphedStep(policy, chosen, ppo.ppo_loss, TapeRecorder(), CPU) if is_graphed else None
        for update in range(4):
            rollout = Rollout(env, policy, horizon=2, minibatch_size=2 * parts)
            rollout.observations[:] = torch.rand(2, 8, 3, generator=torch.Generator().manual_seed(update))
            rollout.log_probs[:] = -math.log(3)
            args = rollout, torch.linspace(-1, 1, 16).view(2, 8), config, torch.Generator().manual_seed(update)
            if graphed is None:
                found = ppo.update(policy, chosen, *args)
            else:
                counting = CountedSteps(graphed)
                found = ppo.update(policy, chosen, *args, fused=counting)
                launches += counting.count
            figures.append(found)
            weights.append([each.detach().clone() for each in policy.parameters()])
    assert launches == 4 * passes * 16 // (2 * parts)
    for one, other in zip(figures[:4], figures[4:], strict=True):
        assert one == pytest.approx(other, rel=1e-3, abs=1e-4, nan_ok=True)
    for one, other in zip(weights[:4], weights[4:], strict=True):
        for mine, theirs in zip(one, other, strict=True):
            torch.testing.assert_close(mine, theirs, rtol=1e-3, atol=5e-3 if optimizer == "muon" else 1e-5)


class CountedSteps:
    """Graphed step that counts its launches."""

    def __init__(self, step):
        self._step, self.count = step, 0

    def __call__(self, batch):
        self.count += 1
        return self._step(batch)

    def __getattr__(self, name):
        return getattr(self._step, name)


def test_graph_is_recorded_again_after_loading_checkpoint(target_env, by_torch):
    policy = make_policy(target_env(4), hidden_size=8)
    optimizer, recorder = build_optimizer(TrainConfig(), policy), TapeRecorder()
    graphed = GraphedStep(policy, optimizer, ppo.ppo_loss, recorder, CPU)
    for count in (1, 1, 2):
        graphed.begin(TrainConfig())
        for _ in range(3):
            graphed(batch_of(policy, 4))
        graphed.has_failed()
        assert len(recorder.tapes) == count
        if recorder.replays == 4:
            optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


@pytest.mark.parametrize(
    ("settings", "device", "expected"),
    [
        ({}, "cuda", True),
        ({}, "cpu", False),
        ({"overlap": "learning"}, "cuda", False),
        ({"cuda_graphs": False}, "cuda", False),
        ({"cuda_graphs": True, "ent_schedule": "linear"}, "cuda", True),
    ],
)
def test_graphs_are_on_by_default_on_gpu(settings, device, expected):
    assert uses_cuda_graphs(TrainConfig(**settings), torch.device(device)) is expected


@pytest.mark.parametrize(
    ("settings", "device", "message"),
    [
        ({}, "cpu", "records the work of a GPU, got train.device cpu; leave it out"),
        ({"overlap": "learning"}, "cuda", "train.overlap 'learning' and train.cuda_graphs exclude each other"),
    ],
)
def test_cuda_graphs_with_incompatible_settings_raise(settings, device, message):
    with pytest.raises(APIUsageError, match=message):
        uses_cuda_graphs(TrainConfig(cuda_graphs=True, **settings), torch.device(device))
