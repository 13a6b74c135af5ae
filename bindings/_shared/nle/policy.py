"""GlyphNet: a network that reads the whole NetHack map and the hero's surroundings."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init
from pufferlib.pytorch import nativize_dtype, nativize_tensor

__all__ = ["GlyphNet"]

NUM_GLYPHS = 5977  # all glyphs up to nle's MAX_GLYPH, which means "nothing"
ROWS = 21
COLUMNS = 79
GLYPH_WIDTH = 16
CHANNELS = 32
REACH = 4  # radius of the view around the hero, in squares
NUM_STATS = 27
LETTERS = 64  # only the start of the message is read, which is the most informative part
LETTER_WIDTH = 8


class GlyphNet(Policy):
    """Embedded glyphs with two convolutional networks: one for the whole map, one for the hero's surroundings.

    The idea follows the baseline of "The NetHack Learning Environment" (Küttler et al., 2020): embedded glyphs, a view
    of the whole map and one around the hero, and the numbers of the bottom line.

    Args:
        env: Environment whose observations have ``glyphs`` and ``blstats``, and optionally ``message``. Other fields
            are ignored.
        hidden_size: Width of the layer that joins all features.
    """

    def __init__(self, env: PufferEnv, hidden_size: int = 256) -> None:
        super().__init__(env, hidden_size)
        self.structure = nativize_dtype(env.emulated) if env.emulated else {}
        fields = self.structure if isinstance(self.structure, dict) else {}
        if not {"glyphs", "blstats"} <= fields.keys():
            raise APIUsageError(
                f"GlyphNet: observations must have glyphs and blstats, got {', '.join(fields) or 'an array'}; "
                "add them to env.observation_keys, or use policy.name = 'Default'"
            )
        self.reads_message = "message" in fields
        self.glyphs = nn.Embedding(NUM_GLYPHS, GLYPH_WIDTH)
        self.whole_map = nn.Sequential(*_convolutions(GLYPH_WIDTH, strides=(2, 2, 2)), nn.Flatten())
        self.surroundings = nn.Sequential(*_convolutions(GLYPH_WIDTH, strides=(1, 2)), nn.Flatten())
        self.stats = nn.Sequential(layer_init(nn.Linear(NUM_STATS, 64)), nn.ReLU(inplace=True))
        self.letters = nn.Embedding(256, LETTER_WIDTH) if self.reads_message else None
        size = 3 * 10 * CHANNELS + 5 * 5 * CHANNELS + 64 + self.reads_message * LETTERS * LETTER_WIDTH
        self.encoder = nn.Sequential(layer_init(nn.Linear(size, hidden_size)), nn.ReLU(inplace=True))

    def encode_observations(self, observations: Tensor) -> Tensor:
        """Encode ``(rows, *observation shape)`` to ``(rows, hidden_size)``."""
        fields = nativize_tensor(observations, self.structure)
        glyphs, stats = fields["glyphs"].int(), fields["blstats"]
        views = [
            self.whole_map(self._embedded(glyphs)),
            self.surroundings(self._embedded(_around(glyphs, stats[:, 0], stats[:, 1]))),
            self.stats(_compressed(stats)),
        ]
        if self.letters is not None:
            views.append(self.letters(fields["message"][:, :LETTERS].int()).flatten(1))
        hidden: Tensor = self.encoder(torch.cat(views, -1))
        return hidden

    def _embedded(self, glyphs: Tensor) -> Tensor:
        """Embed glyphs ``(rows, height, width)`` to ``(rows, GLYPH_WIDTH, height, width)``, channels last in memory."""
        pictures: Tensor = self.glyphs(glyphs)
        return pictures.permute(0, 3, 1, 2)


def _convolutions(channels: int, strides: tuple[int, ...]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for stride in strides:
        layers += [layer_init(nn.Conv2d(channels, CHANNELS, 3, stride, padding=1)), nn.ReLU(inplace=True)]
        channels = CHANNELS
    return layers


def _around(glyphs: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """Return the squares up to REACH away from the hero: ``(n, 2 * REACH + 1, 2 * REACH + 1)``."""
    padded = nn.functional.pad(glyphs, (REACH,) * 4, value=NUM_GLYPHS - 1)
    window = torch.arange(2 * REACH + 1, device=glyphs.device)
    rows = row.clamp(0, ROWS - 1)[:, None, None] + window[:, None]
    columns = column.clamp(0, COLUMNS - 1)[:, None, None] + window
    return padded[torch.arange(len(glyphs), device=glyphs.device)[:, None, None], rows, columns]


def _compressed(stats: Tensor) -> Tensor:
    """Compress numbers of any size to sign(x) log(1 + |x|), which keeps small numbers distinguishable."""
    real = stats.float()
    return real.sign() * real.abs().log1p()
