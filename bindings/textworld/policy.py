"""Policy network that reads words and chooses among commands."""

import torch
from torch import Tensor, nn

from pufferlib.env import HasSpaces
from pufferlib.models import Policy, layer_init
from pufferlib.pytorch import nativize_dtype, nativize_tensor

__all__ = ["TextPolicy"]

_NO_COMMAND_SCORE = -1e9  # score of a row without a command


class TextPolicy(Policy):
    """Scores each command by comparing its embedding with the embedding of the text. Both are means over words.

    Args:
        env: Environment of this binding.
        hidden_size: Width of the word embeddings and all layers.
    """

    def __init__(self, env: HasSpaces, hidden_size: int = 128) -> None:
        super().__init__(env, hidden_size)
        del self.decoder  # actions are scored one by one
        self._structure = nativize_dtype(env.emulated)
        vocabulary = int(env.emulated["observation_bounds"]["text"][1]) + 1
        self.words = nn.Embedding(vocabulary, hidden_size, padding_idx=0)
        self.text = nn.Sequential(
            layer_init(nn.Linear(hidden_size, hidden_size)),
            nn.ReLU(inplace=True),
            layer_init(nn.Linear(hidden_size, hidden_size)),
        )
        self.command = layer_init(nn.Linear(hidden_size, hidden_size))
        self.value = layer_init(nn.Linear(hidden_size, 1), std=1.0)

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Return the text embedding followed by the scores of the commands, ``(rows, hidden_size + commands)``."""
        fields = nativize_tensor(observations, self._structure)
        text = self.text(self._meaning(fields["text"]))
        commands = self.command(self._meaning(fields["commands"]))
        scores = (commands @ text.unsqueeze(-1)).squeeze(-1) / self.hidden_size
        is_command = fields["commands"][..., 0] != 0
        return torch.cat([text, scores.masked_fill(~is_command, _NO_COMMAND_SCORE)], -1)

    def decode_actions(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the scores as logits, and the value."""
        text, scores = hidden[..., : self.hidden_size], hidden[..., self.hidden_size :]
        return scores, self.value(text.relu()).squeeze(-1)

    def _meaning(self, words: Tensor) -> Tensor:
        """Return the mean embedding of the words, ``(..., words)`` to ``(..., hidden_size)``. Word 0 is ignored."""
        words = words.long()
        count = (words != 0).sum(-1, keepdim=True).clamp(min=1)
        meaning: Tensor = self.words(words).sum(-2) / count
        return meaning
