"""Mutants of the trainer, each with one wrong expression, and a pytest plugin for test_mutants.py."""

import importlib
import inspect
import os
import textwrap

__all__ = ["MUTANTS", "mutate"]

PPO, ADVANTAGE = "pufferlib.training.ppo", "pufferlib.training.advantage"
COLLECTOR = "pufferlib.training.collector:Collector"

#: Function, text of its source, replacement, and the test file that must fail, by name of the mutant.
MUTANTS = {
    "gradients are not clipped": (f"{PPO}:apply_gradients", "config.max_grad_norm > 0", "False", "test_ppo.py"),
    "no step of the optimizer": (f"{PPO}:apply_gradients", "optimizer.step()", "None", "test_ppo.py"),
    "policy loss without clipping": (
        f"{PPO}:policy_loss",
        ".clamp(1 - clip_coef, 1 + clip_coef)",
        "",
        "test_ppo.py",
    ),
    "policy loss takes the larger term": (f"{PPO}:policy_loss", "torch.minimum", "torch.maximum", "test_ppo.py"),
    "value loss is not halved": (f"{PPO}:value_loss", "0.5 * error", "error", "test_ppo.py"),
    "advantages keep their deviation": (f"{PPO}:normalize", ".sqrt()", ".sqrt() * 0 + 1", "test_ppo.py"),
    "entropy is punished": (
        f"{PPO}:ppo_loss",
        "- config.ent_coef * entropy",
        "+ config.ent_coef * entropy",
        "test_ppo.py",
    ),
    "one pass over a rollout": (f"{PPO}:_passes", "range(config.update_epochs)", "range(1)", "test_ppo.py"),
    "advantages ignore episode ends": (
        f"{ADVANTAGE}:vtrace",
        "(~episode_ends)",
        "(episode_ends | ~episode_ends)",
        "test_advantage.py",
    ),
    "advantages ignore lambda": (f"{ADVANTAGE}:vtrace", "continues.mul_(gae_lambda)", "None", "test_advantage.py"),
    "no bootstrapping of truncated episodes": (
        f"{COLLECTOR}._bootstrap",
        "self._config.gamma * values",
        "0 * values",
        "test_collector.py",
    ),
    "memory outlives its episode": (f"{COLLECTOR}._clear_memory", "= 0", "*= 1", "test_collector.py"),
}


def mutate(name):
    """Replace the code object of the mutant's function, so that all importers see the change."""
    place, old, new, _ = MUTANTS[name]
    module_name, _, path = place.partition(":")
    module = importlib.import_module(module_name)
    function = module
    for part in path.split("."):
        function = getattr(function, part)
    function = inspect.unwrap(function)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{place} must have {old!r} once; update its mutant"
    scope = dict(vars(module))
    exec(source.replace(old, new), scope)
    function.__code__ = inspect.unwrap(scope[function.__name__]).__code__


def pytest_configure():
    mutate(os.environ["MUTANT"])
