"""Policy network for MiniHack, shared with the binding nethack."""

from .._shared.nle import policy as shared

__all__ = ["GlyphNet"]

GlyphNet = shared.GlyphNet
