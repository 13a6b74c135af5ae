"""The network that fits: convolutions for pictures, a multilayer perceptron for numbers."""

from pufferlib.env import PufferEnv
from pufferlib.models import Default, NatureCNN, Policy

__all__ = ["Butterfly"]


def Butterfly(env: PufferEnv, hidden_size: int) -> Policy:  # noqa: N802 - named like the policies it chooses from
    """``NatureCNN`` where agents see pictures, ``Default`` where they see numbers."""
    is_picture = len(env.single_observation_space.shape) == 3
    return NatureCNN(env, hidden_size) if is_picture else Default(env, hidden_size)
