"""Policies by name."""

import functools
import inspect
from collections.abc import Callable
from types import ModuleType

import torch
from torch.nn.parameter import is_lazy

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy, ResNet
from pufferlib.models.recurrent import MEMORIES, MinGRUWrapper

__all__ = ["make_policy", "materialize"]


def make_policy(
    env: PufferEnv,
    name: str | Callable[..., Policy] = "Default",
    hidden_size: int = 128,
    num_layers: int = 2,
    memory: str = "none",
    memory_layers: int = 1,
    more: ModuleType | None = None,
) -> Policy:
    """Make the policy called ``name`` for the spaces of ``env``, with a ``memory`` or without.

    Args:
        env: The environment that describes one agent's spaces.
        name: "Default", "NatureCNN", "ResNet" or "MixedCNN", one that ``more`` exports, or a class of your own,
            which takes ``env``, and ``hidden_size`` and ``num_layers`` if it names them.
        hidden_size: Width of the hidden layers.
        num_layers: Hidden layers of "Default".
        memory: Recurrent network between the encoder and the decoder: "LSTM", "GRU", "MinGRU", or "none".
        memory_layers: Layers of "MinGRU".
        more: The policies of a binding: classes that take ``(env, hidden_size)``, listed in ``__all__``.

    Raises:
        UnknownNameError: There is no such policy or memory.
        APIUsageError: The policy cannot read the environment's observations, or a class makes no ``Policy``.
    """
    if memory not in ("none", *MEMORIES):
        raise UnknownNameError.of("make_policy", "memory", memory, ["none", *MEMORIES])
    if isinstance(name, str):
        policy = _named(env, name, hidden_size, num_layers, more)
    else:
        policy = _own(env, name, {"hidden_size": hidden_size, "num_layers": num_layers})
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
    """Give lazy modules, as ``torch.nn.LazyLinear``, their parameters, by one observation of zeros; returns ``policy``.

    Networks without lazy modules stay as they are.
    """
    if any(is_lazy(tensor) for tensor in (*policy.parameters(), *policy.buffers())):
        is_learning = policy.training
        policy.eval()  # batch normalization cannot learn from one row
        device = policy.decoder.weight.device
        with torch.no_grad():
            zeros = torch.zeros(1, *policy.observation_shape, dtype=policy.observation_dtype, device=device)
            policy.forward_eval(zeros, policy.initial_state(1, device))
        policy.train(is_learning)
    return policy


def _named(env: PufferEnv, name: str, hidden_size: int, num_layers: int, more: ModuleType | None) -> Policy:
    policies: dict[str, Callable[[], Policy]] = {
        "Default": lambda: Default(env, hidden_size, num_layers),
        "NatureCNN": lambda: NatureCNN(env, hidden_size),
        "ResNet": lambda: ResNet(env, hidden_size),
        "MixedCNN": lambda: MixedCNN(env, hidden_size),
        **{own: functools.partial(getattr(more, own), env, hidden_size) for own in getattr(more, "__all__", ())},
    }
    if name not in policies:
        raise UnknownNameError.of("make_policy", "policy", name, policies)
    return policies[name]()


def _own(env: PufferEnv, make: Callable[..., Policy], sizes: dict[str, int]) -> Policy:
    """Make a policy of a class that this library does not know."""
    if inspect.isclass(make) and not issubclass(make, Policy):
        raise _no_policy(make)
    known = inspect.signature(make).parameters
    policy = make(env, **{key: value for key, value in sizes.items() if key in known})
    if not isinstance(policy, Policy):
        raise _no_policy(policy)
    return policy


def _no_policy(made: object) -> APIUsageError:
    return APIUsageError(
        f"make_policy: a class of your own must be a pufferlib.models.Policy, got {made!r}; derive it from that, "
        "and define encode_observations"
    )
