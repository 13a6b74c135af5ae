"""``ppo_loss`` and gradient steps of small networks in C, for CPUs.

``fused_ppo_loss`` takes two passes over a minibatch instead of about 100 small torch calls. ``StepInC`` also computes
the forward and backward pass, clipping and Adam. With minibatches of some hundred rows, torch spends most of its time
on the overhead of its calls.
"""

import dataclasses
import hashlib
import inspect
import io
import math
import tokenize
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from pufferlib.models import Policy
from pufferlib.models.devices import is_large
from pufferlib.models.distributions import ActionDistribution
from pufferlib.models.engine import describe
from pufferlib.models.network_spec import NetworkSpec
from pufferlib.models.policies import FORBIDDEN
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training._objective import objective
from pufferlib.training._perceptron import KNOWN_ACTIVATIONS, Perceptron
from pufferlib.training.ppo import Losses
from pufferlib.training.rollout import Minibatch

__all__ = ["StepInC", "build_step_in_c", "fused_ppo_loss", "kernel_matches_loss", "perceptron_spec"]

TERMS = ("ppo_loss", "policy_loss", "value_loss", "normalize", "masked_mean", "accumulate_gradients", "apply_gradients")
#: Fingerprint of these functions of ``ppo``, which C code reimplements. Change them and the C code together.
KERNEL_FINGERPRINT = "43be355d5f197b95"
LAYOUT = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
LARGEST = torch.finfo(torch.float32).max


def kernel_matches_loss() -> bool:
    """Return whether ``ppo_loss``, the functions that it calls and the gradient step are unedited."""
    codes = [getattr(getattr(ppo, name), "__code__", None) for name in TERMS]
    if any(code is None or code.co_filename != ppo.__file__ for code in codes):
        return False  # replaced by a function from elsewhere
    try:
        return fingerprint() == KERNEL_FINGERPRINT
    except (OSError, SyntaxError, tokenize.TokenError):  # no source, or one that is just being edited
        return False


def fingerprint() -> str:
    """Return a hash of the source of ``TERMS``, without docstrings, comments, indentation and line breaks.

    A hash of their bytecode would be different in each version of Python. ``ast.parse`` can fail in concurrent threads
    of Python 3.11.
    """
    words = []
    for name in TERMS:
        before = tokenize.ENDMARKER
        for token in tokenize.generate_tokens(io.StringIO(inspect.getsource(getattr(ppo, name))).readline):
            is_docstring = (before, token.type) == (tokenize.INDENT, tokenize.STRING)
            if token.type not in LAYOUT and not is_docstring:
                words.append(token.string)
            before = token.type
    return hashlib.sha256("".join(words).encode()).hexdigest()[:16]


def fused_ppo_loss(policy: Policy, batch: Minibatch, config: TrainConfig) -> Losses:
    """Compute ``ppo_loss`` with the kernel, or with torch if a tensor is not float32 on a CPU."""
    params, values = policy(batch.observations, batch.state, batch.episode_starts)
    floats = params, values, batch.log_probs, batch.values, batch.advantages, batch.returns
    if all(field.device.type == "cpu" and field.dtype == torch.float32 for field in floats):
        total, figures = _Fused.apply(params, values, policy.distribution, batch, config)  # type: ignore[no-untyped-call]
        return Losses(total, *figures.unbind())
    known: Any = _Evaluated(policy.distribution, params, values)
    return ppo.ppo_loss(known, batch, config)


class _Evaluated(NamedTuple):
    """Policy with known outputs, so that its network does not run twice."""

    distribution: ActionDistribution
    params: Tensor
    values: Tensor

    def __call__(self, *_: Any) -> tuple[Tensor, Tensor]:
        """Return the outputs."""
        return self.params, self.values


