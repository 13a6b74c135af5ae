"""Policy network for NetHack, shared with the binding minihack."""

from .._shared.nle import policy as shared

__all__ = ["GlyphNet"]

GlyphNet = shared.GlyphNet
