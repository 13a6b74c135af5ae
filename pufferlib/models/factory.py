"""Creation of policies by name."""

import inspect
from collections.abc import Callable
from types import ModuleType
from typing import Any, Literal, overload

import torch
from torch.nn.parameter import is_lazy

from pufferlib.env import HasSpaces
from pufferlib.errors import APIUsageError, UnknownNameError, UsageError
from pufferlib.models.image_policies import MixedCNN, NatureCNN, ResNet
from pufferlib.models.policies import Default, Policy
from pufferlib.models.recurrent import MEMORIES, LSTMWrapper, MinGRUWrapper

__all__ = ["make_policy", "materialize", "no_policy"]


@overload
def make_policy(
    env: HasSpaces,
    name: str | Callable[..., Policy] = "Default",
    hidden_size: int = 128,
    num_layers: int = 2,
    *,
    memory: Literal["LSTM"],
    memory_layers: int = 1,
    more: ModuleType | None = None,
    **options: Any,
) -> LSTMWrapper: ...
@overload
def make_policy(
    env: HasSpaces,
    name: str | Callable[..., Policy] = "Default",
    hidden_size: int = 128,
    num_layers: int = 2,
    memory: str = "none",
    memory_layers: int = 1,
    more: ModuleType | None = None,
    **options: Any,
) -> Policy: ...
def make_policy(
    env: HasSpaces,
    name: str | Callable[..., Policy] = "Default",
    hidden_size: int = 128,
    num_layers: int = 2,
    memory: str = "none",
    memory_layers: int = 1,
    more: ModuleType | None = None,
    **options: Any,
) -> Policy:
    """Make a policy for the spaces of ``env``, optionally with a recurrent memory.

    Args:
        env: Environment that describes one agent's spaces.
        name: "Default", "NatureCNN", "ResNet" or "MixedCNN", the name of a policy in ``more``, or your own class. A
            class is called with ``env``, and with ``hidden_size`` and ``num_layers`` if its signature has them.
        hidden_size: Width of the hidden layers.
        num_layers: Number of hidden layers of "Default".
        memory: Recurrent network between encoder and decoder: "LSTM", "GRU", "MinGRU", or "none".
        memory_layers: Number of layers of "MinGRU".
        more: Module with the policies of a binding: classes that take ``(env, hidden_size)``, listed in ``__all__``.
        **options: More keyword arguments for the class, such as ``activation="tanh"`` for "Default".

    Raises:
        UnknownNameError: The policy or memory does not exist.
        APIUsageError: The observations are empty, the policy does not support them or an option, or the class does not
            make a ``Policy``.
    """
    if memory not in ("none", *MEMORIES):
        raise UnknownNameError.of("make_policy", "memory", memory, ["none", *MEMORIES])
    if 0 in env.single_observation_space.shape:
        raise APIUsageError(
            "make_policy: the environment's observation must have at least one number, got "
            f"{env.single_observation_space}; return a constant, for example, if there is nothing to observe"
        )
    if 0 in (env.single_action_space.shape or ()):
        raise APIUsageError(
            f"make_policy: the environment's action must have at least one number, got {env.single_action_space}"
        )
    make = _find(name, more) if isinstance(name, str) else name
    policy = _make(env, make, {"hidden_size": hidden_size, "num_layers": num_layers}, options)
    materialize(policy)
    if memory == "none":
        return policy
    sizes = policy.hidden_size, policy.hidden_size
    return (
        MinGRUWrapper(env, policy, *sizes, memory_layers)
        if memory == "MinGRU"
        else MEMORIES[memory](env, policy, *sizes)
    )


def materialize(policy: Policy) -> Policy:
    """Initialize lazy modules like ``torch.nn.LazyLinear`` with an observation of zeros, and return ``policy``.

    Networks without lazy modules are not changed.
    """
    if any(is_lazy(tensor) for tensor in (*policy.parameters(), *policy.buffers())):
        is_learning = policy.training
        policy.eval()  # batch normalization cannot train on a single row
        device = policy.decoder.weight.device
        with torch.no_grad():
            zeros = torch.zeros(1, *policy.observation_shape, dtype=policy.observation_dtype, device=device)
            policy.forward_eval(zeros, policy.initial_state(1, device))
        policy.train(is_learning)
    return policy


def _find(name: str, more: ModuleType | None) -> Callable[..., Policy]:
    """Return the policy class called ``name``."""
    policies: dict[str, Callable[..., Policy]] = {
        **{policy.__name__: policy for policy in (Default, NatureCNN, ResNet, MixedCNN)},
        **{own: getattr(more, own) for own in getattr(more, "__all__", ())},
    }
    if name not in policies:
        raise UnknownNameError.of("make_policy", "policy", name, policies)
    return policies[name]


def _make(env: HasSpaces, make: Callable[..., Policy], sizes: dict[str, Any], options: dict[str, Any]) -> Policy:
    """Call a policy class with those of ``sizes`` that it takes, and with all ``options``."""
    if inspect.isclass(make) and not issubclass(make, Policy):
        raise no_policy("make_policy: a class of your own", make)
    known = inspect.signature(make).parameters
    if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values()):
        for option, value in options.items():
            if option not in known:
                options_of_ours = {**inspect.signature(Default).parameters, **inspect.signature(NatureCNN).parameters}
                taken = [name for name in options_of_ours if name in known and name != "env"]
                raise UsageError(
                    f"make_policy: the policy {getattr(make, '__name__', make)} does not take the option {option}, got "
                    f"{value!r}; it takes {', '.join(taken) or 'no options'}; remove policy.{option}, or use "
                    "policy.name = 'Default'"
                )
    policy = make(env, **{key: value for key, value in sizes.items() if key in known}, **options)
    if not isinstance(policy, Policy):
        raise no_policy("make_policy: a class of your own", policy)
    return policy


def no_policy(where: str, made: object) -> APIUsageError:
    """Return the error for an object in place of a policy."""
    return APIUsageError(
        f"{where} must be a pufferlib.models.Policy, got {made!r}; derive it from that, and define encode_observations"
    )
