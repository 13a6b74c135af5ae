"""Settings of a run: one dataclass per section, with the default, the limits and the documentation of each field."""

import ast
import dataclasses
import inspect
import itertools
import math
import numbers
import textwrap
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints

from pufferlib import registry
from pufferlib.errors import APIUsageError, UsageError
from pufferlib.machine.paths import replace_file, user_path
from pufferlib.settings.env_values import from_plain, to_plain
from pufferlib.settings.sections import all_names, names_beside, split_by_env
from pufferlib.settings.sources import (
    CALLER,
    CONDITIONS,
    Source,
    default_settings,
    for_run,
    merge_sources,
    names_in,
    nest,
    own_settings,
    settings_file,
    without_unknown,
)
from pufferlib.settings.toml import parse_toml, read_toml, to_toml

__all__ = [
    "DEFAULT_TIMEOUT_S",
    "Config",
    "Count",
    "Counts",
    "EvalConfig",
    "Natural",
    "PolicyConfig",
    "Range",
    "Section",
    "SelfplayConfig",
    "Share",
    "StopConfig",
    "TrackConfig",
    "TrainConfig",
    "VecConfig",
    "WandbConfig",
    "docs_of",
    "limits_of",
    "load_config",
    "load_sources",
    "setting_names",
]


DEFAULT_TIMEOUT_S = 600.0
_MOST = 2**31 - 1  # limit of everything that is counted in memory


class Range(NamedTuple):
    """Smallest and largest value of a setting. If both are infinite, any number except NaN is valid."""

    low: float
    high: float

    def allowed(self, value: float = -math.inf) -> str:
        """Return the valid values in words. The largest count is only mentioned if ``value`` exceeds it."""
        if self.low == -math.inf:
            return "a number"
        is_open = self.high == math.inf or (self.high >= _MOST and value < self.low)
        return f"at least {self.low}" if is_open else f"from {self.low} to {self.high}"

    def check(self, name: str, value: Any) -> None:
        """Raise UsageError if ``value`` is outside.

        Tensors are not checked, because reading one waits for the GPU. A loss may copy settings that contain them.
        """
        if isinstance(value, str):
            raise UsageError(f"{name} must be {self.allowed()}, got {value!r}")
        is_number = isinstance(value, numbers.Real)
        if is_number and not self.low <= value <= self.high:
            raise UsageError(f"{name} must be {self.allowed(value)}, got {value}")


Count = Annotated[int, Range(1, _MOST)]
OptionalCount = Annotated[int | None, Range(1, _MOST)]
CountOrAuto = Annotated[int, Range(0, _MOST)]
Natural = Annotated[int, Range(0, 2**63 - 1)]  # range that torch and numpy both support
Steps = Annotated[int, Range(1, 2**63 - 1)]
NotNegative = Annotated[float, Range(0, math.inf)]
StepSize = Annotated[float, Range(0, 1000)]  # infinity leads to NaN, and values near 1000 are never useful
Share = Annotated[float, Range(0, 1)]
Decay = Annotated[float, Range(0, 0.999999)]
Seconds = Annotated[float, Range(0.1, 1e6)]
Number = Annotated[float, Range(-math.inf, math.inf)]
LogStd = Annotated[float, Range(-5, 2)]
Counts = tuple[Count, ...]
Schedule = Literal["constant", "linear", "cosine"]
RateSchedule = Literal["constant", "linear", "cosine", "adaptive"]


def docs_of(section: type) -> dict[str, str]:
    """Return the docstring under each field of a dataclass, on one line.

    Raises:
        KeyError: A field has none.
    """
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(section))).body
    found = {}
    for statement, following in itertools.pairwise(definition.body):  # type: ignore[attr-defined]  # of a class
        match statement, following:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                found[name] = " ".join(text.split())
    return {field.name: found[field.name] for field in dataclasses.fields(section)}


def limits_of(section: type) -> dict[str, Range]:
    """Return the range of each setting that has one. The range of a list is the range of its elements."""
    found = {}
    for key, hint in get_type_hints(section, include_extras=True).items():
        number = get_args(hint)[0] if get_origin(hint) is tuple else hint
        if get_origin(number) is Annotated:
            found[key] = number.__metadata__[0]
    return found


