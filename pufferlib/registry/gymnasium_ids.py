"""Registration of Ocean environments with Gymnasium, as ``puffer/breakout``, for ``make`` and ``make_vec``."""

from pathlib import Path

import gymnasium

__all__ = ["NAMESPACE", "register_ids"]

NAMESPACE = "puffer"


def register_ids() -> None:
    """Register all C environments of Ocean with Gymnasium, without loading them. Repeated calls do nothing."""
    for settings in sorted((Path(__file__).parents[1] / "ocean").glob("[!_]*/train.toml")):
        name = settings.parent.name
        if f"{NAMESPACE}/{name}" not in gymnasium.registry and list(settings.parent.glob("*.c")):
            gymnasium.register(
                f"{NAMESPACE}/{name}",
                entry_point="pufferlib.frameworks.gymnasium:GameEnv",
                vector_entry_point="pufferlib.frameworks.gymnasium:make_vector_env",
                kwargs={"name": name},
            )