class _Fused(torch.autograd.Function):
    """``ppo_loss`` as a function of a network's outputs, with its derivative."""

    @staticmethod
    def forward(
        ctx: Any,
        params: Tensor,
        values: Tensor,
        distribution: ActionDistribution,
        batch: Minibatch,
        config: TrainConfig,
    ) -> tuple[Tensor, Tensor]:
        """Return the loss, and the other fields of ``Losses``."""
        if not batch.log_probs.is_contiguous():  # the batch is part of a larger one
            fields: dict[str, Any] = {k: x.contiguous() for k, x in vars(batch).items() if isinstance(x, Tensor)}
            batch = dataclasses.replace(batch, **fields)
        log_probs, entropies = distribution.evaluate(params, batch.actions)
        d_log_probs, d_entropies, d_values = torch.empty(3, *values.shape).unbind()
        figures = objective(
            log_probs, entropies, values.contiguous(), batch, config, d_log_probs, d_entropies, d_values
        )
        d_params = distribution.differentiate(params, batch.actions, d_log_probs, d_entropies)
        ctx.save_for_backward(d_params, d_values)
        rest = torch.tensor(figures[1:])
        ctx.mark_non_differentiable(rest)
        return torch.tensor(figures[0]), rest

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        """Return the derivatives with respect to ``params`` and ``values``."""
        d_params, d_values = ctx.saved_tensors
        return d_params * d_total, d_values * d_total, None, None, None


def build_step_in_c(
    policy: Policy, optimizer: torch.optim.Optimizer, loss: ppo.Loss, config: TrainConfig
) -> "StepInC | None":
    """Return the gradient step in C, or None if the network, the optimizer, the loss or a setting needs torch.

    Args:
        policy: Network that learns. See ``perceptron_spec``. Large networks learn faster with torch's threads.
        optimizer: Optimizer of its parameters. Supported is Adam.
        loss: Loss. Supported is ``fused_ppo_loss``, which is ``ppo_loss`` in C.
        config: Settings, of which ``precision`` and ``accumulate_minibatches`` are read.
    """
    if loss is not fused_ppo_loss or config.precision != "float32" or config.accumulate_minibatches > 1:
        return None
    if type(optimizer) is not torch.optim.Adam or perceptron_spec(policy) is None or is_large(policy):
        return None
    return StepInC(policy, optimizer)


def perceptron_spec(policy: Policy) -> NetworkSpec | None:
    """Return the description of a network whose gradients C computes, or None for any other network.

    Supported are networks that ``describe`` knows, without images, memory and normalization layers, with ReLU, tanh or
    ELU. All parameters must learn. Log standard deviations must not depend on the observation. The backward pass must
    have no hooks.
    """
    spec = describe(policy)
    if spec is None or spec.image_layer is not None or (spec.log_std is None and spec.num_log_stds):
        return None
    if any(trunk.memory is not None or not trunk.layers for trunk in spec.trunks):
        return None
    layers = [layer for trunk in spec.trunks for layer in trunk.layers]
    if any(layer.activation not in KNOWN_ACTIVATIONS or layer.norm is not None for layer in layers):
        return None
    matrices = [*(layer.matrix for layer in layers), *(trunk.decoder for trunk in spec.trunks)]
    has_biases = all(matrix.biases for matrix in matrices)
    is_learned = all(tensor.requires_grad and not tensor._backward_hooks for tensor in spec.tensors)
    is_hooked = any(module._backward_hooks or module._backward_pre_hooks for module in policy.modules())
    return spec if has_biases and is_learned and not is_hooked else None


def is_plain_adam(optimizer: torch.optim.Adam) -> bool:
    """Return whether a step is Adam's without what callbacks may have set: weight decay, groups, hooks, their own step.

    A learning-rate scheduler of torch also replaces ``optimizer.step``, to count the steps.
    """
    group, *others = optimizer.param_groups
    is_changed = group["weight_decay"] or group["amsgrad"] or group["maximize"]
    hooks = optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks
    return not (others or is_changed or hooks or "step" in vars(optimizer))


