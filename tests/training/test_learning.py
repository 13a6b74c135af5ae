import contextlib
import functools
import subprocess
import sys

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import make_policy
from pufferlib.settings.config import TrainConfig, load_config
from pufferlib.training import accelerate, kernels, ppo
from pufferlib.training.accelerate import build_loss
from pufferlib.training.kernels import fused_ppo_loss, kernel_matches_loss
from pufferlib.training.rollout import Minibatch
from pufferlib.training.trainer import Trainer

CPU = torch.device("cpu")


def test_shipped_loss_uses_kernel_on_cpu():
    assert build_loss(ppo.ppo_loss, TrainConfig(), CPU) is fused_ppo_loss
    assert build_loss(ppo.ppo_loss, TrainConfig(), torch.device("cuda")) is ppo.ppo_loss


def test_custom_loss_is_called():
    def loss(policy, batch, config):
        raise NotImplementedError

    with pytest.raises(NotImplementedError):
        build_loss(loss, TrainConfig(), CPU)(None, None, TrainConfig())


def test_edited_loss_term_has_effect(monkeypatch, target_env):
    """An edit of any function that the loss calls turns the kernel off."""

    def value_loss(values, old_values, returns, clip_coef):
        return (values - returns).abs()

    policy = make_policy(target_env(4), hidden_size=8)
    batch, config = batch_for(policy), TrainConfig()
    before = build_loss(ppo.ppo_loss, config, CPU)(policy, batch, config)
    monkeypatch.setattr(ppo, "value_loss", value_loss)
    assert not kernel_matches_loss()
    after = build_loss(ppo.ppo_loss, config, CPU)(policy, batch, config)
    counted = batch.mask
    expected = (batch.returns - policy(batch.observations, batch.state, None)[1]).abs()[counted].mean()
    assert torch.allclose(after.value, expected)
    assert not torch.allclose(before.total, after.total)


def test_kernel_fingerprint_matches_code():
    """If this fails, ``ppo.py`` has changed. Change ``puffer_objective.h`` accordingly, then update the fingerprint."""
    assert kernels.fingerprint() == kernels.KERNEL_FINGERPRINT


def test_kernel_does_not_depend_on_bytecode(monkeypatch):
    """Each version of Python compiles the same text to other instructions. Other names of variables stand for them."""
    code = ppo.value_loss.__code__
    monkeypatch.setattr(ppo.value_loss, "__code__", code.replace(co_varnames=tuple(f"{n}_" for n in code.co_varnames)))
    assert kernel_matches_loss()


@pytest.mark.parametrize("replace", [lambda term: functools.wraps(term)(lambda *a: term(*a)), functools.partial])
def test_kernel_is_not_used_if_a_term_is_replaced(monkeypatch, replace):
    monkeypatch.setattr(ppo, "value_loss", replace(ppo.value_loss))
    assert not kernel_matches_loss()


@pytest.mark.parametrize("source", ["def value_loss(", None])
def test_kernel_is_not_used_if_the_source_cannot_be_read(monkeypatch, source):
    def getsource(module):
        if source is None:
            raise OSError("could not get source code")
        return source

    monkeypatch.setattr(kernels.inspect, "getsource", getsource)
    assert not kernel_matches_loss()


