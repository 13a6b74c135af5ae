import dataclasses

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import make_policy
from pufferlib.train import ppo
from pufferlib.train.config import TrainConfig
from pufferlib.train.cuda_graphs import GraphedLoss, Recorded, act_by_graph, check_cuda_graphs
from pufferlib.train.rollout import Minibatch


def record(function):
    """Stand in for a GPU: a replay runs on the same memory, and overwrites the outputs."""
    outputs = function()

    def replay():
        for mine, new in zip(outputs, function(), strict=True):
            mine.copy_(new)

    return replay, outputs


def test_a_recorded_function_runs_on_memory_of_its_own():
    calls = []

    def double(x, y):
        calls.append(x.data_ptr())
        return x + y, x * 2

    given = torch.ones(3)
    recorded = Recorded(double, (given, given), record)
    for value in (1.0, 5.0):
        added, doubled = recorded(torch.full((3,), value), given)
        assert added.tolist() == [value + 1] * 3
        assert doubled.tolist() == [value * 2] * 3
    assert len(set(calls)) == 1
    assert given.data_ptr() not in calls
    assert given.eq(1).all()


@pytest.mark.parametrize("memory", ["none", "LSTM"])
@torch.no_grad()
def test_acting_by_graph_is_acting(target_env, memory):
    torch.manual_seed(0)
    policy = make_policy(target_env(4), hidden_size=8, memory=memory)
    actor = act_by_graph(policy, rows=4, record=record)
    states = policy.initial_state(4), policy.initial_state(4)
    for _ in range(3):
        policy.decoder.weight.mul_(1.5) if memory == "none" else policy.cell.weight_ih.mul_(1.5)
        observations = torch.rand(4, 3)
        expected = policy.forward_eval(observations, states[0])
        got = actor.forward_eval(observations, states[1])
        assert all(torch.equal(*pair) for pair in zip(expected, got, strict=True))
        assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])
    few = torch.rand(2, 3)
    assert torch.equal(
        actor.forward_eval(few, policy.initial_state(2))[0], policy.forward_eval(few, policy.initial_state(2))[0]
    )


@pytest.fixture
def graphed(monkeypatch):
    """The modules that were recorded."""
    modules = []

    def make(module, samples, allow_unused_input):
        modules.append(module)
        own = [sample.clone() for sample in samples]

        def call(*inputs):
            for mine, given in zip(own, inputs, strict=True):
                mine.copy_(given)
            return module(*own)

        return call

    monkeypatch.setattr(torch.cuda, "make_graphed_callables", make)
    return modules


def batch_of(policy, rows, **more):
    observations = torch.rand(2, rows, 3)
    fields = {name: torch.rand(2, rows) for name in ("log_probs", "values", "advantages", "returns")}
    actions = torch.randint(3, (2, rows))
    state = policy.initial_state(rows)
    starts = torch.zeros(2, rows, dtype=torch.bool) if state else None
    return Minibatch(observations, actions, **fields, mask=None, state=state, episode_starts=starts, **more)


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_a_graphed_loss_has_the_same_gradients_and_one_graph_for_each_shape(target_env, graphed, memory):
    torch.manual_seed(0)
    policy = make_policy(target_env(4), hidden_size=8, memory=memory)
    loss, config = GraphedLoss(ppo.ppo_loss), TrainConfig()
    weighted = torch.rand(2, 4)
    batches = [*(batch_of(policy, rows) for rows in (4, 6, 4)), batch_of(policy, 4, weights=weighted)]
    for step, batch in enumerate(batches):
        config = dataclasses.replace(config, learning_rate=1.0 - 0.1 * step)
        results = []
        for each in (loss, ppo.ppo_loss):
            policy.zero_grad()
            figures = torch.stack(ppo.accumulate_gradients(policy, batch, config, each))
            results.append([figures, *(weights.grad.clone() for weights in policy.parameters())])
        assert all(torch.equal(*pair) for pair in zip(*results, strict=True))
    assert len(graphed) == 3


def test_a_graph_knows_its_parameters_and_no_other_coefficients(target_env, graphed):
    policy = make_policy(target_env(4), hidden_size=8)
    loss, batch = GraphedLoss(ppo.ppo_loss), batch_of(policy, 4)
    for clip in (0.1, 0.2, 0.1):
        loss(policy, batch, TrainConfig(clip_coef=clip))
    assert len(graphed) == 2
    assert {id(weights) for weights in graphed[0].parameters()} == {id(weights) for weights in policy.parameters()}


@pytest.mark.parametrize(
    ("settings", "device", "message"),
    [
        ({}, "cpu", "records the work of a GPU, got train.device cpu; leave it out"),
        ({"clip_schedule": "linear"}, "cuda", "so train.clip_schedule must be constant, got 'linear'"),
        ({"ent_schedule": "cosine"}, "cuda", "so train.ent_schedule must be constant, got 'cosine'"),
    ],
)
def test_what_cannot_be_recorded_is_refused(settings, device, message):
    with pytest.raises(APIUsageError, match=message):
        check_cuda_graphs(TrainConfig(**settings), torch.device(device))
