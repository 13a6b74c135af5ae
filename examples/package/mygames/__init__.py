"""Environments in C, which ``puffer`` finds by the entry point of this package."""

from pathlib import Path

import pufferlib


def register() -> None:
    """Give each C file beside this one a name: ``mygames/coin``."""
    for source in sorted(Path(__file__).parent.glob("*.c")):
        pufferlib.register(f"mygames/{source.stem}", str(source))