@pytest.mark.all
def test_kernel_is_used_without_docstrings():
    code = "from pufferlib.training.kernels import kernel_matches_loss as c; import sys; sys.exit(not c())"
    assert subprocess.run([sys.executable, "-OO", "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("device", "named", "missing"),
    [
        ("cpu", {}, r"a C\+\+ compiler, found none \(c\+\+, g\+\+, clang\+\+\); install g\+\+"),
        ("cpu", {"CXX": "mycc"}, r"a C\+\+ compiler, found none \(CXX=mycc\)"),
        ("cuda", {"CXX": "sh"}, r"a C compiler, found none \(cc, gcc, clang\); install gcc, set CC"),
    ],
)
def test_missing_compiler_raises_before_training(monkeypatch, tmp_path, device, named, missing):
    (tmp_path / "sh").symlink_to("/bin/sh")
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in ("CC", "CXX"):
        monkeypatch.setenv(name, named[name]) if name in named else monkeypatch.delenv(name, raising=False)
    with pytest.raises(APIUsageError, match=rf"train.compile needs {missing}"):
        build_loss(ppo.ppo_loss, TrainConfig(compile=True), torch.device(device))


def batch_for(policy, memory="none"):
    fields = {name: torch.rand(3, 4) for name in ("log_probs", "values", "advantages", "returns")}
    starts, mask = torch.rand(2, 3, 4) < 0.5
    return Minibatch(
        torch.rand(3, 4, 3),
        torch.randint(3, (3, 4)),
        **fields,
        mask=mask,
        state=policy.initial_state(4),
        episode_starts=None if memory == "none" else starts,
    )


@pytest.fixture
def graphs(monkeypatch):
    """Return the list of the graphs that ``torch.compile`` compiles. It has compiled nothing before."""
    found = []

    def backend(graph, inputs):
        found.append(graph)
        return graph

    torch.compiler.reset()
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend=backend))
    monkeypatch.setattr(accelerate, "check_compiler", lambda device: None)
    return found


@pytest.mark.filterwarnings("default")  # torch warns while it compiles
def test_schedules_do_not_recompile_loss(target_env, graphs):
    policy = make_policy(target_env(4), hidden_size=8)
    batch, loss = batch_for(policy), build_loss(ppo.ppo_loss, TrainConfig(compile=True), CPU)
    for update in range(4):
        config = TrainConfig(clip_coef=0.2 - 0.01 * update, ent_coef=0.01 * update, learning_rate=0.1 * update)
        assert torch.allclose(loss(policy, batch, config).total, ppo.ppo_loss(policy, batch, config).total, atol=1e-6)
    assert len(graphs) == 1


NORMALIZED = {"train.normalize_observations": True, "train.normalize_rewards": True}


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")  # torch warns while it compiles
@pytest.mark.parametrize(
    ("env", "settings"),
    [
        ("squared", {"train.clip_schedule": "linear", "train.ent_schedule": "cosine", "train.priority_alpha": 0.8}),
        ("squared", {"train.lr_schedule": "adaptive", "train.target_kl": 0.01, **NORMALIZED}),
        ("squared", {"policy.networks": "separate", "policy.layer_norm": True, "policy.memory": "MinGRU"}),
        ("squared", {"train.accumulate_minibatches": 2, "train.optimizer": "muon"}),
        ("pendulum", {"policy.state_dependent_std": True, "train.rescale_actions": True}),
        ("connect4", {"env.players": 2, "selfplay.opponents": 1, "selfplay.snapshot_interval": 1}),
    ],
    ids=str,
)
def test_run_compiles_loss_only_in_first_updates(graphs, tmp_path, env, settings):
    sizes = {"env.num_envs": 8, "policy.hidden_size": 8, "train.horizon": 8, "train.minibatch_size": 16}
    small = {**sizes, "train.update_epochs": 2, "train.total_timesteps": 1000, "train.device": "cpu"}
    config = load_config(env, {**small, "train.compile": True, **settings})
    with contextlib.closing(Trainer(config, tmp_path)) as trainer:
        counts = [trainer.step() and len(graphs) for _ in range(6)]
    assert counts[1] == counts[-1] > 0  # a mask of the agents may first appear in the second update


@pytest.mark.all
@pytest.mark.timeout(600)
@pytest.mark.filterwarnings("default")  # torch warns while it compiles
@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_compiled_loss_matches_plain_gradients(target_env, monkeypatch, memory):
    """Use the "eager" backend, because real compilers take a minute."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(accelerate, "check_compiler", lambda device: None)
    torch.manual_seed(0)
    policy = make_policy(target_env(4), hidden_size=8, memory=memory)
    batch = batch_for(policy, memory)
    results = []
    for loss in (build_loss(ppo.ppo_loss, TrainConfig(compile=True), CPU), ppo.ppo_loss):
        policy.zero_grad()
        figures = torch.stack(ppo.accumulate_gradients(policy, batch, TrainConfig(), loss))
        results.append([figures, *(weights.grad.clone() for weights in policy.parameters())])
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(*results, strict=True))
