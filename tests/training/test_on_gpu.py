"""Tests of training on a GPU and of its kernels, compared with the CPU. Skipped without a GPU."""

import contextlib
import copy
import warnings

import pytest
import torch
from torch import nn

from pufferlib.models import Default
from pufferlib.models.recurrent import MinGRUCell
from pufferlib.models.recurrent.gated import gru, gru_by_torch, lstm, lstm_by_torch
from pufferlib.models.recurrent.mingru import mingru, mingru_by_torch
from pufferlib.settings.config import load_config
from pufferlib.training.build import build_vecenv
from pufferlib.training.trainer import Trainer
from tests.training.broken_rollouts import assert_nan_raises_and_keeps_weights

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here; puffer doctor --gpu says why")

SMALL = {
    "env.num_envs": 64,
    "env.num_threads": 1,
    "policy.hidden_size": 32,
    "train.horizon": 16,
    "train.minibatch_size": 256,
    "train.optimizer": "adam",
    "train.learning_rate": 1e-4,
    "train.total_timesteps": 10**9,
    "train.device": "cuda",
}


@pytest.fixture
def train(tmp_path):
    """Return a function that trains breakout for some updates. Its trainers are closed after the test."""
    trainers = []

    def run(updates, **settings):
        names = {name.replace("__", "."): value for name, value in settings.items()}
        trainer = Trainer(load_config("breakout", {**SMALL, **names}), tmp_path)
        trainers.append(trainer)
        for _ in range(updates):
            trainer.step()
        return trainer

    yield run
    for trainer in trainers:
        trainer.close()


def weights_of(trainer):
    return {name: weights.detach().cpu().clone() for name, weights in trainer.policy.named_parameters()}


CELLS = {
    "lstm": (lambda: nn.LSTMCell(64, 64), lstm, lstm_by_torch, 2),
    "gru": (lambda: nn.GRUCell(64, 64), gru, gru_by_torch, 1),
    "mingru": (lambda: MinGRUCell(64), mingru, mingru_by_torch, 1),
}


@pytest.mark.parametrize("has_starts", [False, True])
@pytest.mark.parametrize("name", CELLS)
def test_cells_match_outputs_and_gradients_of_torch(name, has_starts):
    torch.manual_seed(0)
    make, ours, theirs, count = CELLS[name]
    cell, results = make().cuda(), []
    inputs, memory = torch.randn(33, 37, 64).cuda(), [torch.randn(37, 64).cuda() for _ in range(count)]
    starts = torch.rand(33, 37).cuda() < 0.1 if has_starts else None
    for compute in (ours, theirs):
        given = [each.clone().requires_grad_() for each in (inputs, *memory)]
        cell.zero_grad()
        outputs = compute(cell, *given, starts)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward([(each * torch.arange(64).cuda()).sum() for each in outputs])
        results.append([*outputs, *(each.grad for each in given), *(each.grad.clone() for each in cell.parameters())])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"policy__memory": "MinGRU"},
        {"policy__memory": "LSTM"},
        {"train__accumulate_minibatches": 2, "train__clip_schedule": "linear"},
        {"train__cpu_offload": True},
        {"train__precision": "bfloat16"},
    ],
    ids=str,
)
def test_graphs_do_not_change_results(train, settings):
    with_graphs, without = (weights_of(train(3, train__cuda_graphs=graphs, **settings)) for graphs in (True, False))
    for name, weights in without.items():
        torch.testing.assert_close(with_graphs[name], weights, rtol=1e-2, atol=1e-3, msg=name)


