"""The whole trainer on a fake GPU: results, devices, synchronizations, CUDA graphs and errors."""

import contextlib
import gc
import re
from io import StringIO

import numpy as np
import pytest
import torch
from rich.console import Console
from torch import distributed

from pufferlib.errors import PufferError
from pufferlib.models import Default
from pufferlib.models.devices import ready_device
from pufferlib.runs.folder import Run
from pufferlib.settings.config import load_config
from pufferlib.training.agent import load, load_policy
from pufferlib.training.build import build_vecenv
from pufferlib.training.dashboard import progress_logger
from pufferlib.training.distributed.ranks import JoinedRanks, Ranks, device_of_rank
from pufferlib.training.evaluation import evaluate
from pufferlib.training.trainer import Trainer
from tests.tiers import as_all, once
from tests.training.broken_rollouts import assert_nan_raises_and_keeps_weights
from tests.training.ranks import train_as_one, train_in_threads

pytestmark = pytest.mark.skipif(torch.cuda.is_available(), reason="test_on_gpu.py uses the GPU of this machine")

HORIZON = 8
SMALL = {
    "policy.hidden_size": 16,
    "train.horizon": HORIZON,
    "train.minibatch_size": 32,
    "train.update_epochs": 1,
    "train.total_timesteps": 10_000,
    "train.optimizer": "adam",
    "train.learning_rate": 1e-3,
}
SIZES = {
    "Pendulum-v1": {"vec.backend": "Serial", "vec.num_envs": 8},
    "spaces": {"vec.backend": "Serial", "vec.num_envs": 8},
    "CartPole-v1": {"vec.backend": "Multiprocessing", "vec.num_envs": 8, "vec.num_workers": 2},
}
NATIVE = {"env.num_envs": 8, "env.num_threads": 1}
LSTM = {"policy.memory": "LSTM"}
SEPARATE = {"policy.networks": "separate", "policy.layer_norm": True, "policy.activation": "tanh"}
STD = {"policy.state_dependent_std": True, "train.rescale_actions": True}
SELFPLAY = {"env.players": 2, "selfplay.opponents": 2, "selfplay.snapshot_interval": 1}
VTRACE = {"train.vtrace_rho_clip": 1.0, "train.vtrace_c_clip": 1.0, "train.update_epochs": 2}
SCHEDULES = {
    "train.accumulate_minibatches": 2,
    "train.clip_schedule": "linear",
    "train.ent_schedule": "cosine",
    "train.ent_coef": 0.5,
    "train.total_timesteps": 64 * 6,
}
ADAPTIVE = {"train.target_kl": 0.01, "train.lr_schedule": "adaptive", "train.update_epochs": 2}
TARGET_KL = {"train.target_kl": 1e9, "train.update_epochs": 3}
NORMALIZED = {"train.normalize_observations": True, "train.normalize_rewards": True}
EVALUATED = {"eval.interval": 64, "eval.interval_episodes": 2, "eval.max_steps": 500}
TRUNCATED = {"train.horizon": 208, "train.minibatch_size": 416, "train.total_timesteps": 100_000}
HALVES = {"train.overlap": "envs"}
PARTS = {"vec.batch_size": 4}

