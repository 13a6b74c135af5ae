"""Construction of environments and policy from the settings, tuned by ``autotune`` if it has run."""

import dataclasses
import math
import threading
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from gymnasium.spaces import Box

from pufferlib import registry, vector
from pufferlib.autotune.cache import SIZES
from pufferlib.env import AutoresetMode
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.legal_actions import mask_reader, unread_mask
from pufferlib.machine.commands import as_typed
from pufferlib.machine.cpus import usable_cpus
from pufferlib.machine.paths import user_path
from pufferlib.models import Policy, make_policy
from pufferlib.models.devices import is_large, pick_device, threads_kept
from pufferlib.registry.in_c import Twin
from pufferlib.registry.twins import twin_of
from pufferlib.settings.config import Config, PolicyConfig, TrainConfig, VecConfig
from pufferlib.settings.env_values import check_present
from pufferlib.spaces import MixedBox
from pufferlib.text import flag
from pufferlib.training.normalization import attach_moments, normalized
from pufferlib.vector.proxy import AnyVectorEnv
from pufferlib.vector.twins import TwinEnvs

__all__ = [
    "build_policy",
    "build_vecenv",
    "close_vecenv",
    "fit_to_agents",
    "make_vecenv",
    "pick_num_threads",
    "tunable_keywords",
    "tuned_settings",
    "twin_for",
    "warn_of_action_bounds",
    "warn_of_unread_masks",
    "with_tuned_vec",
]

_RNG_LOCK = threading.Lock()  # torch's default generator and number of threads are global to the process
MIN_HALF_WIDTH, MAX_HALF_WIDTH = 0.1, 4.0  # range of action bounds that a Gaussian policy learns well
POLICY_ARGUMENTS = ("name", "hidden_size", "num_layers", "memory", "memory_layers")  # arguments of make_policy


def close_vecenv(vecenv: AnyVectorEnv) -> None:
    """Close the environments of a run. An exception becomes a warning, so that the results are not lost."""
    try:
        vecenv.close()
    except Exception as error:
        warnings.warn(f"the environments raised in close: {type(error).__name__}: {error}", stacklevel=2)


def build_vecenv(config: Config) -> Any:
    """Make the environments of a run with ``make_vecenv``, and normalize them if the settings ask for it.

    Raises:
        UnknownNameError: There is no such environment or backend.
        APIUsageError: The environment or the backend rejects its arguments.
        BindingMissing: The package of the environment is not installed.
    """
    vecenv = make_vecenv(config)
    try:
        return normalized(vecenv, config.train)
    except BaseException:
        vecenv.close()
        raise


def make_vecenv(config: Config) -> Any:
    """Make the vector environment of a run, without normalization.

    Autoreset is "same_step" unless ``env.autoreset`` of a native environment is set. An environment that is also
    written in C, with the same results, runs there.

    Args:
        config: Settings, of which ``env``, ``vec`` and ``train.seed`` are read.

    Raises:
        UnknownNameError: There is no such environment or backend.
        APIUsageError: The environment or the backend rejects its arguments.
        BindingMissing: The package of the environment is not installed.
    """
    check_present(config.env)
    vec = config.vec
    if (twins := _in_c(config)) is not None:
        return twins
    if config.train.overlap == "envs":
        vec = _in_halves(vec)
    options: dict[str, Any] = {
        "num_workers": vec.num_workers,
        "batch_size": vec.batch_size,
        "zero_copy": vec.zero_copy,
        "overwork": vec.overwork,
        "timeout_s": vec.timeout_s or None,
        "on_crash": vec.on_crash,
        "record": user_path(vec.record) if vec.record else None,
    }
    is_chosen = "autoreset" in config.env and registry.batches_itself(config.env_name)
    if vec.backend not in ("native", "PufferEnv") and not is_chosen:
        options["autoreset"] = AutoresetMode.SAME_STEP
    return vector.make(
        registry.env_creator(config.env_name),
        env_kwargs=config.env,
        backend=vec.backend,
        num_envs=vec.num_envs,
        seed=config.train.seed,
        **options,
    )


def _in_c(config: Config) -> Any:
    """Return the environments in C that equal those of a run, or None if there are none, or settings need Python."""
    vec, train = config.vec, config.train
    if vec.record or vec.batch_size not in (None, vec.num_envs):
        return None
    if train.overlap == "envs" or train.restart_share or train.exact_resume:
        return None
    twin = twin_for(config)
    if twin is None:
        return None
    threads = 1 if vec.backend == "Serial" else vec.num_workers or "auto"
    return TwinEnvs(twin, vec.num_envs, train.seed, AutoresetMode.SAME_STEP, threads)


def twin_for(config: Config) -> Twin | None:
    """Return the environment in C that equals the one of a run, or None if there is none or the backend is another."""
    return twin_of(config.env_name, config.env) if config.vec.backend in ("Serial", "Multiprocessing") else None


