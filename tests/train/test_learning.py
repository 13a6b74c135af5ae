import functools

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.models import make_policy
from pufferlib.train import learning, ppo
from pufferlib.train.config import TrainConfig
from pufferlib.train.learning import build_loss
from pufferlib.train.rollout import Minibatch

CPU = torch.device("cpu")


def test_without_options_it_is_the_plain_loss():
    assert build_loss(TrainConfig(), CPU) is ppo.ppo_loss


@pytest.mark.parametrize(("named", "said"), [(None, r"c\+\+, g\+\+, clang\+\+"), ("mycc", "CXX=mycc")])
def test_a_missing_compiler_is_told_before_training(monkeypatch, named, said):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("CXX", named) if named else monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(APIUsageError, match=rf"train.compile needs a C\+\+ compiler, found none \({said}\); install"):
        build_loss(TrainConfig(compile=True), CPU)


def test_a_gpu_is_asked_for():
    with pytest.raises(APIUsageError, match=r"train\.cuda_graphs records the work of a GPU"):
        build_loss(TrainConfig(cuda_graphs=True), CPU)


@pytest.mark.all
@pytest.mark.timeout(300)
@pytest.mark.filterwarnings("default")  # torch warns of itself while it compiles
@pytest.mark.parametrize("memory", ["none", "LSTM"])
def test_the_compiled_loss_has_the_gradients_of_the_plain_one(target_env, monkeypatch, memory):
    """By torch's own interpreter of what it captured: the compilers behind it take a minute."""
    monkeypatch.setattr(torch, "compile", functools.partial(torch.compile, backend="eager"))
    monkeypatch.setattr(learning, "check_compiler", lambda: None)
    torch.manual_seed(0)
    policy = make_policy(target_env(4), hidden_size=8, memory=memory)
    fields = {name: torch.rand(3, 4) for name in ("log_probs", "values", "advantages", "returns")}
    starts, mask = torch.rand(2, 3, 4) < 0.5
    batch = Minibatch(
        torch.rand(3, 4, 3),
        torch.randint(3, (3, 4)),
        **fields,
        mask=mask,
        state=policy.initial_state(4),
        episode_starts=None if memory == "none" else starts,
    )
    results = []
    for loss in (build_loss(TrainConfig(compile=True), CPU), ppo.ppo_loss):
        policy.zero_grad()
        figures = torch.stack(ppo.accumulate_gradients(policy, batch, TrainConfig(), loss))
        results.append([figures, *(weights.grad.clone() for weights in policy.parameters())])
    assert all(torch.allclose(*pair, atol=1e-5) for pair in zip(*results, strict=True))