CASES = [
    ("breakout", {**LSTM, **SEPARATE, **VTRACE}),
    ("pendulum", {**STD, **SEPARATE, "policy.memory": "MinGRU"}),
]
MORE_CASES = [
    ("breakout", {}),
    ("breakout", SCHEDULES),
    ("breakout", {"policy.memory": "GRU", "train.overlap": "learning"}),
    ("connect4", {**SELFPLAY, **LSTM}),
    ("CartPole-v1", {**LSTM, **PARTS}),
    ("Pendulum-v1", {**TRUNCATED, "policy.memory": "MinGRU"}),
    ("breakout", {**SCHEDULES, "train.optimizer": "muon"}),
    ("breakout", LSTM),
    ("breakout", {"policy.memory": "GRU"}),
    ("breakout", {"policy.memory": "MinGRU", "policy.memory_layers": 2}),
    ("breakout", {**SEPARATE, "policy.critic_hidden_sizes": (16, 8)}),
    ("breakout", {"train.precision": "bfloat16"}),
    ("breakout", {"train.overlap": "learning"}),
    ("breakout", {"train.cpu_offload": True}),
    ("breakout", {"train.cuda_graphs": False}),
    ("breakout", {"train.priority_alpha": 0.8}),
    ("breakout", {"train.restart_share": 0.5}),
    ("breakout", {"train.reward_clip": 1.0, "train.vf_clip_coef": 0.2, "train.norm_adv": False}),
    ("breakout", TARGET_KL),
    ("breakout", ADAPTIVE),
    ("breakout", VTRACE),
    ("breakout", NORMALIZED),
    ("squared", EVALUATED),
    ("squared", {**EVALUATED, **LSTM}),
    ("pendulum", STD),
    ("pendulum", {"policy.log_std_init": -1.0}),
    ("connect4", SELFPLAY),
    ("connect4", {**SELFPLAY, **SEPARATE, **LSTM}),
    ("CartPole-v1", PARTS),
    ("CartPole-v1", {**PARTS, "train.cpu_offload": True}),
    ("CartPole-v1", HALVES),
    ("CartPole-v1", {**HALVES, **LSTM}),
    ("Pendulum-v1", TRUNCATED),
    ("breakout", {**LSTM, "env.pixels": (36, 36), "policy.name": "ResNet"}),
    ("breakout", {**LSTM, **VTRACE, "train.cpu_offload": True}),
    ("connect4", {**SELFPLAY, **LSTM, "train.overlap": "learning"}),
    ("spaces", {}),
    *((name, {}) for name in ("enduro", "memory", "password", "squared", "tactical", "tripletriad")),
]
OWN_NETWORKS = ["go", "moba", "nmmo3", "rware", "snake", "trash_pickup"]


@pytest.fixture
def make_trainer(tmp_path):
    """Return a function that makes a trainer. Trainers are closed after the test."""
    with contextlib.ExitStack() as stack:

        def make(env="breakout", settings=None, folder="run", **others):
            (tmp_path / folder).mkdir(exist_ok=True)
            config = load_config(env, {**SMALL, **SIZES.get(env, NATIVE), **(settings or {})})
            return stack.enter_context(contextlib.closing(Trainer(config, tmp_path / folder, **others)))

        yield make


@pytest.mark.parametrize(
    ("operation", "error"),
    [
        (lambda ours, cpu: ours + cpu, "expected all tensors to be on the same device"),
        (lambda ours, cpu: torch.stack([ours, ours.to("cuda:1")]), "expected all tensors to be on the same device"),
        (lambda ours, cpu: cpu[ours.long()], "indices should be on the CPU"),
        (lambda ours, cpu: ours.numpy(), "can't convert cuda:0 device type tensor"),
        (lambda ours, cpu: ours.to("cuda:2"), "invalid device ordinal"),
    ],
)
def test_fake_gpu_rejects_what_a_gpu_rejects(gpus, operation, error):
    with pytest.raises((RuntimeError, TypeError), match=error):
        operation(torch.ones(2, device="cuda"), torch.ones(2))


@pytest.mark.parametrize(
    ("operation", "waits"),
    [
        (lambda ours, cpu: (ours * 2).mean(), 0),
        (lambda ours, cpu: ours.copy_(cpu, non_blocking=True), 0),
        (lambda ours, cpu: ours.copy_(cpu), 1),
        (lambda ours, cpu: cpu.copy_(ours, non_blocking=True), 1),  # pageable memory
        (lambda ours, cpu: torch.ones(2, pin_memory=True).copy_(ours, non_blocking=True), 0),
        (lambda ours, cpu: ours.cpu(), 1),
        (lambda ours, cpu: ours.tolist(), 1),
        (lambda ours, cpu: float(ours[0]), 1),
        (lambda ours, cpu: ours[ours > 0], 1),
        (lambda ours, cpu: ours[cpu.long()], 1),
        (lambda ours, cpu: ours.nonzero(), 1),
    ],
)
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_fake_gpu_counts_waits(gpus, operation, waits, mode):
    with mode():
        ours = torch.ones(2, device="cuda")
        operation(ours, torch.ones(2))
    assert len(gpus.waits) == waits