@pytest.mark.parametrize("devices", [("cuda", "cpu"), ("cpu", "cuda")])
def test_run_is_resumed_on_other_device(train, devices):
    first = train(3, train__device=devices[0], policy__memory="MinGRU")
    first.save()
    weights = weights_of(first)
    other = train(3, train__device=devices[1], policy__memory="MinGRU")
    other.restore(first.checkpoint_path)
    assert all(torch.equal(weights[name], each) for name, each in weights_of(other).items())
    assert [other.step()["update"] for _ in range(3)] == [4, 5, 6]


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_partial_batches_train(tmp_path, memory):
    vec = {"vec.backend": "Multiprocessing", "vec.num_envs": 8, "vec.num_workers": 2, "vec.batch_size": 4}
    sizes = {"train.horizon": 16, "train.minibatch_size": 64, "policy.memory": memory, "train.device": "cuda"}
    with contextlib.closing(Trainer(load_config("CartPole-v1", {**vec, **sizes}), tmp_path)) as trainer:
        assert [trainer.step()["update"] for _ in range(3)] == [1, 2, 3]


def test_nan_raises_and_keeps_weights(train):
    trainer = train(3)
    assert_nan_raises_and_keeps_weights(trainer)


def test_synchronizing_network_trains_without_graphs(tmp_path):
    class Waits(Default):
        def encode_observations(self, observations):
            assert float(observations.float().mean()) < 1e9
            return super().encode_observations(observations)

    config = load_config("breakout", SMALL)
    vecenv = build_vecenv(config)
    trainer = Trainer(config, tmp_path, vecenv=vecenv, policy=Waits(vecenv.driver_env, 32))
    with pytest.warns(UserWarning, match="train.cuda_graphs: the network must do the same work"):
        trainer.step()
    trainer.step()
    trainer.close()


@pytest.mark.parametrize("target_kl", [0.0, 1e9])
def test_update_synchronizes_once_per_step(train, target_kl):
    trainer = train(4, train__target_kl=target_kl, train__update_epochs=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        torch.cuda.set_sync_debug_mode("warn")
        trainer.step()
        torch.cuda.set_sync_debug_mode("default")
    waits = [each for each in caught if "synchroniz" in str(each.message)]
    passes = 3 if target_kl else 1  # the limit is checked after each pass but the last
    assert len(waits) <= trainer.rollout.horizon + 20 + passes - 1


class Garbage:
    """Object that only the garbage collection frees. That waits for the GPU, which ends a recording."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        torch.cuda.synchronize()


def litter():
    """Make garbage, and start the garbage collection if it is enabled."""
    Garbage()
    assert [[] for _ in range(10_000)]


def test_garbage_is_not_collected_during_a_recording(tmp_path):
    class Litters(Default):
        def forward(self, *inputs):
            litter()
            return super().forward(*inputs)

    config = load_config("breakout", SMALL)
    vecenv = build_vecenv(config)
    trainer = Trainer(config, tmp_path, vecenv=vecenv, policy=Litters(vecenv.driver_env, 32))
    for _ in range(3):
        trainer.step()  # a warning is an error
    trainer.close()


def test_garbage_is_not_collected_when_a_recording_begins(train, monkeypatch):
    begin = torch.cuda.CUDAGraph.capture_begin

    def capture_begin(*args, **options):
        begin(*args, **options)
        litter()

    monkeypatch.setattr(torch.cuda.CUDAGraph, "capture_begin", capture_begin)
    train(3, train__cuda_graphs=True)  # a recording that fails is an error


def test_trains_if_pages_of_observations_are_locked_already(train):
    """The refusal of the driver must not surface in a later operation."""
    trainer, runtime = train(0), torch.cuda.cudart()
    observations = torch.from_numpy(trainer.vecenv.driver_env.observations)
    address = observations.data_ptr()
    assert int(runtime.cudaHostRegister(address, observations.nbytes, 0)) == 0
    try:
        for _ in range(3):
            trainer.step()
    finally:
        assert int(runtime.cudaHostUnregister(address)) == 0


def test_cpu_copy_of_policy_matches_gpu(train):
    trainer = train(3, policy__memory="LSTM")
    observations = trainer.rollout.observations[0]
    twin = copy.deepcopy(trainer.policy).cpu()
    with torch.no_grad():
        ours = trainer.policy.forward_eval(observations)
        theirs = twin.forward_eval(observations.cpu())
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=1e-3, atol=1e-4)
