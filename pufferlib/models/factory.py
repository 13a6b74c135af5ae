"""Policies by name."""

import functools
from collections.abc import Callable
from types import ModuleType

from pufferlib.env import PufferEnv
from pufferlib.errors import UnknownNameError
from pufferlib.models.policies import Default, MixedCNN, NatureCNN, Policy, ResNet
from pufferlib.models.recurrent import LSTMWrapper

__all__ = ["make_policy"]


def make_policy(
    env: PufferEnv,
    name: str = "Default",
    hidden_size: int = 128,
    num_layers: int = 2,
    recurrent: bool = False,
    more: ModuleType | None = None,
) -> Policy:
    """Make the policy called ``name`` for the spaces of ``env``, with an LSTM if ``recurrent``.

    Args:
        env: The environment that describes one agent's spaces.
        name: "Default", "NatureCNN", "ResNet" or "MixedCNN", or one that ``more`` exports.
        hidden_size: Width of the hidden layers.
        num_layers: Hidden layers of "Default".
        recurrent: Put an LSTM between the encoder and the decoder.
        more: The policies of a binding: classes that take ``(env, hidden_size)``, listed in ``__all__``.

    Raises:
        UnknownNameError: There is no such policy.
        APIUsageError: The policy cannot read the environment's observations.
    """
    policies: dict[str, Callable[[], Policy]] = {
        "Default": lambda: Default(env, hidden_size, num_layers),
        "NatureCNN": lambda: NatureCNN(env, hidden_size),
        "ResNet": lambda: ResNet(env, hidden_size),
        "MixedCNN": lambda: MixedCNN(env, hidden_size),
        **{own: functools.partial(getattr(more, own), env, hidden_size) for own in getattr(more, "__all__", ())},
    }
    if name not in policies:
        raise UnknownNameError.of("make_policy", "policy", name, policies)
    policy = policies[name]()
    return LSTMWrapper(env, policy, hidden_size, hidden_size) if recurrent else policy