def trained(make_trainer, env, settings, device):
    """Return the metrics of three updates, and of one in another trainer that resumes the run, and the weights.

    Graphs are replayed from the third update on.
    """
    settings = {**settings, "train.device": device}
    first = make_trainer(env, settings, device)
    metrics = [first.step() for _ in range(3)]
    first.save()
    second = make_trainer(env, settings, device)
    second.restore(first.checkpoint_path)
    metrics.append(second.step())
    timed = ("performance", "uptime", "sps")
    metrics = [{name: value for name, value in each.items() if not name.startswith(timed)} for each in metrics]
    return metrics, [weights.detach().cpu() for weights in second.policy.parameters()]


def assert_gpu_matches_cpu(make_trainer, env, settings):
    close = 1e-3 if {"train.precision", "train.optimizer"} & settings.keys() else 1e-4  # with bfloat16
    (expected, weights), (metrics, others) = (
        trained(make_trainer, env, settings, device) for device in ("cpu", "cuda")
    )
    for ours, theirs in zip(metrics, expected, strict=True):
        assert ours == pytest.approx(theirs, rel=10 * close, abs=close, nan_ok=True)
    for ours, theirs in zip(others, weights, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=close, atol=close)


@pytest.mark.parametrize(
    ("env", "settings"), [*CASES, *(pytest.param(*case, marks=pytest.mark.all) for case in MORE_CASES)], ids=str
)
def test_results_match_cpu(gpus, make_trainer, env, settings):
    """A tensor on another device, or a wait during the recording of a graph, would raise."""
    assert_gpu_matches_cpu(make_trainer, env, settings)


@pytest.mark.all
@pytest.mark.parametrize("env", OWN_NETWORKS)
def test_own_networks_match_cpu(gpus, make_trainer, env):
    settings = {"env.num_envs": 2, "train.horizon": 4, "train.minibatch_size": 0, "train.learning_rate": 1e-5}
    assert_gpu_matches_cpu(make_trainer, env, settings)


@pytest.mark.all
def test_opponents_without_c_engine_match_cpu(gpus, make_trainer, monkeypatch):
    """Opponents with a network that only torch can compute act on the GPU."""
    monkeypatch.setattr("pufferlib.training.opponent_pool.compile_policy", lambda policy: None)
    assert_gpu_matches_cpu(make_trainer, "connect4", {**SELFPLAY, **LSTM})


