"""The settings of a run: dataclasses with defaults, TOML files, then flags, each over the one before."""

import ctypes
import dataclasses
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.machine.paths import user_path
from pufferlib.ocean.files import settings_of_file
from pufferlib.training.distributed.settings import ProcessSettings
from pufferlib.training.early_stop import StopConfig
from pufferlib.training.env_values import from_plain, to_plain
from pufferlib.training.kinds import (
    Count,
    CountOrAuto,
    Decay,
    Natural,
    NotNegative,
    Number,
    OptionalCount,
    Schedule,
    Share,
    Steps,
    StepSize,
    limits_of,
)
from pufferlib.training.merge import merge_sources, names_in, nest, without_unknown
from pufferlib.training.selfplay_config import SelfplayConfig
from pufferlib.training.toml import parse_toml, read_toml, to_toml
from pufferlib.training.track_config import TrackConfig

__all__ = [
    "Config",
    "EvalConfig",
    "PolicyConfig",
    "TrainConfig",
    "VecConfig",
    "env_name_in",
    "load_config",
    "setting_names",
    "settings_files",
]


@dataclass(frozen=True)
class VecConfig:
    """Settings of the batch of environments; the arguments of pufferlib.vector.make.

    Attributes:
        backend: "native" (one environment object that is a batch), "Serial", "Multiprocessing" or "Ray".
        num_envs: Environment objects; a native one counts once, however many games it holds.
        num_workers: Processes of "Multiprocessing", actors of "Ray"; unset: one per usable core.
        batch_size: Environments per batch; fewer than num_envs lets the others run meanwhile.
        zero_copy: Batches are slices of the shared memory, never copies.
        overwork: Allow more workers than there are cores.
        timeout_s: Longest that building, resetting or stepping one environment may take in a worker;
            0 is for ever.
        on_crash: What follows the end of a worker, and with "Serial" an exception of an environment: "raise"
            an error, or "restart" its environments.
        record: Folder in which every environment leaves a bundle with all of its actions, for puffer replay;
            empty is none.
    """

    backend: str = "native"
    num_envs: Count = 1
    num_workers: OptionalCount = None
    batch_size: OptionalCount = None
    zero_copy: bool = True
    overwork: bool = False
    timeout_s: float = 120.0
    on_crash: str = "raise"
    record: str = ""


@dataclass(frozen=True)
class PolicyConfig:
    """The network.

    Attributes:
        name: A policy of the environment or its binding (a module policy), of pufferlib.models: "Default",
            "NatureCNN", "ResNet" or "MixedCNN", or one of yours: "mypkg:Net", "path/to/my_net.py:Net".
        hidden_size: Width of the hidden layers.
        num_layers: Hidden layers of "Default".
        memory: Recurrent network between the encoder and the decoder: "LSTM", "GRU", "MinGRU" (the fastest), or "none".
        memory_layers: Layers of "MinGRU"; to count, or to recite in order, it takes two.
    """

    name: str = "Default"
    hidden_size: Count = 128
    num_layers: Count = 2
    memory: Literal["none", "LSTM", "GRU", "MinGRU"] = "none"
    memory_layers: Count = 1


