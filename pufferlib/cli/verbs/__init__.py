"""Verbs of ``puffer``, one module each: they parse and print."""
