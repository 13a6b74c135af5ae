"""Verbs of ``puffer``, with one module each for argument parsing and output."""
