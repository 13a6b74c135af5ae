"""Environments in C, which ``puffer`` finds through the entry point of this package."""

from pathlib import Path

import pufferlib


def register() -> None:
    """Register each C file in this folder under its name, such as ``mygames/coin``."""
    for source in sorted(Path(__file__).parent.glob("*.c")):
        pufferlib.register(f"mygames/{source.stem}", str(source))
