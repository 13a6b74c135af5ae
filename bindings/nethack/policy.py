"""The network for NetHack, which the binding minihack uses too."""

from .._shared.nle import policy as shared

__all__ = ["GlyphNet"]

GlyphNet = shared.GlyphNet
