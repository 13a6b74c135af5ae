"""The page "Coming from PufferLib 2 and 3" has every public name of both, with correct replacements."""

import dataclasses
import importlib
import re
from pathlib import Path

import pytest

from pufferlib.cli import VERBS
from pufferlib.settings.config import Config

PAGE = Path(__file__).parents[2] / "docs" / "coming-from-pufferlib.md"
ROW = re.compile(r"^\| `([^`]+)` \| ([23, ]+) \| (.+) \|$", re.MULTILINE)
ROWS = [row.groups() for row in ROW.finditer(PAGE.read_text(encoding="utf-8"))]

#: Classes and functions of PufferLib 3.0.0, by module. The package itself exports the names of pufferlib/pufferlib.py.
OF_3 = {
    "": """set_buffers PufferEnv ResizeObservation ClipAction EpisodeStats PettingZooWrapper MeanOverAgents
        MultiagentEpisodeStats EnvironmentSetupError APIUsageError InvalidAgentError GymToGymnasium
        PettingZooTruncatedWrapper unroll_nested_dict silence_warnings Suppress""",
    ".emulation": """emulate make_buffer nativize get_dtype_bounds dtype_from_space flatten_space
        emulate_observation_space emulate_action_space GymnasiumPufferEnv PettingZooPufferEnv pad_agent_data
        make_object check_space GymnaxPufferEnv""",
    ".models": "Default LSTMWrapper Convolutional ProcgenResnet ResidualBlock ConvSequence",
    ".pufferl": """PuffeRL compute_puff_advantage abbreviate duration fmt_perf dist_sum dist_mean Profile Utilization
        downsample NoLogger NeptuneLogger WandbLogger train eval sweep profile export autotune load_env load_policy
        load_config main""",
    ".pytorch": """nativize_dtype round_to nativize_tensor compilable_cast nativize_observation flattened_tensor_size
        layer_init log_prob entropy entropy_probs sample_logits""",
    ".spaces": "joint_space",
    ".sweep": """Space Linear Pow2 Log Logit Hyperparameters pareto_points Random ParetoGenetic create_gp Protein
        Carbs""",
    ".vector": "recv_precheck send_precheck reset step Serial Multiprocessing Ray make make_seeds check_envs autotune",
}
#: Names of 2.0.6 that 3 has removed or moved.
ONLY_OF_2 = {
    ".cleanrl": "Policy RecurrentPolicy",
    ".environment": "PufferEnv",
    ".exceptions": "APIUsageError InvalidAgentError",
    ".namespace": "Namespace namespace dataclass",
    ".policy_pool": "PolicyPool",
    ".policy_ranker": "Ranker",
    ".policy_store": "PolicyStore",
    ".postprocess": "EpisodeStats MultiagentEpisodeStats MeanOverAgents",
    ".pytorch": "BatchFirstLSTM",
    ".utils": "Profiler profile validate_args install_and_import check_env compare_space_samples",
    ".wrappers": "GymToGymnasium PettingZooTruncatedWrapper",
}
COMMANDS_OF_3 = "train eval sweep autotune profile export"
#: Flags and settings of 3.0.0.
FLAGS_OF_3 = """load-model-path load-id render-mode save-frames gif-path fps max-runs wandb wandb-project wandb-group
    neptune neptune-name neptune-project local-rank tag"""
VEC_OF_3 = "backend num-envs num-workers batch-size zero-copy seed"
TRAIN_OF_3 = """name project seed torch-deterministic cpu-offload device optimizer anneal-lr precision total-timesteps
    learning-rate gamma gae-lambda update-epochs clip-coef vf-coef vf-clip-coef max-grad-norm ent-coef adam-beta1
    adam-beta2 adam-eps data-dir checkpoint-interval batch-size minibatch-size max-minibatch-size bptt-horizon compile
    compile-mode compile-fullgraph vtrace-rho-clip vtrace-c-clip prio-alpha prio-beta0 use-rnn"""


def resolve(dotted):
    """Return the module or attribute with this dotted name.

    Raises:
        AttributeError: There is no such attribute.
        ModuleNotFoundError: There is no such module.
    """
    module, _, rest = dotted, "", ""
    while True:
        try:
            value = importlib.import_module(module)
            break
        except ModuleNotFoundError:
            module, _, last = module.rpartition(".")
            rest = f"{last}.{rest}".rstrip(".")
    for name in rest.split(".") if rest else []:
        value = getattr(value, name)
    return value


def check(old, here):
    if here.startswith("absent: "):
        assert len(here) > len("absent: ") + 10, "give a reason"
        return
    new = old if here == "same" else re.match("`([^`]+)`", here)[1]
    if new.startswith("puffer "):
        assert new.split()[1] in VERBS
    elif new.startswith("--"):
        section, _, name = new[2:].replace("-", "_").partition(".")
        if new != "--runs":
            kinds = {field.name: field.type for field in dataclasses.fields(Config)}
            assert name in {field.name for field in dataclasses.fields(kinds[section])}
    else:
        assert resolve(new) is not None


def test_every_row_of_the_page_is_correct():
    for old, _, here in ROWS:
        try:
            check(old, here)
        except Exception as error:
            pytest.fail(f"the row of {old} names {here}: {error!r}")
        if old.startswith("pufferlib.") and here.startswith("absent"):
            with pytest.raises((AttributeError, ModuleNotFoundError)):
                resolve(old)


def test_page_lists_every_name_command_and_flag_once():
    names = [
        f"pufferlib{module}.{name}" for of in (OF_3, ONLY_OF_2) for module, all_ in of.items() for name in all_.split()
    ]
    commands = [f"puffer {verb} ENV" for verb in COMMANDS_OF_3.split()]
    flags = [f"--{name}" for name in FLAGS_OF_3.split()]
    flags += [f"--vec.{name}" for name in VEC_OF_3.split()] + [f"--train.{name}" for name in TRAIN_OF_3.split()]
    expected = [*names, *commands, *flags]
    assert len(expected) > 150
    listed = [old for old, _, _ in ROWS]
    assert len(listed) == len({*listed})
    assert not {*expected} - {*listed}
    of_3 = [f"pufferlib{module}.{name}" for module, all_ in OF_3.items() for name in all_.split()] + commands + flags
    assert {old for old, versions, _ in ROWS if "3" in versions} == {*of_3}
