"""Reduction of gradients and statistics over ranks, which makes them learn like one process with all their steps.

Gradients are means over the counted steps of all ranks. Advantages are normalized over all ranks, and metrics cover
all ranks. V-trace and priorities, which look at a whole rollout, use only the rollout of their rank.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from typing_extensions import override

from pufferlib.models import Policy
from pufferlib.settings.config import TrainConfig
from pufferlib.training import ppo
from pufferlib.training.distributed.ranks import Ranks
from pufferlib.training.episodes import EpisodeMeans
from pufferlib.training.rollout import Minibatch, Rollout
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.wrappers.vector import VectorWrapper

__all__ = ["RankReduction", "build_reduction"]

ROUNDING = 1e-12  # variances below this share of the mean square are rounding errors
Doubles = npt.NDArray[np.float64]


class RankReduction(ppo.Reduction):
    """Reduction for one of several ranks.

    Args:
        ranks: Processes that train together.
        parameters: Parameters to train, equal in each rank.
    """

    def __init__(self, ranks: Ranks, parameters: list[nn.Parameter]) -> None:
        self._ranks = ranks
        self._parameters = [weights for weights in parameters if weights.requires_grad]
        sizes = [weights.numel() for weights in self._parameters]
        kind = self._parameters[0].dtype
        # The losses of the minibatch are sent with the gradients in one message.
        self._flat = torch.zeros(sum(sizes) + len(ppo.Losses._fields), dtype=kind, device=self._parameters[0].device)
        *parts, self._figures = torch.split(self._flat, [*sizes, len(ppo.Losses._fields)])
        # A fused optimizer requires that gradients have the memory layout of their parameters.
        self._gradients = [
            part.as_strided(weights.shape, weights.stride(), part.storage_offset())
            for part, weights in zip(parts, self._parameters, strict=True)
        ]
        self._moments: dict[str, Doubles] = {}
        self._squares: dict[str, Doubles] = {}
        # Lower bounds of the three sums. Only the sum of weights is bounded.
        least = [1.0, -torch.inf, -torch.inf]
        self._least = torch.tensor(least, dtype=torch.float64, device=self._flat.device)

    @override
    def collect(self, take: Callable[[], Rollout]) -> Rollout:
        """Return the rollout that ``take`` returns.

        Raises:
            RankLostError: Another rank was lost.
        """
        with self._ranks.interruptible():
            return take()

    @override
    def accumulate_gradients(
        self, policy: Policy, batch: Minibatch, config: TrainConfig, loss: ppo.Loss
    ) -> list[Tensor]:
        """Set the gradients of the mean loss over this minibatch of all ranks. Return its losses.

        Raises:
            PufferError: The loss is not finite.
            RankLostError: Another rank was lost.
        """
        counted, advantages = batch.counted, batch.advantages.double()
        weights = torch.ones_like(advantages) if counted is None else counted.double()
        weighted = advantages * weights
        mine = torch.stack([weights.sum(), weighted.sum(), (weighted * advantages).sum()])
        count, total, squares = self._ranks.sum(mine.clone()).clamp(min=self._least).unbind()
        if config.norm_adv:
            mean = total / count
            spread = (squares / count - mean.square()).clamp(min=0).sqrt() + 1e-8
            batch = dataclasses.replace(batch, advantages=((advantages - mean) / spread).to(batch.advantages.dtype))
            config = config.derived(norm_adv=False)
        figures = ppo.accumulate_gradients(policy, batch, config, loss)
        return [self._sum(figures, share=mine[0] / count)]

    def _sum(self, figures: list[Tensor], share: Tensor) -> Tensor:
        for weights, gradient in zip(self._parameters, self._gradients, strict=True):
            if weights.grad is None:
                gradient.zero_()
            else:
                torch.mul(weights.grad, share, out=gradient)
        torch.mul(torch.stack(figures).mean(0), share, out=self._figures)
        self._ranks.sum(self._flat)
        for weights, gradient in zip(self._parameters, self._gradients, strict=True):
            weights.grad = gradient
        found: Tensor = self._figures.clone()
        return found

    @override
    def explained_variance(self, values: Tensor, returns: Tensor, mask: Tensor) -> float:
        targets = returns[mask]
        errors = (targets - values[mask]).double()
        of_errors, of_targets = self._variances(errors, targets.double())
        return float("nan") if of_targets == 0 else 1 - of_errors / of_targets

    @override
    def deviation(self, returns: Tensor) -> float:
        (variance,) = self._variances(returns.double())
        return float(variance**0.5)

    def _variances(self, *samples: Tensor) -> list[float]:
        sums = [number for sample in samples for number in (sample.sum(), sample.square().sum())]
        count = sums[0].new_tensor(samples[0].numel())
        count, *moments = self._ranks.sum(torch.stack([count, *sums])).tolist()
        found = []
        for total, squares in zip(moments[::2], moments[1::2], strict=True):
            mean, square = total / max(count, 1), squares / max(count, 1)
            variance = square - mean * mean
            found.append(variance if variance > ROUNDING * square else 0.0)
        return found

    @override
    def count_experience(self, steps: int, episodes: EpisodeMeans) -> int:
        found = self._ranks.gather((steps, episodes.state_dict()))
        joined: dict[str, Any] = {name: _added([state[name] for _, state in found]) for name in ("sums", "counts")}
        if episodes.records is not None:
            joined["records"] = [record for _, state in found for record in state.get("records", [])]
        episodes.load_state_dict(joined)
        return sum(each for each, _ in found)

    @override
    def merge_moments(self, vecenv: AnyVectorEnv) -> None:
        if not isinstance(vecenv, VectorWrapper):
            return
        state = vecenv.state_dict()
        now, before = _moments_in(state), self._moments
        for name, moments in now.items():
            count, base = before[name][0, 0], before[name]
            # Sums of distances from a point near the mean lose fewer digits.
            shift = base[1] if count else self._sum_of(moments[1]) / self._ranks.size
            counts, sums, squares = self._sum_of(_powers(moments, shift) - _powers(base, shift)) + _powers(base, shift)
            if counts[0]:
                mean = sums / counts
                now[name] = np.stack([counts, shift + mean, np.maximum(squares / counts - mean * mean, 0)])
        self._moments = now
        squares = {name: base + self._sum_of(state[name] - base) for name, base in self._squares.items()}
        self._squares = {name: each.copy() for name, each in squares.items()}
        vecenv.load_state_dict({**state, **_as_state(now, state), **squares})

    def _sum_of(self, array: Doubles) -> Doubles:
        device = self._flat.device
        found: Doubles = self._ranks.sum(torch.from_numpy(array.copy()).to(device)).numpy(force=True)
        return found

    @override
    def start_moments(self, vecenv: AnyVectorEnv) -> None:
        state = vecenv.state_dict() if isinstance(vecenv, VectorWrapper) else {}
        self._moments = _moments_in(state)
        # Sums of the squares of rewards and their numbers, which normalized rewards depend on too.
        self._squares = {name: np.array(value, np.float64) for name, value in state.items() if name.endswith(".seen")}

    @override
    def state_dict(self) -> dict[str, Any]:
        return {"moments": dict(self._moments), "squares": dict(self._squares)}

    @override
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state.get("moments"):
            self._moments = {name: np.asarray(moments, np.float64) for name, moments in state["moments"].items()}
            saved = state.get("squares", {})  # absent in old checkpoints
            self._squares |= {name: np.asarray(each, np.float64) for name, each in saved.items()}


def build_reduction(ranks: Ranks, policy: nn.Module) -> ppo.Reduction:
    """Build the reduction of ``policy`` over ``ranks``."""
    return ppo.Reduction() if ranks.size == 1 else RankReduction(ranks, list(policy.parameters()))


def _added(parts: list[dict[str, float]]) -> dict[str, float]:
    found: dict[str, float] = {}
    for part in parts:
        for key, value in part.items():
            found[key] = found.get(key, 0.0) + value
    return found


def _moments_in(state: Mapping[str, Any]) -> dict[str, Doubles]:
    """Return the running moments of wrappers by name: counts, means and variances, float64 ``(3, elements)``."""
    names = [key.removesuffix("mean") for key in state if key.endswith(".mean")]
    found = {}
    for name in names:
        if name + "var" in state and name + "count" in state:
            rows = np.broadcast_arrays(*(np.ravel(state[name + part]) for part in ("count", "mean", "var")))
            found[name] = np.stack(rows).astype(np.float64)
    return found


def _as_state(moments: Mapping[str, Doubles], like: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``moments`` with the shapes that they have in the state ``like``."""
    return {
        name + part: np.resize(row, np.shape(like[name + part]))
        for name, rows in moments.items()
        for part, row in zip(("count", "mean", "var"), rows, strict=True)
    }


def _powers(moments: Doubles, shift: Doubles) -> Doubles:
    """Return counts, and the sums of the first and second powers of the distances from ``shift``."""
    counts, means, variances = moments
    return np.stack([counts, counts * (means - shift), counts * (variances + np.square(means - shift))])