# Ranges by section, and by name such as "train.seed".
_LIMITS: dict[type, Mapping[str, Range]] = {}


class Section:
    """Section of settings, which checks their ranges whenever it is made, as by ``dataclasses.replace``.

    Raises:
        UsageError: A number is out of its range. The message names it as ``train.seed`` if the class is TrainConfig.
    """

    def __init_subclass__(cls) -> None:
        section = cls.__name__.removesuffix("Config").lower()
        _LIMITS[cls] = {f"{section}.{key}": limits for key, limits in limits_of(cls).items()}

    def __post_init__(self) -> None:
        for name, limits in _LIMITS[type(self)].items():
            value = getattr(self, name.partition(".")[2])
            for number in value if isinstance(value, tuple) else () if value is None else (value,):
                limits.check(name, number)

    def derived(self, **values: Any) -> Self:
        """Return a copy with values computed from checked ones, as numbers or tensors.

        They are not checked, because each update makes such copies, and reading a tensor waits for the GPU.
        """
        made = object.__new__(type(self))
        vars(made).update(vars(self), **values)
        return made


@dataclass(frozen=True)
class VecConfig(Section):
    """Vectorization of the environments. These are the arguments of pufferlib.vector.make."""

    backend: str = "native"
    """Backend: native (one environment object that is a batch itself), Serial, Multiprocessing or Ray."""
    num_envs: Count = 1
    """Number of environment objects. A native one counts once, whatever its env.num_envs."""
    num_workers: OptionalCount = None
    """Number of worker processes or Ray actors. Unset means the largest divisor of num_envs up to the usable cores."""
    batch_size: OptionalCount = None
    """Number of environments per batch. If it is below num_envs, the other environments step meanwhile."""
    zero_copy: bool = True
    """Return batches as slices of shared memory, without copying."""
    overwork: bool = False
    """Allow more workers than cores."""
    timeout_s: float = 120.0
    """Maximum time in seconds to build, reset or step one environment in a worker. 0 means no limit."""
    on_crash: str = "raise"
    """Reaction to a crashed worker, or with Serial to an exception: raise an error, or restart the environments."""
    record: str = ""
    """Folder for replays: each environment records all of its actions there. Empty means no recording."""


@dataclass(frozen=True)
class PolicyConfig(Section):
    """Policy network."""

    name: str = "Default"
    """Policy: Default, NatureCNN, ResNet, MixedCNN, one of the environment, or yours as mypkg:Net or my_net.py:Net."""
    hidden_size: Count = 128
    """Width of the hidden layers."""
    num_layers: Count = 2
    """Number of hidden layers of the Default policy."""
    hidden_sizes: Counts = ()
    """Width of each hidden layer of the Default policy, such as 256,128. Empty means num_layers of hidden_size."""
    channels: OptionalCount = None
    """Channels of the first convolution of an image network. Unset means 16 for ResNet, and 32 for the others."""
    networks: Literal["shared", "separate"] = "shared"
    """Networks of actor and critic of the Default policy. Separate ones share no layers, and no memory."""
    critic_hidden_sizes: Counts = ()
    """Width of each hidden layer of a separate critic. Empty means the widths of the actor."""
    activation: Literal["relu", "tanh", "silu", "elu", "gelu"] = "relu"
    """Activation after each hidden layer of the Default policy."""
    layer_norm: bool = False
    """Normalize the outputs of each hidden layer of the Default policy before its activation."""
    orthogonal_init: bool = True
    """Start the Default policy with orthogonal weights and zero biases. Off means PyTorch's own initialization."""
    log_std_init: LogStd = 0.0
    """Logarithm of the standard deviation of continuous actions at the start."""
    state_dependent_std: bool = False
    """Compute the standard deviation of continuous actions from the observation. Its logarithm stays from -5 to 2."""
    memory: Literal["none", "LSTM", "GRU", "MinGRU"] = "none"
    """Recurrent network between the encoder and the decoder. MinGRU is the fastest."""
    memory_layers: Count = 1
    """Number of layers of MinGRU. Counting, and recalling things in order, need two."""