@dataclass(frozen=True)
class TrainConfig(ProcessSettings):
    """PPO and its schedule.

    Attributes:
        seed: Seed of the environments, the network and the sampling.
        init: Run, checkpoint or file of a policy whose weights a new run begins with; "" are random ones.
        device: A torch device; "auto" is CUDA where there is a GPU, else the CPU.
        num_threads: CPU threads of torch while learning; unset: one per usable core for networks of
            half a million parameters or more, and one for smaller ones.
        overlap: "none"; "envs": half of the environments step while the network acts for the other half; or "learning":
            the next rollout is collected while the last one is learned from, by the weights of one update before.
        act_threads: The same while acting: one, because a step's batch is small, and the other
            cores belong to the environments.
        precision: "float32", or "bfloat16" for products and convolutions; weights and losses stay float32.
        compile: Compile the learning pass by torch.compile, which takes up to a minute and a C++ compiler.
        cuda_graphs: Record the GPU's work of a step and of a minibatch, and launch it in one call; unset: on a GPU, but
            not with overlap "learning".
        cpu_offload: Keep observations in the CPU's memory; each minibatch is copied to the GPU.
        total_timesteps: Agent-steps of the whole run.
        horizon: Steps of each agent between two updates; 0 is automatic: 64, and with fewer than 16 agents the power
            of 2 that brings all of them together to 1,024 or more.
        minibatch_size: Agent-steps of one gradient step; divides those of an update (horizon times agents), or is
            more, which means all of them. 0 is automatic: a sixteenth of an update, from 64 to 8,192.
        update_epochs: Passes over each rollout; 0 is automatic: the fewer steps an update has, the more, 10 for
            1,024 and 1 from 16,384 on; 1 also where minibatch_size is given.
        accumulate_minibatches: Minibatches whose gradients are summed for one step; divides their number.
        optimizer: "adam", or "muon" for the hidden matrices, with Adam for the rest.
        learning_rate: Step size of the optimizer at the start.
        lr_schedule: "constant", or the learning rate falls over the run, "linear" or by half a "cosine".
        min_lr_ratio: Share of the learning rate that is left at the end.
        adam_beta1: Decay of Adam's mean of gradients, and of Muon's.
        adam_beta2: Decay of Adam's mean of squared gradients.
        adam_eps: Adam's epsilon.
        gamma: Discount per step.
        gae_lambda: Lambda of the generalised advantage estimate.
        vtrace_rho_clip: V-trace: from the second pass on, with overlap "learning" from the first, advantages are
            estimated anew, with errors of the values weighted by the probability ratio up to this; inf is no limit, 0
            is off.
        vtrace_c_clip: The same for what later steps tell about earlier ones.
        priority_alpha: Draw what is learned from with a probability that grows with the size of its advantage to this
            power; 0 is off: everything once in each pass.
        priority_beta: Power of the importance weights that make up for it at the start; 1 at the end of the run.
        clip_coef: How far the probability ratio may move before its gradient stops.
        clip_schedule: As lr_schedule.
        min_clip_ratio: As min_lr_ratio.
        vf_coef: Weight of the value loss.
        vf_clip_coef: Clip range of the value update; 0 is off.
        ent_coef: Weight of the entropy bonus.
        ent_schedule: As lr_schedule.
        min_ent_ratio: As min_lr_ratio.
        max_grad_norm: Largest norm of a gradient. Longer gradients are scaled down to it. 0 turns clipping off.
        norm_adv: Give the advantages of each minibatch mean 0 and standard deviation 1.
        target_kl: Skip the remaining minibatches of an update once the KL divergence of one exceeds this. 0 is off.
        reward_scale: Rewards are multiplied by this before learning; scores are not. 0 is automatic: 1, or
            less where the discounted returns of a rollout deviate by more than 2 (their deviation is 1 then), until
            an episode with a reward has ended; with reward_clip always 1.
        reward_clip: Then limited to plus or minus this; 0 is off.
        normalize_observations: Give each element mean 0 and variance 1, by the moments of all that was seen; they are
            kept with the policy.
        normalize_rewards: Divide rewards by the deviation of the discounted returns so far; reward_scale 0 is then 1.
        checkpoint_interval: Updates between checkpoints; 0 keeps only the one at the end.
        keep_checkpoints: The latest so many are kept, and the one of the best score; 0 keeps all.
        save_games: Games in checkpoints, from which a resumed run goes on: "safe" has those of C environments, and
            others whose state is plain data; "pickle" all that can be pickled, which executes code as it is loaded, so
            that a resumed run must be told again; "none" has none.
        restart_share: Share of the episodes that begin in the middle: in a state, kept from an earlier rollout, whose
            action had a large advantage, either way. They count in no score.
        restart_states: States that are kept for that.
        exact_resume: Start new episodes at every checkpoint, so that a run resumed from one of every
            checkpoint_interval updates repeats the uninterrupted one byte for byte.
    """

    seed: Natural = 42
    init: str = ""
    device: str = "auto"
    num_threads: OptionalCount = None
    act_threads: Count = 1
    overlap: Literal["none", "envs", "learning"] = "none"
    precision: Literal["float32", "bfloat16"] = "float32"
    compile: bool = False
    cuda_graphs: bool | None = None
    cpu_offload: bool = False
    total_timesteps: Steps = 10_000_000
    horizon: CountOrAuto = 0
    minibatch_size: CountOrAuto = 0
    update_epochs: CountOrAuto = 0
    accumulate_minibatches: Count = 1
    optimizer: Literal["adam", "muon"] = "adam"
    learning_rate: StepSize = 1e-3
    lr_schedule: Schedule = "linear"
    min_lr_ratio: Share = 0.0
    adam_beta1: Decay = 0.9
    adam_beta2: Decay = 0.999
    adam_eps: NotNegative = 1e-5
    gamma: Share = 0.99
    gae_lambda: Share = 0.95
    vtrace_rho_clip: NotNegative = 0.0
    vtrace_c_clip: NotNegative = 0.0
    priority_alpha: NotNegative = 0.0
    priority_beta: Share = 0.4
    clip_coef: NotNegative = 0.2
    clip_schedule: Schedule = "constant"
    min_clip_ratio: Share = 0.0
    vf_coef: NotNegative = 0.5
    vf_clip_coef: NotNegative = 0.0
    ent_coef: Number = 0.01
    ent_schedule: Schedule = "constant"
    min_ent_ratio: Share = 0.0
    max_grad_norm: NotNegative = 0.5
    norm_adv: bool = True
    target_kl: NotNegative = 0.0
    reward_scale: Number = 0.0
    reward_clip: NotNegative = 0.0
    normalize_observations: bool = False
    normalize_rewards: bool = False
    checkpoint_interval: Natural = 100
    keep_checkpoints: Natural = 3
    save_games: Literal["safe", "pickle", "none"] = "safe"
    restart_share: Share = 0.0
    restart_states: Count = 64
    exact_resume: bool = False


