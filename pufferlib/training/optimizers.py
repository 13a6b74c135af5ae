"""Optimizers: Adam, and Muon for hidden matrices."""

import contextlib
import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from pufferlib.errors import APIUsageError
from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig

__all__ = ["MuonAndAdam", "build_optimizer", "hidden_matrices", "on_device"]


def build_optimizer(config: TrainConfig, policy: Policy) -> torch.optim.Optimizer:
    """Build the optimizer that ``train.optimizer`` names. Adam updates all parameters in one fused step.

    Raises:
        APIUsageError: The network has no matrix that Muon could optimize.
    """
    if config.optimizer == "muon":
        return MuonAndAdam(config, policy)
    return _adam(config, list(policy.parameters()))


def _adam(config: TrainConfig, parameters: list[nn.Parameter]) -> torch.optim.Adam:
    betas = (config.adam_beta1, config.adam_beta2)
    return torch.optim.Adam(parameters, config.learning_rate, betas, config.adam_eps, fused=True)


def hidden_matrices(policy: nn.Module) -> list[nn.Parameter]:
    """Return the weights between hidden layers: all matrices except those of heads (decoders) and embeddings."""
    others: set[Tensor] = set()
    for module in policy.modules():
        if isinstance(module, nn.Embedding | nn.EmbeddingBag):
            others.update(module.parameters())
        for name in ("decoder", "critic_decoder") if isinstance(module, Policy) else ():
            if isinstance(head := getattr(module, name, None), nn.Module):
                others.update(head.parameters())
    return [weights for weights in policy.parameters() if weights.ndim == 2 and weights not in others]


@contextlib.contextmanager
def on_device(optimizer: torch.optim.Optimizer, rate: Tensor, failed: Tensor) -> Iterator[None]:
    """Return a context in which steps of ``optimizer`` can be recorded.

    In it, the optimizer reads all values that change from device memory.

    Args:
        optimizer: Optimizer from ``build_optimizer``.
        rate: Learning rate, a scalar.
        failed: Scalar, float32. If it is 1, a step changes nothing.
    """
    parts: Any = optimizer.parts.values() if isinstance(optimizer, MuonAndAdam) else [optimizer]
    before = [(group, group["lr"], group.get("capturable")) for group in optimizer.param_groups]
    for part in parts:
        part.found_inf = failed  # the attribute that torch's GradScaler sets
    for group in optimizer.param_groups:
        group.update(lr=rate, capturable=True)
    try:
        yield
    finally:
        for part in parts:
            del part.found_inf
        for group, lr, capturable in before:
            group["lr"] = lr
            group.pop("capturable") if capturable is None else group.update(capturable=capturable)


class _Muon(torch.optim.Muon):
    """``torch.optim.Muon`` with steps that can be recorded. See ``on_device``."""

    @override
    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        failed: Tensor | None = getattr(self, "found_inf", None)
        if failed is None:
            return super().step(closure)  # type: ignore[no-untyped-call]
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._step_recordable(weights, weights.grad, group, failed > 0)
        return None

    def _step_recordable(self, weights: Tensor, grad: Tensor, group: dict[str, Any], failed: Tensor) -> None:
        state = self.state[weights]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(grad, memory_format=torch.preserve_format)
        momentum = state["momentum_buffer"]
        after = momentum.lerp(grad, 1 - group["momentum"])
        update = grad.lerp(after, group["momentum"])
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        scale = 0.2 * math.sqrt(max(weights.shape))  # match the size of Adam's steps
        momentum.copy_(torch.where(failed, momentum, after))
        weights.sub_(torch.where(failed, 0.0, update.float() * (group["lr"] * scale)))


def orthogonalized(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """Return about the nearest matrix with orthogonal rows or columns, in bfloat16, by Newton-Schulz iterations."""
    a, b, c = coefficients
    is_tall = matrix.shape[0] > matrix.shape[1]
    found = (matrix.t() if is_tall else matrix).bfloat16()
    found = found / found.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.t()
        found = torch.addmm(found, torch.addmm(gram, gram, gram, beta=b, alpha=c), found, beta=a)
    return found.t() if is_tall else found


class MuonAndAdam(torch.optim.Optimizer):
    """Muon for the hidden matrices, Adam for everything else: vectors, convolutions, heads and embeddings.

    Muon steps along the orthogonalized momentum. Its steps are scaled to the size of Adam's steps, so that one learning
    rate fits both.

    Sources: Jordan et al., "Muon: An optimizer for hidden layers in neural networks" (2024). For the scale, Liu et al.,
    "Muon is Scalable for LLM Training" (2025).

    Args:
        config: Settings, of which ``learning_rate``, ``adam_beta1``, ``adam_beta2`` and ``adam_eps`` are read.
            ``adam_beta1`` is also the momentum of Muon.
        policy: Network.

    Raises:
        APIUsageError: The network has no hidden matrix.
    """

    def __init__(self, config: TrainConfig, policy: Policy) -> None:
        matrices = hidden_matrices(policy)
        if not matrices:
            raise APIUsageError(
                f"train.optimizer: muon needs a hidden layer of type Linear, got {type(policy).__name__} without one; "
                "use adam"
            )
        chosen = set(matrices)
        rest = [parameter for parameter in policy.parameters() if parameter not in chosen]
        muon = _Muon(
            matrices,
            config.learning_rate,
            weight_decay=0.0,
            momentum=config.adam_beta1,
            adjust_lr_fn="match_rms_adamw",
        )
        self.parts: dict[str, torch.optim.Optimizer] = {"muon": muon, "adam": _adam(config, rest)}
        super().__init__([*matrices, *rest], {})
        self._share_groups()

    def _share_groups(self) -> None:
        """Expose the parameter groups of both optimizers, so that setting ``lr`` in ``param_groups`` affects both."""
        self.param_groups = [group for part in self.parts.values() for group in part.param_groups]

    @override
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for optimizer in self.parts.values():
            optimizer.step()
        return loss

    @override
    def state_dict(self) -> dict[str, Any]:
        return {name: optimizer.state_dict() for name, optimizer in self.parts.items()}

    @override
    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        for name, optimizer in self.parts.items():
            optimizer.load_state_dict(state_dict[name])
        self._share_groups()
