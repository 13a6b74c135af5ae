"""Viewers over what ``render()`` returns: uint8 ``(height, width, 3)`` frames."""
