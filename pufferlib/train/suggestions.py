"""Settings that may be meant by a name that is none: a slip, a part of the name, or what other libraries call it."""

from collections.abc import Iterable

from pufferlib.errors import nearest

__all__ = ["ELSEWHERE", "MEANT", "suggest"]

# Setting: what Stable-Baselines3, CleanRL, RLlib, PufferLib and others call it.
ELSEWHERE = {
    "learning_rate": "lr alpha step_size",
    "anneal_lr": "lr_schedule lr_decay",
    "horizon": "n_steps num_steps nsteps rollout_length rollout_steps bptt_horizon unroll_length",
    "total_timesteps": "total_steps num_timesteps max_timesteps timesteps max_frames total_agent_steps",
    "minibatch_size": "batch_size mini_batch_size num_minibatches nminibatches sgd_minibatch_size",
    "update_epochs": "n_epochs num_epochs epochs ppo_epochs noptepochs num_sgd_iter",
    "clip_coef": "clip_range clip_param clip_eps clip_epsilon cliprange",
    "vf_clip_coef": "clip_range_vf vf_clip_param vf_clip clip_vloss",
    "vf_coef": "value_coef value_loss_coef vf_loss_coeff critic_coef",
    "ent_coef": "entropy_coef entropy_coeff entropy_bonus",
    "gae_lambda": "lam lambda lmbda gae",
    "gamma": "discount discount_factor",
    "max_grad_norm": "grad_clip max_norm clip_grad",
    "norm_adv": "normalize_advantage normalize_advantages norm_advantage advantage_norm",
    "target_kl": "kl kl_target max_kl",
    "checkpoint_interval": "save_interval save_freq checkpoint_freq",
    "keep_checkpoints": "num_to_keep max_to_keep save_top_k keep_checkpoints_num",
    "device": "cuda gpu accelerator",
    "num_threads": "threads n_threads torch_num_threads",
    "num_envs": "n_envs envs n_environments num_environments",
    "num_workers": "workers n_workers n_jobs processes",
    "hidden_size": "hidden hidden_dim width net_arch",
    "num_layers": "layers n_layers depth",
    "recurrent": "lstm rnn use_lstm use_rnn",
    "episodes": "n_eval_episodes num_episodes eval_episodes n_episodes",
    "greedy": "deterministic",
}
MEANT = {name: setting for setting, names in ELSEWHERE.items() for name in names.split()}


def suggest(wrong: str, known: Iterable[str], count: int = 2) -> list[str]:
    """The ``count`` entries of ``known`` that ``wrong`` may mean, best first; empty when none is near.

    Args:
        wrong: What was given, as ``section.name``, or only ``name``.
        known: All settings, as ``section.name``.
        count: How many at the most.
    """
    known = list(known)
    section, _, name = wrong.rpartition(".")
    inside = [setting for setting in known if _section(setting) == section]
    for settings in (inside, known):
        names = [_name(setting) for setting in settings]
        close = (
            [each for each in names if each in (name, MEANT.get(name))]
            or nearest(name, {*names}, count)
            or [each for each in names if _has_words_of(each, name)]
        )
        if close:
            found = [setting for each in dict.fromkeys(close) for setting in settings if _name(setting) == each]
            return sorted(found, key=lambda setting: not nearest(section, [_section(setting)]))[:count]
    return []


def _section(setting: str) -> str:
    return setting.rpartition(".")[0]


def _name(setting: str) -> str:
    return setting.rpartition(".")[2]


def _has_words_of(setting: str, name: str) -> bool:
    """True if each word of ``name`` begins a word of ``setting``."""
    parts = [part for part in name.split("_") if part]
    return bool(parts) and all(any(word.startswith(part) for word in setting.split("_")) for part in parts)
