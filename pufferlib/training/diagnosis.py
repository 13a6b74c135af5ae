"""Diagnosis of NaN and infinity in training: find the first tensor, layer or observation field that contains one.

Nothing here runs until the regular checks of acting and learning have found a value that is not finite.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from pufferlib.errors import PufferError
from pufferlib.models import State
from pufferlib.pytorch import nativize_dtype, nativize_tensor
from pufferlib.runs import tensor_file
from pufferlib.runs.folder import Run
from pufferlib.training.callbacks import TrainerView

__all__ = ["NonFiniteError", "explain"]

MAX_LOG_STD = 15.0  # float32 can hold the squares of standard deviations from e^-15 to e^15
OF_ROLLOUT = ("observations", "actions", "rewards", "values", "log_probs", "masks", "episode_starts", "episode_ends")


class NonFiniteError(PufferError):
    """NaN or infinity in training.

    Args:
        message: Description of the value that must be finite.
        observations: Observations that the policy received: ``(rows, ...)`` while acting, ``(steps, rows, ...)`` while
            learning.
        state: Memory of the policy at that time.
        agents: Agent of each row, while acting.
        episode_starts: Starts of episodes, ``(steps, rows)``. None without memory, and while acting.
        losses: Losses by name, while learning.
    """

    def __init__(
        self,
        message: str,
        observations: Tensor,
        state: State,
        agents: npt.NDArray[np.int64] | None = None,
        episode_starts: Tensor | None = None,
        losses: Mapping[str, Tensor] | None = None,
    ) -> None:
        super().__init__(message)
        self.observations, self.state, self.agents = observations, state, agents
        self.episode_starts, self.losses = episode_starts, losses


def explain(error: NonFiniteError, trainer: TrainerView) -> PufferError:
    """Return an error that names the first NaN or infinity. All tensors are saved beside the checkpoints."""
    cause = _cause(error, trainer)
    path = Run.at(trainer.run_dir).inspection
    try:
        _save(path, error, trainer, cause)
        kept = f"its tensors are in {path}"
    except OSError as failure:
        kept = f"its tensors could not be saved in {path} ({failure.strerror})"
    return PufferError(f"{error}. In update {trainer.updates + 1} the first was {cause}; {kept}")


def _cause(error: NonFiniteError, trainer: TrainerView) -> str:
    """Describe the first tensor with a NaN or infinity, in the order in which tensors are computed from each other.

    Steps in the text are steps of the rollout.
    """
    return (
        _in_observations(error, trainer)
        or _in_rewards(trainer)
        or _in_parameters(trainer.policy)
        or _in_layers(trainer.policy, error)
        or _in_memory(error)
        or _in_deviations(trainer.policy)
        or _in_losses(error, trainer)
        or "not found: computing the step again gives finite numbers"
    )


def _in_observations(error: NonFiniteError, trainer: TrainerView) -> str:
    rollout, env = trainer.rollout, trainer.vecenv.driver_env
    structure = nativize_dtype(env.emulated) if env.emulated else None
    batches: list[tuple[str, Tensor, Any]] = [
        (f"step {t}", rows, range(rollout.num_agents)) for t, rows in enumerate(rollout.observations)
    ]
    if error.agents is not None:
        batches.append(("the latest step", error.observations, error.agents))
    for when, rows, agents in batches:
        fields = rows if structure is None else nativize_tensor(rows.contiguous(), structure)
        for name, field in _leaves("observation", fields):
            if (index := _first(field)) is not None:
                row, *place = index
                at = str(place) if place else ""
                return f"{name}{at} = {field[index].item()} {_agent_text(int(agents[row]), trainer)}, in {when}"
    return ""


def _in_rewards(trainer: TrainerView) -> str:
    index = _first(trainer.rollout.rewards)
    if index is None:
        return ""
    (step, agent), value = index, trainer.rollout.rewards[index].item()
    ended = "; or the last observation of its episode, which ended there" if trainer.rollout.episode_ends[index] else ""
    return f"the reward {value} {_agent_text(agent, trainer)}, in step {step}{ended}"


def _in_parameters(policy: nn.Module) -> str:
    for name, parameter in policy.named_parameters():
        if _is_broken(parameter.detach()):
            with_gradient = parameter.grad is not None and _is_broken(parameter.grad)
            return f"in parameter {name}{', and in its gradient, by a gradient step before' if with_gradient else ''}"
    # An infinite buffer may be intended, as in a causal mask.
    return next((f"in buffer {name}" for name, buffer in policy.named_buffers() if bool(buffer.isnan().any())), "")


def _in_layers(policy: nn.Module, error: NonFiniteError) -> str:
    """Run the policy again, and check the inputs and outputs of each layer."""
    found: list[str] = []

    def look(what: str, tensors: Any) -> None:
        if not found and any(_is_broken(tensor) for _, tensor in _leaves("", tensors)):
            found.append(what)

    handles = []
    for name, layer in policy.named_modules():
        title = f"layer {name} ({type(layer).__name__})"
        if name:
            handles += [
                layer.register_forward_pre_hook(lambda _, inputs, title=title: look(f"the input of {title}", inputs)),
                layer.register_forward_hook(
                    lambda _, __, outputs, title=title: look(f"the output of {title}", outputs)
                ),
            ]
    state = {key: memory.detach().clone().nan_to_num_(0.0, 0.0, 0.0) for key, memory in error.state.items()}
    try:
        with torch.no_grad():
            if error.losses is None:
                outputs = policy.forward_eval(error.observations, state)  # type: ignore[operator]
            else:
                outputs = policy(error.observations, state, error.episode_starts)
        look("the output of the policy, after its last layer", outputs)
    finally:
        for handle in handles:
            handle.remove()
    return "".join(found)


def _in_memory(error: NonFiniteError) -> str:
    return next((f"in memory {name!r} of the policy" for name, each in error.state.items() if _is_broken(each)), "")


def _in_deviations(policy: nn.Module) -> str:
    """Describe a standard deviation of continuous actions that left the range of float32, or nearly did."""
    for name, parameter in policy.named_parameters():
        if name.rpartition(".")[2] == "log_std":
            largest = parameter.detach().flatten()[parameter.detach().abs().argmax()].item()
            if abs(largest) > MAX_LOG_STD:
                return (
                    f"after {name} reached {largest:.4g}: the logarithm of the standard deviation of the actions "
                    "diverged; set train.ent_coef near 0 and lower train.learning_rate to prevent that"
                )
    return ""


def _in_losses(error: NonFiniteError, trainer: TrainerView) -> str:
    losses = error.losses or {}
    broken = sorted((name for name, loss in losses.items() if _is_broken(loss)), key="total".__eq__)  # total at the end
    reward, value = (float(part.abs().max()) for part in (trainer.rollout.rewards, trainer.rollout.values))
    return f"the {broken[0]} loss, with rewards of up to {reward:g} in size, values of {value:g}" if broken else ""


def _leaves(name: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield all tensors of nested dicts and sequences with their names, such as "observation['camera']"."""
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{name}[{key!r}]", inner)
    elif isinstance(value, list | tuple):
        for i, inner in enumerate(value):
            yield from _leaves(f"{name}[{i}]", inner)


