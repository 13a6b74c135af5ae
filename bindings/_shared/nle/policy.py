"""GlyphNet: a network that reads NetHack's map as a person does, all of it and around the hero."""

import torch
from torch import Tensor, nn

from pufferlib.env import PufferEnv
from pufferlib.errors import APIUsageError
from pufferlib.models import Policy, layer_init
from pufferlib.pytorch import nativize_dtype, nativize_tensor

__all__ = ["GlyphNet"]

NUM_GLYPHS = 5977  # nle's MAX_GLYPH, which stands for "nothing", and all below it
ROWS = 21
COLUMNS = 79
GLYPH_WIDTH = 16
CHANNELS = 32
REACH = 4  # squares seen each way around the hero in the second view
NUM_STATS = 27
LETTERS = 64  # the beginning of the message, which tells most
LETTER_WIDTH = 8


class GlyphNet(Policy):
    """Glyphs become vectors that are learned; one convolutional network sees the map, one the hero's surroundings.

    The idea is that of the baseline of "The NetHack Learning Environment" (Küttler et al., 2020):
    embedded glyphs, a view of everything and one from the hero's place, the bottom line beside them.

    Args:
        env: Its observations have ``glyphs`` and ``blstats``, and may have ``message``; others are not read.
        hidden_size: Width of the layer in which all comes together.
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
        """See ``Policy``."""
        fields = nativize_tensor(observations, self.structure)
        glyphs, stats = fields["glyphs"].int(), fields["blstats"]
        views = [
            self.whole_map(self._pictures(glyphs)),
            self.surroundings(self._pictures(_around(glyphs, stats[:, 0], stats[:, 1]))),
            self.stats(_compressed(stats)),
        ]
        if self.letters is not None:
            views.append(self.letters(fields["message"][:, :LETTERS].int()).flatten(1))
        hidden: Tensor = self.encoder(torch.cat(views, -1))
        return hidden

    def _pictures(self, glyphs: Tensor) -> Tensor:
        """``(rows, height, width)`` glyphs to ``(rows, GLYPH_WIDTH, height, width)``, channels last in memory."""
        pictures: Tensor = self.glyphs(glyphs)
        return pictures.permute(0, 3, 1, 2)


def _convolutions(channels: int, strides: tuple[int, ...]) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for stride in strides:
        layers += [layer_init(nn.Conv2d(channels, CHANNELS, 3, stride, padding=1)), nn.ReLU(inplace=True)]
        channels = CHANNELS
    return layers


def _around(glyphs: Tensor, column: Tensor, row: Tensor) -> Tensor:
    """The squares up to REACH away from the hero: ``(n, 2 * REACH + 1, 2 * REACH + 1)``."""
    padded = nn.functional.pad(glyphs, (REACH,) * 4, value=NUM_GLYPHS - 1)
    window = torch.arange(2 * REACH + 1, device=glyphs.device)
    rows = row.clamp(0, ROWS - 1)[:, None, None] + window[:, None]
    columns = column.clamp(0, COLUMNS - 1)[:, None, None] + window
    return padded[torch.arange(len(glyphs), device=glyphs.device)[:, None, None], rows, columns]


def _compressed(stats: Tensor) -> Tensor:
    """Numbers of any size, small ones still apart: sign(x) log(1 + |x|)."""
    real = stats.float()
    return real.sign() * real.abs().log1p()