@dataclass(frozen=True)
class TrainConfig(Section):
    """PPO training."""

    seed: Natural = 42
    """Seed of the environments, the initial weights and the sampling."""
    total_timesteps: Steps = 10_000_000
    """Agent-steps of the whole run, of all processes together, rounded up to whole updates."""
    init: str = ""
    """Run, checkpoint or policy file to take the initial weights from. Empty means random weights."""

    device: str = "auto"
    """Torch device: auto, cpu, cuda or cuda:N. With auto, training uses a GPU if there is one."""
    num_threads: OptionalCount = None
    """CPU threads of torch while learning. Unset means 1, or one per core from 500,000 parameters on."""
    act_threads: Count = 1
    """CPU threads of torch while acting. Batches are small then, and the environments use the other cores."""
    overlap: Literal["none", "envs", "learning"] = "none"
    """Step half of the environments while acting for the others (envs), or collect during the update (learning)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Precision of matrix products and convolutions. Weights and losses are always float32."""
    compile: bool = False
    """Compile the learning pass with torch.compile. This takes up to a minute and needs a C++ compiler."""
    cuda_graphs: bool | None = None
    """Launch each acting or gradient step on a GPU as one CUDA graph. Unset means on, except with overlap learning."""
    cpu_offload: bool = False
    """Keep observations in CPU memory and copy one minibatch at a time to the GPU."""

    horizon: CountOrAuto = 0
    """Steps of each agent per update. 0 means 64, or with fewer than 16 agents enough for 1,024 agent-steps."""
    minibatch_size: CountOrAuto = 0
    """Agent-steps per minibatch, a divisor of the agent-steps per update, and with a memory a multiple of horizon. 0
    means a sixteenth, from 64 to 8,192."""
    update_epochs: CountOrAuto = 0
    """Passes over each rollout. 0 means 1 to 10, more for smaller updates, and 1 if minibatch_size is given."""
    accumulate_minibatches: Count = 1
    """Minibatches whose gradients are summed for one optimizer step. Must divide the number of minibatches."""
    optimizer: Literal["adam", "muon"] = "adam"
    """Optimizer. With muon, all matrices except heads and embeddings use Muon, and everything else uses Adam."""
    learning_rate: StepSize = 1e-3
    """Learning rate at the start."""
    lr_schedule: RateSchedule = "linear"
    """Schedule of the learning rate. With adaptive, it rises or falls to keep the KL divergence near target_kl."""
    min_lr_ratio: Share = 0.0
    """Learning rate at the end, or the lowest one with adaptive, as a share of learning_rate."""
    adam_beta1: Decay = 0.9
    """Decay of Adam's mean of gradients, and momentum of Muon."""
    adam_beta2: Decay = 0.999
    """Decay of Adam's mean of squared gradients."""
    adam_eps: NotNegative = 1e-5
    """Adam's epsilon."""
    max_grad_norm: NotNegative = 0.5
    """Maximum gradient norm. Longer gradients are scaled down to it. 0 turns clipping off."""

    gamma: Share = 0.99
    """Discount factor per step."""
    gae_lambda: Share = 0.95
    """Lambda of generalized advantage estimation."""
    vtrace_rho_clip: NotNegative = 0.0
    """V-trace: maximum weight of value errors. 0 means 1, inf no limit. If vtrace_c_clip is 0 too, V-trace is off."""
    vtrace_c_clip: NotNegative = 0.0
    """V-trace: maximum importance weight that passes value errors back to earlier steps. 0 means weight 1."""
    priority_alpha: NotNegative = 0.0
    """Prioritized minibatches: exponent of the advantage in the sampling probability. 0 means uniform minibatches."""
    priority_beta: Share = 0.4
    """Prioritized minibatches: exponent of the importance weights at the start. It rises to 1 over the run."""
    clip_coef: NotNegative = 0.2
    """Clip range of the probability ratio."""
    clip_schedule: Schedule = "constant"
    """Schedule of clip_coef over the run."""
    min_clip_ratio: Share = 0.0
    """Clip range at the end, as a share of clip_coef."""
    vf_coef: NotNegative = 0.5
    """Weight of the value loss."""
    vf_clip_coef: NotNegative = 0.0
    """Clip range of the value update. 0 turns clipping off."""
    ent_coef: Number = 0.01
    """Weight of the entropy bonus."""
    ent_schedule: Schedule = "constant"
    """Schedule of ent_coef over the run."""
    min_ent_ratio: Share = 0.0
    """Entropy bonus at the end, as a share of ent_coef."""
    norm_adv: bool = True
    """Normalize the advantages of each minibatch to mean 0 and standard deviation 1."""
    target_kl: NotNegative = 0.0
    """Skip the rest of an update after a minibatch with a larger KL divergence. An adaptive rate aims at it. 0: off."""
    rescale_actions: bool = False
    """Map [-1, 1] to bounds of actions that differ from it by more than a factor of 2. On except for Ocean."""
    reward_scale: Number = 0.0
    """Factor of rewards in training, not of scores. 0 means 1, or less if the discounted returns deviate by over 2 and
    rewards are not normalized."""
    reward_clip: NotNegative = 0.0
    """Maximum absolute value of scaled rewards. 0 turns clipping off."""
    normalize_observations: bool | None = None
    """Normalize observations by their running mean and variance, saved with the policy. Unset means on for Python
    environments with floats beyond -1 and 1, unless restart_share is set."""
    normalize_rewards: bool | None = None
    """Divide rewards by the running standard deviation of discounted returns. Unset means on for Python environments,
    unless reward_scale, reward_clip or restart_share is set."""
    novelty_coef: NotNegative = 0.0
    """Bonus in training, not in scores, for an observation of integers that is new in its episode, divided by the
    square root of its count in the run. 0 turns it off."""

    checkpoint_interval: Natural = 100
    """Updates between checkpoints. 0 saves only at the end, and after the best evaluations if eval.interval is set."""
    keep_checkpoints: Natural = 3
    """Number of latest checkpoints to keep, in addition to the best one. 0 keeps all."""
    save_games: Literal["safe", "pickle", "none"] = "safe"
    """Environments saved in checkpoints: those whose state is plain data (safe), all that can be pickled, or none."""
    exact_resume: bool = False
    """Start new episodes every checkpoint_interval updates. A run that is resumed from such a checkpoint is
    bit-identical to an uninterrupted one."""
    restart_share: Share = 0.0
    """Share of episodes that start from a saved state of an earlier rollout. They do not count in scores."""
    restart_states: Count = 64
    """Number of states to keep for restart_share, those whose actions had the largest advantages."""

    processes: Count = 1
    """Number of training processes (ranks), each with vec.num_envs environments and its share of the cores or a GPU."""
    processes_timeout: Seconds = DEFAULT_TIMEOUT_S
    """Maximum time in seconds that a rank waits for the others."""
    launcher: Literal["local", "ray"] = "local"
    """Launcher of the other ranks: on this machine (local), or on the nodes of a Ray cluster (ray)."""
    ray_address: str = ""
    """Address of the Ray cluster, such as 10.0.0.1:6379. Empty means RAY_ADDRESS, or a new cluster on this machine."""
    ray_cpus: Count = 1
    """CPUs of the Ray cluster to reserve for each rank."""