def _first(tensor: Tensor) -> tuple[int, ...] | None:
    """Return the index of the first number that is NaN or infinite, or None if all are finite."""
    if not tensor.is_floating_point() or bool(torch.isfinite(tensor).all()):
        return None
    return tuple((~torch.isfinite(tensor)).nonzero()[0].tolist())


def _is_broken(tensor: Tensor) -> bool:
    return _first(tensor) is not None


def _agent_text(agent: int, trainer: TrainerView) -> str:
    each = int(trainer.vecenv.driver_env.num_agents)
    env = f" (environment {agent // each})" if each < trainer.rollout.num_agents else ""
    return f"of agent {agent}{env}"


def _save(path: Path, error: NonFiniteError, trainer: TrainerView, cause: str) -> None:
    """Write all inputs of the failing step."""
    gradients = {name: weights.grad for name, weights in trainer.policy.named_parameters() if weights.grad is not None}
    tree = {
        "policy": trainer.policy.state_dict(),
        "gradients": gradients,
        "optimizer": trainer.optimizer.state_dict(),
        "rollout": {name: getattr(trainer.rollout, name) for name in OF_ROLLOUT},
        "initial_memory": trainer.rollout.initial_state,
        "observations": error.observations,
        "memory": error.state,
        "update": trainer.updates + 1,
        "agent_steps": trainer.agent_steps,
        "cause": cause,
    }
    tensor_file.write_tree(path, tree, {"cause": cause})
