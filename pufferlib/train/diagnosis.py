"""Diagnosis of NaN and infinity in training: which tensor, layer or field of an observation had the first one.

Nothing here runs until the checks of acting and learning, which are there anyway, have found that something is wrong.
"""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from pufferlib.errors import PufferError
from pufferlib.models import State
from pufferlib.pytorch import nativize_dtype, nativize_tensor
from pufferlib.train import tensor_file
from pufferlib.train.runs import Run

if TYPE_CHECKING:
    from pufferlib.train.rollout import Minibatch
    from pufferlib.train.trainer import Trainer

__all__ = ["NonFiniteError", "explained"]

Look = Callable[[str, Any], None]
OF_ROLLOUT = ("observations", "actions", "rewards", "values", "log_probs", "masks", "episode_starts", "episode_ends")


class NonFiniteError(PufferError):
    """NaN or infinity where there must be numbers.

    Args:
        message: What had to be finite.
        batch: The minibatch, where the policy learned.
        losses: Those of it, by name.
    """

    def __init__(
        self, message: str, batch: "Minibatch | None" = None, losses: Mapping[str, Tensor] | None = None
    ) -> None:
        super().__init__(message)
        self.batch, self.losses = batch, losses or {}


@contextlib.contextmanager
def explained(trainer: "Trainer") -> Iterator[None]:
    """Let a ``NonFiniteError`` say what had the first NaN, and save all tensors beside the checkpoints.

    Raises:
        PufferError: Instead.
    """
    try:
        yield
    except NonFiniteError as error:
        cause = _cause(error, trainer)
        path = Run.at(trainer.run_dir).inspection
        try:
            _save(path, error, trainer, cause)
            kept = f"its tensors are in {path}"
        except OSError as failure:
            kept = f"its tensors could not be saved in {path} ({failure.strerror})"
        raise PufferError(f"{error}. In update {trainer.updates + 1} the first was {cause}; {kept}") from error


def _cause(error: NonFiniteError, trainer: "Trainer") -> str:
    """Words for the first tensor that has a NaN or infinity, in the order in which tensors follow from each other.

    Steps are those of the rollout.
    """
    return (
        _in_observations(error, trainer)
        or _in_rewards(trainer)
        or _in_parameters(trainer.policy)
        or _in_layers(error, trainer)
        or _in_memory(error, trainer)
        or _in_losses(error, trainer)
        or "not to be found: computing it once more gives finite numbers"
    )


def _inputs(error: NonFiniteError, trainer: "Trainer") -> tuple[Tensor, State]:
    """Observations that the policy got, and its memory then."""
    batch = error.batch
    return (batch.observations, batch.state) if batch else trainer.collector.latest[:2]


def _in_observations(error: NonFiniteError, trainer: "Trainer") -> str:
    rollout, env = trainer.rollout, trainer.vecenv.driver_env
    structure = nativize_dtype(env.emulated) if env.emulated else None
    batches: list[tuple[str, Tensor, Any]] = [
        (f"step {t}", rows, range(rollout.num_agents)) for t, rows in enumerate(rollout.observations)
    ]
    if error.batch is None:
        latest, _, agents = trainer.collector.latest
        batches.append(("the latest step", latest, agents))
    for when, rows, whose in batches:
        fields = rows if structure is None else nativize_tensor(rows.contiguous(), structure)
        for name, field in _leaves("observation", fields):
            if (index := _first(field)) is not None:
                row, *place = index
                at = str(place) if place else ""
                return f"{name}{at} = {field[index].item()} {_whose(int(whose[row]), trainer)}, in {when}"
    return ""


def _in_rewards(trainer: "Trainer") -> str:
    index = _first(trainer.rollout.rewards)
    if index is None:
        return ""
    (step, agent), value = index, trainer.rollout.rewards[index].item()
    ended = "; or the last observation of its episode, which ended there" if trainer.rollout.episode_ends[index] else ""
    return f"the reward {value} {_whose(agent, trainer)}, in step {step}{ended}"


