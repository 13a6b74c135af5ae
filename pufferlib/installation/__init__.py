"""Extras of this package, ``puffer install`` and ``puffer doctor``."""