@dataclass(frozen=True)
class EvalConfig(Section):
    """Evaluation of a trained policy."""

    episodes: Count = 32
    """Number of complete episodes, each with its own seed."""
    seed: Natural = 1
    """Seed of the environments and the sampling."""
    max_steps: Count = 20_000
    """Steps after which an episode is stopped and left out of the score."""
    greedy: bool = False
    """Take the most likely action instead of sampling."""
    video_seconds: NotNegative = 600.0
    """Maximum length in seconds of the video of the first episode. 0 means no limit."""
    interval: Natural = 0
    """Agent-steps between evaluations during training, which then choose the best checkpoint. 0 means none."""
    interval_episodes: Count = 32
    """Number of episodes of each evaluation during training."""


@dataclass(frozen=True)
class StopConfig(Section):
    """Early stopping, before train.total_timesteps."""

    score: Number = math.inf
    """Mean score at which to stop, of an evaluation if eval.interval is set, or of recent episodes. inf means never."""
    episodes: Count = 100
    """Minimum number of recent training episodes in the mean score. Evaluations during training replace them."""
    patience: Natural = 0
    """Agent-steps without a better mean score after which to stop. 0 means never."""
    seconds: NotNegative = 0.0
    """Maximum time in seconds of training and evaluations. 0 means no limit."""