def _in_parameters(policy: nn.Module) -> str:
    for name, parameter in policy.named_parameters():
        if _is_broken(parameter.detach()):
            with_gradient = parameter.grad is not None and _is_broken(parameter.grad)
            return f"in parameter {name}{', and in its gradient, by a gradient step before' if with_gradient else ''}"
    return next((f"in buffer {name}" for name, buffer in policy.named_buffers() if _is_broken(buffer)), "")


def _in_layers(error: NonFiniteError, trainer: "Trainer") -> str:
    """Compute once more, without the memory's own NaN, and look at what goes into each layer, and what comes out."""
    policy, found = trainer.policy, list[str]()

    def look(what: str, tensors: Any) -> None:
        if not found and any(_is_broken(tensor) for _, tensor in _leaves("", tensors)):
            found.append(what)

    handles = []
    for name, layer in policy.named_modules():
        title = f"layer {name} ({type(layer).__name__})"
        if name:
            handles += [
                layer.register_forward_pre_hook(partial(_look_at_input, look, title)),
                layer.register_forward_hook(partial(_look_at_output, look, title)),
            ]
    observations, memory = _inputs(error, trainer)
    state = {key: each.detach().clone().nan_to_num_(0.0, 0.0, 0.0) for key, each in memory.items()}
    try:
        with torch.no_grad():
            if error.batch is None:
                outputs = policy.forward_eval(observations, state)
            else:
                outputs = policy(observations, state, error.batch.episode_starts)
        look("the output of the policy, after its last layer", outputs)
    finally:
        for handle in handles:
            handle.remove()
    return "".join(found)


def _look_at_input(look: Look, title: str, _layer: nn.Module, inputs: Any) -> None:
    look(f"the input of {title}", inputs)


def _look_at_output(look: Look, title: str, _layer: nn.Module, _inputs: Any, outputs: Any) -> None:
    look(f"the output of {title}", outputs)


def _in_memory(error: NonFiniteError, trainer: "Trainer") -> str:
    _, state = _inputs(error, trainer)
    return next((f"in memory {name!r} of the policy" for name, each in state.items() if _is_broken(each)), "")


def _in_losses(error: NonFiniteError, trainer: "Trainer") -> str:
    broken = [name for name, loss in error.losses.items() if name != "total" and _is_broken(loss)]
    largest = float(trainer.rollout.rewards.abs().max())
    return f"the {broken[0]} loss, with rewards of up to {largest:g} in size" if broken else ""


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """All tensors of nested dicts and sequences, each by its name: "observation['camera']"."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _leaves(f"{name}[{i}]", inner)


def _first(tensor: Tensor) -> tuple[int, ...] | None:
    """Index of the first number that is NaN or infinite; None where all are finite."""
    if not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()):
        return None
    return tuple((~torch.isfinite(tensor)).nonzero()[0].tolist())


def _is_broken(tensor: Tensor) -> bool:
    return _first(tensor) is not None


def _whose(agent: int, trainer: "Trainer") -> str:
    each = int(trainer.vecenv.driver_env.num_agents)
    env = f" (environment {agent // each})" if each < trainer.rollout.num_agents else ""
    return f"of agent {agent}{env}"


def _save(path: Path, error: NonFiniteError, trainer: "Trainer", cause: str) -> None:
    """Write all that the failing step was computed from."""
    gradients = {name: weights.grad for name, weights in trainer.policy.named_parameters() if weights.grad is not None}
    observations, memory = _inputs(error, trainer)
    tree = {
        "policy": trainer.policy.state_dict(),
        "gradients": gradients,
        "optimizer": trainer.optimizer.state_dict(),
        "rollout": {name: getattr(trainer.rollout, name) for name in OF_ROLLOUT},
        "initial_memory": trainer.rollout.initial_state,
        "observations": observations,
        "memory": memory,
        "update": trainer.updates + 1,
        "agent_steps": trainer.agent_steps,
        "cause": cause,
    }
    tensor_file.write_tree(path, tree, {"cause": cause})