@pytest.mark.parametrize(
    ("settings", "more", "per_minibatch"),
    [
        as_all(({}, 0, 0)),
        (LSTM, 0, 0),
        as_all(({**SCHEDULES, "train.optimizer": "muon"}, 0, 0)),
        as_all(({**SEPARATE, "policy.memory": "MinGRU"}, 0, 0)),
        (NORMALIZED, 5, 0),
        as_all(({"train.priority_alpha": 0.8}, 3, 0)),
        as_all(({"train.restart_share": 0.5}, 1, 0)),
        as_all((ADAPTIVE, 1, 0)),
        (TARGET_KL, 5, 0),
        as_all((VTRACE, 2, 0)),
        as_all(({"train.cpu_offload": True}, 0, 2)),
        ({"train.cuda_graphs": False}, -1, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("horizon", [16, pytest.param(8, marks=pytest.mark.all)])
def test_cpu_waits_for_gpu_once_per_step(gpus, make_trainer, settings, more, per_minibatch, horizon):
    """An update has 15 further waits, and ``more`` with some settings. Two settings wait for each minibatch."""
    trainer = make_trainer(settings={**settings, "train.device": "cuda", "train.horizon": horizon})
    for _ in range(3):
        trainer.step()
    del gpus.waits[:]
    trainer.step()
    minibatches = 8 * horizon // 32
    assert len(gpus.waits) == horizon + 15 + more + per_minibatch * minibatches, gpus.waits


@pytest.mark.parametrize("memory", once(["none", "LSTM"], ["LSTM"]))
def test_cpu_waits_for_gpu_four_times_per_partial_batch(gpus, make_trainer, memory):
    """The observations, all indices at once, the check of the outputs, and the actions. Memory is cleared at times."""
    trainer = make_trainer("CartPole-v1", {**PARTS, "policy.memory": memory, "train.device": "cuda"})
    for _ in range(3):
        trainer.step()
    vecenv, received = trainer.collector.vecenv, []
    receive = vecenv.recv
    vecenv.recv = lambda: received.append(None) or receive()
    del gpus.waits[:]
    trainer.step()
    waits = [each for each in gpus.waits if each.startswith(("collector.py", "partial_collectors.py"))]
    batches = 1 + len(received)  # the first one was received by the update before
    assert len(waits) <= 4 * batches + (memory != "none") * batches


def test_pages_of_observations_are_locked_until_trainer_is_gone(gpus, tmp_path):
    """The GPU copies from locked pages while the CPU continues."""
    trainer = Trainer(load_config("breakout", {**SMALL, "env.num_envs": 64, "train.device": "cuda"}), tmp_path)
    observations = trainer.vecenv.driver_env.observations
    address, size = observations.ctypes.data, observations.nbytes
    trainer.step()
    trainer.close()
    assert gpus.locked == {address: size}  # large arrays start at a page
    del trainer
    gc.collect()
    assert gpus.locked == {}


@pytest.mark.parametrize("device", once(["cuda", "cuda:1"], ["cuda:1"]))
def test_graphs_are_recorded_once_on_chosen_gpu(gpus, make_trainer, device):
    """One graph for acting steps and one for gradient steps, on the GPU of all tensors."""
    trainer = make_trainer(settings={**SCHEDULES, **LSTM, "train.device": device})
    index = int(device == "cuda:1")
    assert gpus.current == index
    gpus.current = 0  # graphs must not depend on it
    for _ in range(5):
        trainer.step()
    found = {
        each.device for each in [*trainer.policy.parameters(), trainer.rollout.observations, trainer.rollout.values]
    }
    assert found == {torch.device("cuda", index)}
    assert gpus.graphs == 2
    # Each update has 8 acting steps and one gradient step. The first two of each are not replayed.
    assert gpus.replays == 5 * (8 + 1) - 4


@pytest.mark.parametrize(
    "devices", [("cuda", "cpu"), ("cpu", "cuda"), pytest.param(("cuda", "cuda:1"), marks=pytest.mark.all)]
)
@pytest.mark.parametrize("overlap", once(["none", "learning"], ["none"]))
def test_run_is_resumed_on_other_device(gpus, make_trainer, devices, overlap):
    first, second = (
        make_trainer(settings={**LSTM, "train.overlap": overlap, "train.device": device}) for device in devices
    )
    for _ in range(3):
        first.step()
    first.save()
    second.restore(first.checkpoint_path)
    for ours, theirs in zip(first.policy.parameters(), second.policy.parameters(), strict=True):
        assert torch.equal(ours.cpu(), theirs.cpu())
    assert [second.step()["update"] for _ in range(3)] == [4, 5, 6]


@pytest.mark.parametrize(
    ("env", "settings", "device", "expected"),
    [
        ("breakout", LSTM, "auto", "cpu"),
        ("breakout", LSTM, "cuda", "cuda:0"),
        ("breakout", LSTM, "cuda:1", "cuda:1"),
        ("breakout", {"policy.hidden_size": 700}, "auto", "cuda:0"),  # a million parameters
        ("snake", {}, "auto", "cuda:0"),  # a network of its own, which the C engine does not know
    ],
)
def test_loaded_agent_acts_on_fastest_device(gpus, make_trainer, env, settings, device, expected):
    trainer = make_trainer(env, {**settings, "train.minibatch_size": 0, "train.device": "cuda"})
    trainer.save()
    trainer.config.save(trainer.run_dir / "config.toml")
    agent = load(trainer.run_dir, device=device)
    for ours, theirs in zip(agent.policy.parameters(), trainer.policy.parameters(), strict=True):
        assert str(ours.device) == expected
        assert torch.equal(ours.cpu(), theirs.cpu())
    space = trainer.vecenv.single_observation_space
    assert agent(np.zeros((2, *space.shape), space.dtype)).shape[0] == 2


@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_evaluation_of_small_network_does_not_depend_on_device(gpus, make_trainer, monkeypatch, memory):
    """A run of cuda:1 is evaluated with the same score on a machine without a GPU, where it can be played too."""
    trainer = make_trainer("squared", {"policy.memory": memory, "train.device": "cuda:1"})
    trainer.step()
    trainer.save()
    config = trainer.config
    config.save(trainer.run_dir / "config.toml")
    scores = [evaluate(config, trainer.policy, episodes=2)]
    assert next(trainer.policy.parameters()).device == torch.device("cuda", 1)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    scores.append(evaluate(config, load_policy(config, Run.at(trainer.run_dir)), episodes=2))
    assert scores[0] == scores[1]


def test_nan_on_gpu_raises_and_keeps_weights(gpus, make_trainer):
    trainer = make_trainer(settings={"train.device": "cuda"})
    for _ in range(3):
        trainer.step()
    assert_nan_raises_and_keeps_weights(trainer)


@pytest.mark.parametrize("graphs", [None, True])
def test_network_that_waits_for_gpu(gpus, make_trainer, graphs):
    """It trains without graphs, with a warning. If the settings ask for graphs, it is an error."""

    class Waits(Default):
        def encode_observations(self, observations):
            assert float(observations.float().mean()) < 1e9
            return super().encode_observations(observations)

    config = load_config("breakout", {**SMALL, **NATIVE, "train.device": "cpu"})
    policy = Waits(build_vecenv(config).driver_env, 16)
    trainer = make_trainer(settings={"train.device": "cuda", "train.cuda_graphs": graphs}, policy=policy)
    words = "train.cuda_graphs: the network must do the same work"
    if graphs:
        with pytest.raises(PufferError, match=words):
            trainer.step()
        return
    with pytest.warns(UserWarning, match=words):
        assert [trainer.step()["update"] for _ in range(3)] == [1, 2, 3]


def test_garbage_is_not_collected_during_a_recording(gpus, make_trainer):
    class Litters(Default):
        def encode_observations(self, observations):
            assert gc.isenabled() != gpus.is_recording
            return super().encode_observations(observations)

    config = load_config("breakout", {**SMALL, **NATIVE, "train.device": "cpu"})
    trainer = make_trainer(settings={"train.device": "cuda"}, policy=Litters(build_vecenv(config).driver_env, 16))
    for _ in range(3):
        trainer.step()
    assert gpus.graphs == 2


def test_graphs_cast_weights_to_bfloat16_in_each_replay(gpus, make_trainer, monkeypatch):
    """A cast that ``torch.autocast`` keeps would not be part of the graph, which would use old weights."""
    real, kept = torch.autocast, []

    def autocast(device, dtype, cache_enabled=True):
        if gpus.is_recording:
            kept.append(cache_enabled)
        return real(device, dtype, cache_enabled=cache_enabled)

    monkeypatch.setattr(torch, "autocast", autocast)
    trainer = make_trainer(settings={"train.device": "cuda", "train.precision": "bfloat16"})
    for _ in range(3):
        trainer.step()
    assert kept == [False, False]  # acting and learning


@pytest.mark.parametrize("capability", [(7, 5), (8, 0)])
def test_bfloat16_without_instructions_warns(gpus, make_trainer, capability):
    gpus.capability = capability
    settings = {"train.device": "cuda", "train.precision": "bfloat16"}
    if capability >= (8, 0):
        make_trainer(settings=settings)
        return
    with pytest.warns(UserWarning, match="train.precision: Fake GPU has no instructions for bfloat16"):
        make_trainer(settings=settings)


def test_collecting_and_learning_wait_for_each_other_on_gpu(gpus, make_trainer):
    """Collecting has its own stream. It waits for the weights, and learning waits for the rollout."""
    trainer = make_trainer(settings={"train.device": "cuda", "train.overlap": "learning"})
    trainer.step()
    del gpus.stream_waits[:]
    trainer.step()
    assert gpus.stream_waits == [(0, -1), (-1, 0)]


@pytest.mark.parametrize("memory", once(["none", "MinGRU"], ["MinGRU"]))
def test_ranks_on_two_gpus_match_one_process_on_cpu(gpus, tmp_path, memory):
    settings = {"policy.memory": memory, "train.optimizer": "adam"}
    (first, of_first), (second, of_second) = train_in_threads(tmp_path, {**settings, "train.device": "cuda"})
    whole, of_whole = train_as_one(tmp_path, settings)
    assert [trainer.device.index for trainer in (first, second)] == [0, 1]
    for mine, theirs, expected in zip(of_first, of_second, of_whole, strict=True):
        for name, value in expected.items():
            if name != "sps" and not name.endswith("_s"):
                assert mine[name] == theirs[name] == pytest.approx(value, rel=1e-3, abs=1e-3), name
    for ours, theirs in zip(first.policy.parameters(), whole.policy.parameters(), strict=True):
        torch.testing.assert_close(ours.cpu(), theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("device", ["cuda", "cuda:1", "cpu"])
@pytest.mark.parametrize(("local_rank", "size"), [(0, 1), (1, 4), (2, 4)])
def test_ranks_take_gpus_in_turns(gpus, device, local_rank, size):
    ranks = Ranks()
    ranks.size, ranks.local_rank = size, local_rank
    expected = {"cuda": f"cuda:{local_rank % 2}", "cuda:1": "cuda:1", "cpu": "cpu"}[device]
    assert str(ready_device(device_of_rank(torch.device(device), ranks))) == expected


@pytest.mark.parametrize("call", ["gather", "share"])
def test_ranks_send_tensors_of_gpu_from_cpu(gpus, monkeypatch, call):
    """A tensor sent from a GPU would come back on the GPU of the sender."""
    sent = []
    monkeypatch.setattr(distributed, "all_gather_object", lambda found, value: sent.append(value))
    monkeypatch.setattr(distributed, "broadcast_object_list", sent.extend)
    ranks = JoinedRanks.__new__(JoinedRanks)  # without a process group
    ranks.size = 2
    getattr(ranks, call)({"memory": [torch.ones(2, device="cuda:1")]})
    assert sent[0]["memory"][0].device.type == "cpu"


def test_dashboard_shows_memory_of_chosen_gpu(gpus, make_trainer):
    console = Console(file=StringIO(), force_terminal=True, width=120)
    dashboard = progress_logger(make_trainer(settings={"train.device": "cuda:1"}), console)
    gpus.current = 0
    dashboard.log({"update": 1, "agent_steps": 64, "total_agent_steps": 128, "uptime_s": 1.0, "sps": 64.0})
    dashboard.close()
    shown = re.sub(r"\x1b\[[\d;?]*\w", "", console.file.getvalue())
    assert " on cuda:1" in shown
    assert "GPU memory 2.0 GiB of 2.0 GiB" in shown