def _in_halves(vec: VecConfig) -> VecConfig:
    """Return the settings with batches of half of the environments."""
    half, odd = divmod(vec.num_envs, 2)
    given = {
        "vec.backend": (vec.backend, ("Multiprocessing", "Ray")),
        "vec.num_envs": (vec.num_envs, ("an even number",) if odd else (vec.num_envs,)),
        "vec.batch_size": (vec.batch_size, (None, half)),
        "vec.zero_copy": (vec.zero_copy, (True,)),
    }
    for name, (value, fitting) in given.items():
        if value not in fitting:
            raise APIUsageError(
                "train.overlap 'envs' steps one half of the environments while the network acts for the other half: "
                f"{name} must be {' or '.join('unset' if fit is None else str(fit) for fit in fitting)}, got {value}"
            )
    return dataclasses.replace(vec, batch_size=half)


def fit_to_agents(config: TrainConfig, num_agents: int, recurrent: bool) -> TrainConfig:
    """Return the settings with automatic values (0) of horizon, minibatch size and epochs chosen for ``num_agents``.

    With many agents there are many steps. Each is used once, in large minibatches, which are fastest. With few agents
    steps are expensive. Each is used several times, in minibatches so small that an update takes about 16 gradient
    steps. Recurrent policies take about 4, with whole segments as minibatches, because the steps of a segment are
    computed one after the other.
    """
    horizon = config.horizon or max(64, 1 << (1023 // num_agents).bit_length())
    batch_size = horizon * num_agents
    if recurrent:
        size = horizon * _divisor(num_agents, min(max(num_agents // 16, 2), 8192 // horizon))
    else:
        size = _divisor(batch_size, min(max(batch_size // 16, 64), 8192))
    epochs = 1 if config.minibatch_size else min(max(16_384 // batch_size, 1), 10)
    epochs = config.update_epochs or epochs
    size = min(config.minibatch_size or size, batch_size)
    _check_accumulation(config.accumulate_minibatches, batch_size, size)
    if config.lr_schedule == "adaptive":
        _check_adaptive_rate(config, epochs * math.ceil(batch_size / (size * config.accumulate_minibatches)))
    if config.norm_adv and size * config.accumulate_minibatches == 1:
        raise APIUsageError(
            "train.norm_adv subtracts the mean advantage of a minibatch, which leaves nothing to learn from in a "
            f"minibatch of one step; got train.minibatch_size {size} with {batch_size} steps per update; raise "
            "train.minibatch_size or train.horizon, or set train.norm_adv to false"
        )
    return dataclasses.replace(
        config,
        horizon=horizon,
        minibatch_size=size,
        update_epochs=epochs,
    )


def _check_adaptive_rate(config: TrainConfig, gradient_steps: int) -> None:
    if config.target_kl == 0:
        raise APIUsageError(
            "train.lr_schedule 'adaptive' needs the KL divergence that updates should have: train.target_kl must be "
            "above 0, got 0; for example 0.01"
        )
    if gradient_steps == 1 and config.overlap != "learning":
        raise APIUsageError(
            "train.lr_schedule 'adaptive' measures how far the policy moves during an update, which must have more "
            "than one gradient step, got 1; raise train.update_epochs, or lower train.minibatch_size"
        )


def _check_accumulation(wanted: int, batch_size: int, minibatch_size: int) -> None:
    count = batch_size // minibatch_size
    if batch_size % minibatch_size == 0 and count % wanted:
        fits = [number for number in range(1, count + 1) if count % number == 0]
        near = [number for number in fits if number < wanted][-1:] + [number for number in fits if number > wanted][:1]
        raise APIUsageError(
            f"train.accumulate_minibatches must divide the number of minibatches, horizon * agents / "
            f"train.minibatch_size = {batch_size} / {minibatch_size} = {count}, got {wanted}; "
            f"try {' or '.join(map(str, near))}"
        )


def _divisor(number: int, wanted: int) -> int:
    """Return the largest divisor of ``number`` up to ``wanted``, or the next one if it is below ``wanted / 4``."""
    small = [part for part in range(1, math.isqrt(number) + 1) if number % part == 0]
    divisors = sorted({*small, *(number // part for part in small)})
    below = max(part for part in divisors if part <= max(wanted, 1))
    return below if 4 * below >= wanted else min((part for part in divisors if part > below), default=below)


def pick_num_threads(policy: Policy) -> int:
    """Return a number of torch's CPU threads for learning that suits the network.

    Threads wait for each other in every operation. If operations take milliseconds, as in NatureCNN, this costs little,
    even when other processes delay a thread. If they take microseconds, one late thread delays all others, and learning
    becomes many times slower. The choice depends only on the network and the machine, not on the load, because results
    can depend on it.
    """
    return usable_cpus() if is_large(policy) else 1


def build_policy(config: Config, vecenv: Any) -> Policy:
    """Make the policy of a run, on its device, in evaluation mode.

    The initial weights depend only on ``train.seed``. The number of cores and other training threads do not matter.

    Raises:
        UnknownNameError: There is no such policy.
        APIUsageError: The policy does not support the observations or an option.
    """
    with _RNG_LOCK, torch.random.fork_rng(devices=[]), threads_kept():
        torch.set_num_threads(1)  # the last bits of orthogonal weights, from a QR decomposition, depend on it
        torch.manual_seed(config.train.seed)
        settings, name = config.policy, config.policy.name
        policy = make_policy(
            vecenv.driver_env,
            registry.load_object("policy.name", name, (Policy,)) if registry.is_object_name(name) else name,
            settings.hidden_size,
            settings.num_layers,
            settings.memory,
            settings.memory_layers,
            more=registry.policies(config.env_name),
            **_policy_options(settings),
        )
    attach_moments(policy, vecenv)
    policy.distribution.rescale(config.train.rescale_actions)
    return policy.to(pick_device(config.train.device)).eval()


def _policy_options(settings: PolicyConfig) -> dict[str, Any]:
    """Return the settings of the policy class that differ from their defaults. Not every class takes all of them."""
    options = [field for field in dataclasses.fields(settings) if field.name not in POLICY_ARGUMENTS]
    return {field.name: value for field in options if (value := getattr(settings, field.name)) != field.default}


def warn_of_action_bounds(vecenv: AnyVectorEnv) -> None:
    """Warn if bounds of continuous actions are far from -1 and 1. A Gaussian policy learns such actions slowly.

    The policy starts with mean 0 and standard deviation 1 in the units of the actions, and moves in steps of that size.
    """
    space = vecenv.single_action_space
    if not isinstance(space, Box) or not np.issubdtype(space.dtype, np.floating):
        return
    is_bounded = np.isfinite(space.low) & np.isfinite(space.high)
    if isinstance(space, MixedBox):
        is_bounded &= ~space.is_integer
    low, high = (np.where(is_bounded, bound, 0).astype(np.float64) for bound in (space.low, space.high))
    center, half = (low + high) / 2, (high - low) / 2
    is_far = is_bounded & ((half < MIN_HALF_WIDTH) | (half > MAX_HALF_WIDTH) | (np.abs(center) > half + 1))
    if is_far.any():
        first = int(np.flatnonzero(is_far)[0])
        warnings.warn(
            f"the bounds of actions should be near -1 and 1, got {low.flat[first]:g} and {high.flat[first]:g} for "
            f"action {first}: a policy starts with mean 0 and standard deviation 1, and learns other scales slowly or "
            "not at all; set train.rescale_actions to true",
            stacklevel=3,
        )


def warn_of_unread_masks(vecenv: AnyVectorEnv, policy: Policy) -> None:
    """Warn if an emulated environment has an action mask that is not used, so the policy may choose illegal actions.

    Training reads masks only from the field ``action_mask`` of the observation, not from another place in it, nor from
    the method ``action_masks`` of sb3-contrib.
    """
    if not vecenv.emulated or mask_reader(vecenv) is not None or type(policy).action_mask is not Policy.action_mask:
        return
    if unread := unread_mask(vecenv):
        warnings.warn(f"{unread}, so it is not used, and illegal actions may be chosen", stacklevel=3)
        return
    try:
        (has_masks,) = vecenv.call("has_wrapper_attr", "action_masks", env_ids=0)
    except (AttributeError, APIUsageError):  # an environment of PettingZoo, or a step is running
        return
    if has_masks:
        warnings.warn(
            "the method action_masks of the environment is not used, so illegal actions may be chosen; return the mask "
            "as the field 'action_mask' of Dict observations",
            stacklevel=3,
        )


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


def with_tuned_vec(config: Config, given: Iterable[str] = ()) -> Config:
    """Return ``config`` with the best way to batch the environments that ``autotune`` has found on this machine.

    Args:
        config: Settings.
        given: Dotted names of settings that the user has set, which must not be replaced by other values.

    Raises:
        APIUsageError: ``autotune`` has no result for this environment with these keyword arguments.
        UsageError: A setting in ``given`` would be replaced.
    """
    keywords = tunable_keywords(config)
    best = vector.tuned(registry.env_creator(config.env_name), env_kwargs=keywords, for_training=True)
    if best is None:
        flags = "".join(f" {flag(f'env.{key}', value)}" for key, value in keywords.items())
        raise APIUsageError(
            f"--vec auto: needs a result of autotune for {config.env_name} with these settings on this machine, got "
            f"none; run: {as_typed('puffer autotune', config.env_name)}{flags}"
        )
    defaults = {"vec.num_workers": None, "vec.batch_size": None, "vec.zero_copy": True}
    settings = {**defaults, **tuned_settings(config, best.kwargs)}
    before = {f"{part}.{key}": value for part in ("vec", "env") for key, value in config.as_dict()[part].items()}
    both = (name for name in given if name in settings and settings[name] != before.get(name))
    if changes := [f"{name} to {settings[name]}, got {before.get(name)}" for name in both]:
        raise UsageError(f"vec 'auto' sets {' and '.join(changes)}; leave out one of them")
    vec, env = ({key[4:]: value for key, value in settings.items() if key[:4] == part} for part in ("vec.", "env."))
    return dataclasses.replace(config, vec=dataclasses.replace(config.vec, **vec), env={**config.env, **env})
