"""Choice of a network: convolutions for images, a multilayer perceptron for numbers."""

from pufferlib.env import HasSpaces
from pufferlib.models import Default, NatureCNN, Policy

__all__ = ["Butterfly"]


def Butterfly(env: HasSpaces, hidden_size: int) -> Policy:  # noqa: N802 - named like the policies it chooses from
    """Return ``NatureCNN`` for image observations, and ``Default`` for numbers."""
    is_picture = len(env.single_observation_space.shape) == 3
    return NatureCNN(env, hidden_size) if is_picture else Default(env, hidden_size)
