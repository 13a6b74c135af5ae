"""The network for NetHack, whose glyphs MiniHack shows too."""

from .._shared.nle import policy as shared

__all__ = ["GlyphNet"]

GlyphNet = shared.GlyphNet