@dataclass(frozen=True)
class SelfplayConfig(Section):
    """Self-play against a pool of earlier policies, for games with two sides."""

    opponents: Natural = 0
    """Number of frozen policies that play at the same time. 0 means no pool: the policy plays all sides."""
    share: Share = 0.5
    """Share of games against a frozen policy. In the other games the policy plays both sides."""
    snapshot_interval: Count = 10
    """Updates between two additions to the pool. The first follows the first rollout."""
    pool_size: Count = 16
    """Maximum number of policies in the pool. The oldest is removed first."""
    draw: Literal["elo", "newest", "uniform"] = "elo"
    """Choice of opponents for a rollout: with elo, policies near or above the current strength play most."""
    elo_k: NotNegative = 4.0
    """K factor of the Elo ratings."""


@dataclass(frozen=True)
class WandbConfig:
    """Weights & Biases."""

    project: str = ""
    """Project of the run. Empty means WANDB_PROJECT, or else "pufferlib"."""
    entity: str = ""
    """User or team that owns the project. Empty means WANDB_ENTITY, or else the default of your account."""
    group: str = ""
    """Group of the run. Empty means WANDB_RUN_GROUP, or else one group for all seeds of one command."""
    mode: Literal["auto", "online", "offline", "disabled"] = "auto"
    """Upload: auto means WANDB_MODE, or else online. With offline, use wandb sync to upload later."""


@dataclass(frozen=True)
class TrackConfig(Section):
    """Name and tags of the run, and trackers that receive its metrics."""

    loggers: tuple[str, ...] = ()
    """Trackers: csv, tensorboard, wandb, or your own class as path/to/my_logger.py:MyLogger or module:MyLogger."""
    name: str = ""
    """Name of the run, used for its folder and in every tracker."""
    tags: tuple[str, ...] = ()
    """Tags to find the run by."""
    interval: NotNegative = 1.0
    """Minimum time in seconds between two updates sent to TensorBoard or Weights & Biases. 0 sends all of them."""
    wandb: WandbConfig = field(default_factory=WandbConfig)
    """Weights & Biases."""


@dataclass(frozen=True)
class Config:
    """Settings of a run."""

    env_name: str
    """Name of the environment, as for pufferlib.make. Paths of files are absolute."""
    env: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment, which checks them itself."""
    vec: VecConfig = field(default_factory=VecConfig)
    """Vectorization."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    """Policy network."""
    train: TrainConfig = field(default_factory=TrainConfig)
    """PPO training."""
    eval: EvalConfig = field(default_factory=EvalConfig)
    """Evaluation of a trained policy."""
    stop: StopConfig = field(default_factory=StopConfig)
    """Early stopping."""
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    """Self-play."""
    track: TrackConfig = field(default_factory=TrackConfig)
    """Name, tags and trackers of the run."""

    def override(self, settings: Mapping[str, Any]) -> "Config":
        """Return a copy with other values by dotted name, such as ``{"train.seed": 7}``. Their types are not checked.

        Raises:
            APIUsageError: A number is out of range.
            TypeError: A setting does not exist.
            AttributeError: A section does not exist.
        """
        values = nest(settings, setting_names())
        env = {**self.env, **values.pop("env", {})}
        return dataclasses.replace(self, env=env, **_replaced(self, values))

    def with_full_names(self) -> "Config":
        """Return these settings with absolute paths, so that a run finds its files from any folder."""
        init = self.train.init and str(user_path(self.train.init).absolute())
        return dataclasses.replace(
            self,
            env_name=registry.full_name(self.env_name),
            policy=dataclasses.replace(self.policy, name=registry.full_name(self.policy.name)),
            train=dataclasses.replace(self.train, init=init) if init else self.train,
            track=dataclasses.replace(self.track, loggers=tuple(map(registry.full_name, self.track.loggers))),
        )

    def located(self, folder: Path) -> "Config":
        """Return these settings with the new paths of files that were moved together with ``folder``.

        Searches ``folder``, the current folder and their parents for the files of the environment and the policy, and
        warns about each new path.
        """
        names = {"env_name": self.env_name, "policy.name": self.policy.name}
        found = {key: registry.moved_name(name, (folder, Path.cwd())) for key, name in names.items()}
        for key, name in names.items():
            if found[key] != name:
                warnings.warn(f"{folder}: {name} is not there; {found[key]} is used as {key} instead", stacklevel=3)
        policy = dataclasses.replace(self.policy, name=found["policy.name"])
        return dataclasses.replace(self, env_name=found["env_name"], policy=policy)

    def save(self, path: Path) -> None:
        """Write the settings as TOML. Unset ones are left out."""
        replace_file(path, self.to_toml())

    def to_toml(self) -> str:
        """Return the settings as TOML."""
        return "\n".join(to_toml(self.as_dict())) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the settings as nested dicts of plain values."""
        plain = {key: to_plain(value) for key, value in self.env.items()}
        return {**dataclasses.asdict(dataclasses.replace(self, env={})), "env": plain}

    @classmethod
    def load(cls, path: Path, overrides: Mapping[str, Any] | None = None) -> "Config":
        """Read a file that ``save`` wrote.

        Settings that this version of the library does not have are left out, with a warning.

        Args:
            path: TOML file, such as the ``config.toml`` of a run.
            overrides: Settings that replace those of the file, such as ``{"train.learning_rate": 3e-4}``.

        Raises:
            APIUsageError: The file is missing or not valid TOML, or a value has the wrong type.
            UnknownNameError: A key of ``overrides`` does not exist.
        """
        return cls._of(str(path), read_toml(path), overrides)

    @classmethod
    def parse(cls, where: str, text: str, overrides: Mapping[str, Any] | None = None) -> "Config":
        """Read ``text`` like ``load`` reads a file. Error messages start with ``where``."""
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
        sources = [(where, data), (CALLER, nest(overrides or {}, setting_names()))]
        return cls(name, **merge_sources(cls, sources))


