"""Suggestions for unknown settings: near misses, parts of a name, and names in other libraries."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from pufferlib.errors import nearest

__all__ = ["ELSEWHERE", "MEANT", "PUFFERLIB_3", "RENAMED", "Renamed", "suggest"]


class Renamed(NamedTuple):
    """Setting of an earlier version that has another name and other values now.

    Attributes:
        old: Name in the earlier version, ``section.name``.
        new: Name now, in the same section.
        values: Value now for each value in the earlier version.
    """

    old: str
    new: str
    values: Mapping[object, str]

    def in_file(self, value: Any) -> str:
        """Return the message for a settings file that has ``value``."""
        old, new = _name(self.old), _name(self.new)
        lines = [f'{new} = "{now}" in place of {old} = {str(then).lower()}' for then, now in self.values.items()]
        chosen = list(self.values).index(value) if value in self.values else 0
        return f"{old} has become {new}; write {lines[chosen]}"

    def as_flag(self) -> str:
        """Return the message for a command line."""
        old, new = (name.replace("_", "-") for name in (self.old, self.new))
        typed = [f"--{new} {now} in place of --{old} {then}" for then, now in self.values.items()]
        return f"--{old} has become --{new}; type {', or '.join(typed)}"


RENAMED = {
    setting.old: setting
    for setting in [
        Renamed("policy.recurrent", "policy.memory", {True: "LSTM", False: "none"}),
        Renamed("train.anneal_lr", "train.lr_schedule", {True: "linear", False: "constant"}),
    ]
}

# Flags of PufferLib 3 that are not settings here, and what to type instead.
PUFFERLIB_3 = {
    "wandb": "--track wandb",
    "wandb_project": "--track wandb --track.wandb.project NAME",
    "wandb_group": "--track wandb --track.wandb.group NAME",
    "neptune": "--track wandb, tensorboard or csv",
    "neptune_name": "--track wandb, tensorboard or csv",
    "neptune_project": "--track wandb, tensorboard or csv",
    "load_model_path": "puffer eval RUN, or puffer train ENV --init RUN",
    "load_id": "puffer train --resume RUN",
    "save_frames": "puffer eval RUN --video FILE.mp4",
    "gif_path": "puffer eval RUN --video FILE.mp4",
    "render_mode": "puffer play --watch RUN",
    "max_runs": "puffer sweep ENV --sweep.trials N",
    "sweep.method": "puffer sweep ENV, which draws settings by Optuna",
    "sweep.max_runs": "puffer sweep ENV --sweep.trials N",
    "sweep.downsample": "puffer sweep ENV --sweep.prune SHARE",
    "sweep.goal": "puffer sweep ENV --sweep.direction minimize",
    "env_name": "the name itself: puffer train ENV",
    "package": "the name itself: puffer train atari/pong",
    "policy_name": "--policy.name NAME",
    "rnn_name": "--policy.memory LSTM",
    "train.name": "--name NAME",
    "train.env": "the name itself: puffer train ENV",
    "train.data_dir": "--runs FOLDER",
    "train.use_rnn": "--policy.memory LSTM",
    "train.bptt_horizon": "--train.horizon N",
    "train.batch_size": "--train.horizon N, which is the steps of each agent in an update",
    "train.max_minibatch_size": "--train.accumulate-minibatches N, the number of minibatches per gradient step",
    "train.torch_deterministic": "nothing: runs on a CPU always repeat themselves",
    "train.prio_alpha": "--train.priority-alpha N",
    "train.prio_beta0": "--train.priority-beta N",
    "vec.seed": "--train.seed N",
}

# Names of settings in Stable-Baselines3, CleanRL, RLlib, PufferLib and others.
ELSEWHERE = {
    "learning_rate": "lr alpha step_size",
    "lr_schedule": "lr_decay lr_scheduler learning_rate_schedule adaptive_lr schedule",
    "min_lr_ratio": "lr_end final_lr min_lr lr_min",
    "ent_schedule": "anneal_ent entropy_coeff_schedule anneal_entropy",
    "clip_schedule": "anneal_clip clip_range_schedule",
    "accumulate_minibatches": "gradient_accumulation_steps grad_accumulation max_minibatch_size accumulation_steps",
    "vtrace_rho_clip": "vtrace_clip_rho_threshold rho_clip clip_rho rho_bar",
    "vtrace_c_clip": "c_clip vtrace_clip_c_threshold c_bar",
    "priority_alpha": "prio_alpha alpha_priority prioritized_replay_alpha",
    "priority_beta": "prio_beta0 prio_beta prioritized_replay_beta",
    "precision": "dtype mixed_precision amp use_amp bf16 autocast",
    "compile": "torch_compile use_compile jit",
    "cuda_graphs": "cudagraphs cuda_graph",
    "cpu_offload": "offload pin_memory storage_device",
    "optimizer": "optim optimizer_class",
    "horizon": "n_steps num_steps nsteps rollout_length rollout_steps bptt_horizon unroll_length",
    "total_timesteps": "total_steps num_timesteps max_timesteps timesteps max_frames total_agent_steps",
    "minibatch_size": "batch_size mini_batch_size num_minibatches nminibatches sgd_minibatch_size",
    "update_epochs": "n_epochs num_epochs epochs ppo_epochs noptepochs num_sgd_iter",
    "rescale_actions": "squash_output normalize_actions scale_actions rescale_action clip_actions unsquash_actions",
    "clip_coef": "clip_range clip_param clip_eps clip_epsilon cliprange",
    "vf_clip_coef": "clip_range_vf vf_clip_param vf_clip clip_vloss",
    "vf_coef": "value_coef value_loss_coef vf_loss_coeff critic_coef",
    "ent_coef": "entropy_coef entropy_coeff entropy_bonus",
    "gae_lambda": "lam lambda lmbda gae",
    "gamma": "discount discount_factor",
    "max_grad_norm": "grad_clip max_norm clip_grad",
    "norm_adv": "normalize_advantage normalize_advantages norm_advantage advantage_norm",
    "target_kl": "kl kl_target max_kl desired_kl kl_threshold",
    "checkpoint_interval": "save_interval save_freq checkpoint_freq",
    "keep_checkpoints": "num_to_keep max_to_keep save_top_k keep_checkpoints_num",
    "device": "cuda gpu accelerator",
    "num_threads": "threads n_threads torch_num_threads",
    "num_envs": "n_envs envs n_environments num_environments",
    "num_workers": "workers n_workers n_jobs processes",
    "hidden_size": "hidden hidden_dim width",
    "hidden_sizes": "net_arch fcnet_hiddens mlp_dims",
    "channels": "filters conv_filters num_filters out_channels cnn_channels",
    "networks": "share_features_extractor vf_share_layers separate",
    "activation": "activation_fn fcnet_activation act_fn nonlinearity",
    "layer_norm": "layernorm use_layer_norm",
    "orthogonal_init": "ortho_init orthogonal",
    "log_std_init": "log_std init_std logstd",
    "state_dependent_std": "full_std free_log_std",
    "num_layers": "layers n_layers depth",
    "memory": "lstm gru rnn use_lstm use_rnn",
    "episodes": "n_eval_episodes num_episodes eval_episodes n_episodes",
    "greedy": "deterministic",
}
MEANT = {name: setting for setting, names in ELSEWHERE.items() for name in names.split()}


def suggest(wrong: str, known: Iterable[str], count: int = 2) -> list[str]:
    """Return the entries of ``known`` that ``wrong`` may mean, best first. The list is empty if none is near.

    Args:
        wrong: Unknown setting, as ``section.name`` or ``name``.
        known: All settings, as ``section.name``.
        count: Maximum number of suggestions.
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
    """Return True if each word of ``name`` is the start of a word of ``setting``."""
    parts = [part for part in name.split("_") if part]
    return bool(parts) and all(any(word.startswith(part) for word in setting.split("_")) for part in parts)