@dataclass(frozen=True)
class EvalConfig:
    """Evaluation of a trained policy.

    Attributes:
        episodes: Episodes that are played, each in an environment of its own.
        seed: Seed of the environments and the sampling.
        max_steps: Steps after which an episode is abandoned.
        greedy: Take the likeliest action instead of sampling.
        video_seconds: Longest film of the first episode, which is cut after that; 0 is no limit.
        interval: Agent-steps between evaluations during training, by which the best checkpoint is chosen then; 0 has
            none.
        interval_episodes: Episodes of each of these.
    """

    episodes: Count = 32
    seed: Natural = 1
    max_steps: Count = 20_000
    greedy: bool = False
    video_seconds: NotNegative = 600.0
    interval: Natural = 0
    interval_episodes: Count = 32


@dataclass(frozen=True)
class Config:
    """Everything that decides a run.

    Attributes:
        env_name: A name that ``pufferlib.make`` knows; the paths of files are absolute.
        env: Keyword arguments of the environment, which checks them itself.
        vec: How environments are batched.
        policy: The network.
        train: PPO and its schedule.
        eval: How a trained policy is judged.
        stop: When the run ends early.
        selfplay: Opponents for games of two sides.
        track: Its name, and the trackers that take its metrics.

    Raises:
        APIUsageError: A number is out of its range.
    """

    env_name: str
    env: dict[str, Any] = field(default_factory=dict)
    vec: VecConfig = field(default_factory=VecConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    train: TrainConfig = field(default_factory=TrainConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    stop: StopConfig = field(default_factory=StopConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    track: TrackConfig = field(default_factory=TrackConfig)

    def __post_init__(self) -> None:
        for section in ("vec", "policy", "train", "eval", "stop", "selfplay"):
            values = getattr(self, section)
            for key, limits in limits_of(type(values)).items():
                value = getattr(values, key)
                if value is not None:
                    limits.check(f"{section}.{key}", value)

    def with_full_names(self) -> "Config":
        """The same, with absolute paths in names of files, so that a run finds them from any folder."""
        policy = dataclasses.replace(self.policy, name=registry.full_name(self.policy.name))
        init = user_path(self.train.init).absolute() if self.train.init else ""
        train = dataclasses.replace(self.train, init=str(init))
        track = dataclasses.replace(self.track, loggers=tuple(map(registry.full_name, self.track.loggers)))
        env_name = registry.full_name(self.env_name)
        return dataclasses.replace(self, env_name=env_name, policy=policy, train=train, track=track)

    def located(self, folder: Path) -> "Config":
        """Return the same with the new places of files that were moved together with ``folder``, with a warning.

        The files are those of the environment and the policy. They are looked for in ``folder``, the current folder,
        and those above them.
        """
        names = {"env_name": self.env_name, "policy.name": self.policy.name}
        found = {key: registry.moved_name(name, (folder, Path.cwd())) for key, name in names.items()}
        for key, name in names.items():
            if found[key] != name:
                warnings.warn(f"{folder}: {name} is not there; {found[key]} is used as {key} instead", stacklevel=3)
        policy = dataclasses.replace(self.policy, name=found["policy.name"])
        return dataclasses.replace(self, env_name=found["env_name"], policy=policy)

    def save(self, path: Path) -> None:
        """Write the merged settings as TOML; what is unset is left out."""
        path.write_text(self.to_toml(), encoding="utf-8")

    def to_toml(self) -> str:
        """The text that ``save`` writes."""
        return "\n".join(to_toml(self.as_dict())) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return all settings as nested dicts of plain values (``pufferlib.training.env_values``)."""
        plain = {key: to_plain(value) for key, value in self.env.items()}
        return {**dataclasses.asdict(dataclasses.replace(self, env={})), "env": plain}

    @classmethod
    def load(cls, path: Path, overrides: Mapping[str, Any] | None = None) -> "Config":
        """Read what ``save`` wrote, and lay dotted keys over it, as ``load_config`` does.

        Another version of the library may have written it. Settings that do not exist are left out, with a warning.

        Raises:
            APIUsageError: The file is missing, is no TOML, or a value has the wrong type.
            UnknownNameError: A key of ``overrides`` that does not exist.
        """
        return cls._of(str(path), read_toml(path), overrides)

    @classmethod
    def parse(cls, where: str, text: str, overrides: Mapping[str, Any] | None = None) -> "Config":
        """``load`` of the text of a file; ``where`` begins the message of an error."""
        return cls._of(where, parse_toml(where, text), overrides)

    @classmethod
    def _of(cls, where: str, data: dict[str, Any], overrides: Mapping[str, Any] | None) -> "Config":
        name = data.pop("env_name", None)
        if not isinstance(name, str):
            raise APIUsageError(f"{where}: env_name must be a string, got {name!r}; is this a run's config.toml?")
        data, unknown = without_unknown(cls, data)
        if unknown:
            warnings.warn(
                f"{where}: {' and '.join(unknown)} left out, since this version of pufferlib has no such setting",
                stacklevel=4,
            )
        env = data.get("env")
        if isinstance(env, dict):
            data["env"] = {key: from_plain(value) for key, value in env.items()}
        return _build(name, [(where, data), ("overrides", nest(overrides or {}, setting_names()))])


def load_config(env_name: str, overrides: Mapping[str, Any] | None = None, file: Path | str | None = None) -> Config:
    """The settings for an environment: ``default.toml``, then its own, then those of ``file``, then ``overrides``.

    Args:
        env_name: "breakout" reads ``ocean/breakout/train.toml``, "atari/pong" ``bindings/atari/train.toml``; a
            registered one has the settings that it was registered with, "path/to/corridor.c" those of the
            ``corridor.toml`` beside it. An environment without any gets the defaults,
            which are those of ``outside.toml`` for one in Python that is not in this repository.
        overrides: Dotted keys, as ``{"train.learning_rate": 3e-4}``.
        file: TOML with sections like ``default.toml``, those for a GPU in ``[cuda]`` (``[cuda.train]``), or a run's
            ``config.toml``, whose ``env_name`` is left aside.

    Raises:
        UnknownNameError: A key that does not exist; the nearest are suggested.
        APIUsageError: A value of the wrong type, or a file that cannot be read.
    """
    env_name = registry.full_name(env_name.removeprefix("puffer_"))
    sources = [_parse_own("default.toml"), *settings_files(env_name, file)]
    sources.append(("overrides", nest(overrides or {}, setting_names())))
    return _build(env_name, for_device(sources)).with_full_names()


def for_device(sources: list[tuple[str, dict[str, Any]]]) -> list[tuple[str, dict[str, Any]]]:
    """Apply the section ``cuda`` of each source, ``[cuda.train]`` for example, after that source if a GPU trains.

    A later source, like the command line, is laid over it as over any other setting.
    """
    has_section = any("cuda" in data for _, data in sources)
    tables = [train for _, data in sources if isinstance(train := data.get("train"), dict) and "device" in train]
    device = tables[-1]["device"] if tables else "auto"
    trains_on_gpu = has_section and (has_gpu() if device == "auto" else str(device).startswith("cuda"))
    found = []
    for where, data in sources:
        plain = {section: values for section, values in data.items() if section != "cuda"}
        found.append((where, plain))
        if trains_on_gpu and "cuda" in data:
            found.append((f"{where}, [cuda]", data["cuda"]))
    return found


def has_gpu() -> bool:
    """Return whether ``train.device`` "auto" is a GPU. Imports torch only if there is a driver."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    import torch

    return torch.cuda.is_available()


def settings_files(env_name: str, file: Path | str | None = None) -> list[tuple[str, dict[str, Any]]]:
    """The settings that an environment brings, then those of ``file``; each with its name in messages.

    Raises:
        APIUsageError: A file that cannot be read.
    """
    given = [] if file is None else [(str(file), _without_name(read_toml(Path(file))))]
    return [*_sources_of(env_name), *given]


def env_name_in(file: Path) -> str | None:
    """The ``env_name`` of a file of settings, if it has one, as a run's ``config.toml`` does."""
    name = read_toml(file).get("env_name")
    return name if isinstance(name, str) else None


def _sources_of(env_name: str) -> list[tuple[str, dict[str, Any]]]:
    """The settings that an environment brings, and what they are called in messages."""
    if not registry.is_inside(env_name):
        return _sources_outside(env_name)
    binding, _, game = env_name.partition("/")
    home = resources.files("pufferlib.bindings") / binding if game else resources.files("pufferlib.ocean") / env_name
    file = home / "train.toml"
    where = f"{home.name}/train.toml"
    return [(where, parse_toml(where, file.read_text("utf-8")))] if file.is_file() else []


# Games of a batch where a C file has no settings beside it: one at a time would leave its speed unused.
_GAMES = 64


def _sources_outside(env_name: str) -> list[tuple[str, dict[str, Any]]]:
    try:
        sources = [] if registry.batches_itself(env_name) else [_parse_own("outside.toml")]
    except UnknownNameError:  # a name for a run whose environments are given as objects
        return []
    source = registry.c_file(env_name)
    if source:
        sources = [("games of a C file", {"env": {"num_envs": _GAMES}})]
    registration = registry.registrations().get(env_name)
    if registration is None or registration.settings is None:
        beside = settings_of_file(source) if source else None
        return [*sources, (str(beside), read_toml(beside))] if beside else sources
    if isinstance(registration.settings, Mapping):
        own = {section: dict(values) for section, values in registration.settings.items()}
        return [*sources, (f"settings of {env_name}", own)]
    return [*sources, (str(registration.settings), _without_name(read_toml(Path(registration.settings))))]


def _parse_own(name: str) -> tuple[str, dict[str, Any]]:
    """A file of this folder."""
    return name, parse_toml(name, (resources.files("pufferlib.training") / name).read_text("utf-8"))


def _without_name(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key != "env_name"}


def _build(env_name: str, sources: list[tuple[str, dict[str, Any]]]) -> Config:
    return Config(env_name, **merge_sources(Config, sources))


def setting_names() -> list[str]:
    """Every setting, as ``section.name``."""
    return names_in(Config)