def load_config(env_name: str, overrides: Mapping[str, Any] | None = None, file: Path | str | None = None) -> Config:
    """Return the settings for an environment: the defaults, then its own, then ``file``, then ``overrides``.

    A table such as ``["Hopper-v5".train]`` or ``["*-ram".policy]`` in a file applies to the environments that its name
    matches. In each file, the general sections apply first, then the matching patterns in the order of the file, then
    the table with the exact name.

    Args:
        env_name: Name of the environment. "breakout" reads ``ocean/breakout/train.toml``, "atari/pong"
            ``bindings/atari/train.toml``, "path/to/corridor.c" the ``corridor.toml`` beside it, and
            "path/to/my_env.py:Forage" the ``my_env.toml`` beside it. A registered environment has the settings that it
            was registered with.
        overrides: Settings by dotted name, such as ``{"train.learning_rate": 3e-4}``.
        file: TOML file with a table for each section, or the ``config.toml`` of a run. Settings for a GPU are in tables
            such as ``[cuda.train]``, and settings for the policy Default in ``[perceptron.policy]``. An ``env_name`` in
            the file is ignored.

    Raises:
        UnknownNameError: A setting does not exist, or a table of a file matches no environment. The message suggests
            the nearest names.
        APIUsageError: A value has the wrong type or is out of range, or a file cannot be read.
    """
    env_name = registry.full_name(env_name.removeprefix("puffer_"))
    return Config(env_name, **merge_sources(Config, load_sources(env_name, overrides, file))).with_full_names()


def load_sources(
    env_name: str, overrides: Mapping[str, Any] | None = None, file: Path | str | None = None
) -> list[Source]:
    """Return the sources that ``load_config`` merges, in the order in which they apply.

    Returns:
        Name in messages, and settings by section, of each source.
    """
    env_name = registry.full_name(env_name.removeprefix("puffer_"))
    sections = [*get_type_hints(Config), *CONDITIONS, "sweep"]
    parts = [part for own in own_settings(env_name) for part in split_by_env(own, env_name, sections, names_beside)]
    if file is not None:
        parts += split_by_env(settings_file(Path(file)), env_name, sections, all_names, elsewhere=True)
    called = (CALLER, nest(overrides or {}, setting_names()))
    return for_run([default_settings(), *parts, called])


def _replaced(section: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``values`` with a changed copy of the section's own table for each table."""
    own = {name: getattr(section, name) for name, value in values.items() if isinstance(value, dict)}
    return {**values, **{name: dataclasses.replace(own[name], **_replaced(own[name], values[name])) for name in own}}


def setting_names() -> list[str]:
    """Return every setting as ``section.name``."""
    return names_in(Config)