class StepInC:
    """Gradient step in C. It has the interface of ``ppo.FusedStep``.

    If the network or the optimizer changes so that it needs torch, for example by a hook, a frozen layer or weight
    decay, torch takes the steps from the next update on.

    Args:
        policy: Network that learns.
        optimizer: Adam. It keeps the state of each parameter, so a checkpoint is the same as with torch.
    """

    def __init__(self, policy: Policy, optimizer: torch.optim.Adam) -> None:
        self._policy, self._optimizer = policy, optimizer
        self._net: Perceptron | None = None
        self._tensors: list[Tensor] = []
        self._rows = 0
        self._params, self._values, self._d_log_probs, self._d_entropies, self._d_values = torch.empty(5, 0).unbind()
        self._kl_limit = math.inf
        self._has_failed = self._has_ended = self._has_stepped = False
        self._config: Any = None

    def begin(self, config: TrainConfig) -> None:
        """Set the coefficients for the next update, and look whether network or optimizer have changed."""
        self._config, self._kl_limit = config, ppo.kl_limit(config)
        self._has_failed = self._has_ended = False
        spec = perceptron_spec(self._policy)
        if spec is None or not is_plain_adam(self._optimizer):
            self._net, self._tensors = None, []
            return
        if self._net is None or [id(each) for each in spec.tensors] != [id(each) for each in self._tensors]:
            self._net, self._tensors = Perceptron(spec), spec.tensors
        states = self._optimizer.state
        for parameter in self._net.parameters:
            if not states[parameter]:
                states[parameter] = {
                    "step": torch.zeros(()),
                    "exp_avg": torch.zeros_like(parameter),
                    "exp_avg_sq": torch.zeros_like(parameter),
                }
        self._net.bind([states[parameter] for parameter in self._net.parameters])

    def __call__(self, batch: Minibatch) -> list[Tensor]:
        """Take a gradient step. Return the values of ``Losses``, in its order.

        Raises:
            PufferError: The network needs torch, and the loss is not finite.
        """
        if self._has_failed or self._has_ended:
            return [torch.full((len(Losses._fields),), torch.nan)]
        policy, rows = self._policy, batch.observations
        is_known = rows.dtype == policy.observation_dtype and rows.shape[2:] == policy.observation_shape
        net = self._net if is_known else None
        figures = self._step_of_torch(batch) if net is None else self._step_in_c(batch, net)
        self._has_ended = self._kl_limit < math.inf and float(ppo.mean_kl(figures[None])) > self._kl_limit
        return [figures]

    def has_ended(self) -> bool:
        """Return whether ``target_kl`` has ended the update."""
        return self._has_ended

    def has_failed(self) -> bool:
        """Return whether a loss of the update was not finite. No step was taken for it, and none after it.

        Call it at the end of an update. The parameters then have the gradients of the last step.
        """
        if self._has_stepped and self._net is not None:
            for parameter, gradient in zip(self._net.parameters, self._net.gradients(), strict=True):
                parameter.grad = gradient
        return self._has_failed

    def _step_of_torch(self, batch: Minibatch) -> Tensor:
        self._optimizer.zero_grad()
        (figures,) = ppo.accumulate_gradients(self._policy, batch, self._config, fused_ppo_loss)
        ppo.apply_gradients(self._policy, self._optimizer, self._config)
        return figures

    @torch.no_grad()
    def _step_in_c(self, batch: Minibatch, net: Perceptron) -> Tensor:
        policy, distribution, config = self._policy, self._policy.distribution, self._config
        observations = batch.observations.flatten(0, 1).contiguous()
        self._make_room(*batch.values.shape)
        net.forward(observations, self._params, self._values)
        mask = policy.action_mask(observations)
        if mask is not None:
            self._params.flatten(0, 1)[:, : distribution.num_logits].masked_fill_(mask == 0, FORBIDDEN)
        log_probs, entropies = distribution.evaluate(self._params, batch.actions)
        outputs = self._d_log_probs, self._d_entropies, self._d_values
        figures = objective(log_probs, entropies, self._values, batch, config, *outputs)
        self._has_failed = not abs(figures[0]) <= LARGEST  # also if it is NaN
        if not self._has_failed:
            d_params = distribution.differentiate(self._params, batch.actions, *outputs[:2])
            if mask is not None:  # constants, also where no action is legal
                d_params.flatten(0, 1)[:, : distribution.num_logits].masked_fill_(mask == 0, 0)
            net.backward(d_params.contiguous(), self._d_values)
            group = self._optimizer.param_groups[0]
            beta1, beta2 = group["betas"]
            net.step(config.max_grad_norm, group["lr"], beta1, beta2, group["eps"])
            self._has_stepped = True
        return torch.tensor(figures)

    def _make_room(self, steps: int, rows: int) -> None:
        if steps * rows == self._rows:
            return
        self._rows = steps * rows
        self._params = torch.empty(steps, rows, self._policy.distribution.num_params)
        outputs = torch.empty(4, steps, rows).unbind()
        self._values, self._d_log_probs, self._d_entropies, self._d_values = outputs
