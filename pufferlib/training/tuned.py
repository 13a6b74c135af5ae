"""Settings from the results of ``autotune``."""

import dataclasses
from typing import Any

from pufferlib import registry, vector
from pufferlib.autotune.cache import SIZES
from pufferlib.errors import APIUsageError
from pufferlib.machine.commands import as_typed
from pufferlib.text import flag
from pufferlib.training.config import Config

__all__ = ["tunable_keywords", "tuned_settings", "with_tuned_vec"]


def tunable_keywords(config: Config) -> dict[str, Any]:
    """Return the keyword arguments of the environment that stay constant while it is tuned."""
    if not registry.batches_itself(config.env_name):
        return dict(config.env)  # here, keyword arguments with these names belong to the environment
    return {key: value for key, value in config.env.items() if key not in (*SIZES, "autoreset")}


def tuned_settings(config: Config, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that correspond to ``vector.make(env_creator, **kwargs)`` for the environment of ``config``.

    Returns:
        Settings by dotted name, such as ``{"vec.backend": "Serial", "env.num_envs": 1}``.
    """
    own = kwargs.get("env_kwargs", {})
    sizes = {key: own.get(key, 1) for key in SIZES if key in own or key in config.env}
    vec = {key: value for key, value in kwargs.items() if key not in ("env_args", "env_kwargs")}
    return {f"vec.{key}": value for key, value in vec.items()} | {f"env.{key}": value for key, value in sizes.items()}


def with_tuned_vec(config: Config) -> Config:
    """Return ``config`` with the fastest way to batch the environments that ``autotune`` has found on this machine.

    Raises:
        APIUsageError: ``autotune`` has no result for this environment with these keyword arguments.
    """
    keywords = tunable_keywords(config)
    best = vector.tuned(registry.env_creator(config.env_name), env_kwargs=keywords)
    if best is None:
        flags = "".join(f" {flag(f'env.{key}', value)}" for key, value in keywords.items())
        raise APIUsageError(
            f"--vec auto: needs a result of autotune for {config.env_name} with these settings on this machine, got "
            f"none; run: {as_typed('puffer autotune', config.env_name)}{flags}"
        )
    settings = tuned_settings(config, best.kwargs)
    vec, env = ({key[4:]: value for key, value in settings.items() if key[:4] == part} for part in ("vec.", "env."))
    defaults = {"num_workers": None, "batch_size": None, "zero_copy": True}
    return dataclasses.replace(
        config, vec=dataclasses.replace(config.vec, **{**defaults, **vec}), env={**config.env, **env}
    )
