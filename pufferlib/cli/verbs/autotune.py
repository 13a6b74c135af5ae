"""``puffer autotune``: find the fastest way to run an environment on this machine."""

import dataclasses
import json
from typing import Any

from pufferlib import registry
from pufferlib.cli.console import progress, say, style
from pufferlib.cli.options import Parser, split_env, typed
from pufferlib.machine.commands import as_typed
from pufferlib.settings.config import Config, load_config
from pufferlib.text import flag
from pufferlib.training.build import tunable_keywords, tuned_settings
from pufferlib.vector import EnvProfile, TunedConfig, autotune

__all__ = ["run"]

PROG = "puffer autotune"
ABOUT = """Measure different ways to run an environment on this machine, and rank them. Set arguments of the
environment with flags: puffer autotune squared --env.size 7. The results are cached. puffer train ENV --vec auto
uses the configuration with the fewest environments among the fast ones."""
MIB = 1 << 20
BATCH = 64


def run(argv: list[str]) -> int:
    """Measure the environment in ``argv``, and print the configurations, fastest first."""
    texts, argv = split_env(PROG, argv)
    parser = Parser(PROG, description=ABOUT)
    parser.add_argument("env", help="name from puffer list, my_env.py:Class, module:Class, or Gymnasium id")
    parser.add_argument(
        "--batch-size", type=int, help=f"environments per batch (default: {BATCH}, or --max-envs if that is smaller)"
    )
    parser.add_argument("--max-envs", type=int, help="maximum number of environments (default: three batches)")
    parser.add_argument("--model-forward-s", type=float, default=0.0, help="seconds of the policy per batch")
    parser.add_argument("--time-per-test", type=float, default=5.0, help="seconds per configuration (default: 5)")
    parser.add_argument("--refresh", action="store_true", help="measure again even if there are cached results")
    parser.add_argument("--json", action="store_true", help="print a JSON list of objects")
    options = parser.parse(argv)
    batch_size = options.batch_size
    if batch_size is None:
        batch_size = BATCH if options.max_envs is None else max(1, min(BATCH, options.max_envs))
    creator = registry.env_creator(options.env, PROG)
    keywords = typed(options.env, texts)
    config = load_config(options.env)
    config = dataclasses.replace(config, env={**config.env, **keywords})
    try:
        configs = autotune(
            creator,
            batch_size=batch_size,
            max_envs=3 * batch_size if options.max_envs is None else options.max_envs,
            model_forward_s=options.model_forward_s,
            time_per_test=options.time_per_test,
            env_kwargs={**tunable_keywords(config), **keywords},
            refresh=options.refresh,
            progress=progress,
        )
    finally:
        progress(1.0, "")
    if options.json:
        say(json.dumps([dataclasses.asdict(config) for config in configs], indent=2))
    else:
        _print(config, options.env, keywords, configs)
    return 0


def _print(config: Config, env: str, keywords: dict[str, Any], configs: list[TunedConfig]) -> None:
    say(f"{style(env, 'bold')}: {_profile_text(configs[0].profile)}")
    say()
    say(f"{'agent-steps/s':>14}{'spread':>8}  configuration")
    for candidate in configs:
        rate, spread = (
            ("skipped", "") if candidate.skipped else (f"{candidate.steps_per_second:,.0f}", f"{candidate.spread:.0%}")
        )
        reason = f": {candidate.skipped}" if candidate.skipped else ""
        say(f"{rate:>14}{spread:>8}  {_settings(candidate)}{reason}")
    say()
    say(f"Fastest:      {style(f'vector.make(env_creator({env!r}), {_settings(configs[0])})', 'good')}")
    settings = tuned_settings(config, configs[0].kwargs)
    settings |= {f"env.{key}": value for key, value in keywords.items() if f"env.{key}" not in settings}
    flags = " ".join(flag(name, value) for name, value in settings.items())
    train = as_typed("puffer train", env)
    say(f"Train with:   {style(f'{train} {flags}', 'accent')}")
    own = "".join(f" {flag(f'env.{key}', value)}" for key, value in keywords.items())
    say(f"or:           {style(f'{train}{own} --vec auto', 'accent')}, the fewest environments among the fast ones")


def _profile_text(profile: EnvProfile) -> str:
    parts = [
        f"{profile.steps_per_second:,.0f} steps/s alone on one core",
        f"±{profile.variation:.0%} from step to step",
        f"{profile.reset_share:.0%} of the time in resets",
        f"{profile.ram_bytes / MIB:.1f} MiB",
        f"agents: {profile.num_agents}",
    ]
    return ", ".join(parts[:2] + parts[3:] if profile.is_native else parts)


def _settings(config: TunedConfig) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in config.kwargs.items())
