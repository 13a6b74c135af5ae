"""Writer of C files with an agent: the inference engine, the weights, and a few functions. A check compiles them."""

import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pufferlib import __version__
from pufferlib.errors import APIUsageError, PufferError
from pufferlib.exports.c_graph import GraphCode, graph_code
from pufferlib.exports.c_tables import LETTERS, Constants, row_width
from pufferlib.exports.recording import Outputs, Recording
from pufferlib.exports.trained import Field, TrainedPolicy
from pufferlib.models.engine import TYPES, UnknownLayerError, network_spec
from pufferlib.models.network_spec import NetworkSpec
from pufferlib.native.compiler import HEADERS, find_compiler

__all__ = ["c_files", "c_header", "c_source", "play_c"]


# Files of the engine, in the order of their dependencies.
PARTS = ("puffer_math.h", "puffer_kernels.h", "puffer_network.h", "puffer_agent.h")
C_TYPES = {
    "?": "uint8_t",
    "b": "int8_t",
    "B": "uint8_t",
    "h": "int16_t",
    "H": "uint16_t",
    "i": "int32_t",
    "I": "uint32_t",
    "q": "int64_t",
    "Q": "uint64_t",
    "e": "uint16_t",
    "f": "float",
    "d": "double",
}
FLAGS = ("-std=c99", "-O2")

# Keywords of C and C++, which may be keys of observations.
KEYWORDS = {
    "alignas", "alignof", "and", "asm", "auto", "bool", "break", "case", "catch", "char", "class", "const",
    "constexpr", "continue", "default", "delete", "do", "double", "else", "enum", "explicit", "export", "extern",
    "false", "float", "for", "friend", "goto", "if", "inline", "int", "long", "mutable", "namespace", "new",
    "noexcept", "not", "nullptr", "operator", "or", "private", "protected", "public", "register", "restrict",
    "return", "short", "signed", "sizeof", "static", "static_assert", "struct", "switch", "template", "this",
    "thread_local", "throw", "true", "try", "typedef", "typeid", "typename", "typeof", "union", "unsigned", "using",
    "virtual", "void", "volatile", "wchar_t", "while", "xor",
}  # fmt: skip


def c_source(trained: TrainedPolicy) -> str:
    """Return the text of a C file with the agent.

    Raises:
        APIUsageError: The policy has a part that cannot be translated to C.
    """
    return c_files(trained)[0]


def c_header(trained: TrainedPolicy) -> str:
    """Return the text of a C header with the struct and the functions of the agent. It raises as ``c_source``."""
    return c_files(trained)[1]


def c_files(trained: TrainedPolicy) -> tuple[str, str]:
    """Return the texts of ``c_source`` and ``c_header``."""
    network = _network(trained)
    header = _header(trained, network)
    tables = Constants(trained.name)
    if isinstance(network, GraphCode):
        tables.lines += network.constants
    else:
        tables.network(network, int(np.prod(network.observation_shape)) * network.observation_dtype.itemsize)
    tables.agent(trained, trained.vecenv.single_action_space)
    includes, engine = _engine()
    parts = [
        header,
        "/* ---- Engine: the same for every agent --------------------------------------------------------------- */",
        "\n".join(sorted(includes)),
        engine,
        f"/* ---- Weights of {trained.env_name} ---- */",
        "#define PUFFER_ALIGNED __attribute__((aligned(64)))",
        "\n".join(tables.lines),
        _functions(trained, network),
        _main(trained),
    ]
    return "\n\n".join(parts) + "\n", header


def _header(trained: TrainedPolicy, network: NetworkSpec | GraphCode) -> str:
    name, guard = trained.name, f"{trained.name.upper()}_AGENT_H"
    lines = [
        f"/* {trained.env_name}: a trained agent, by pufferlib {__version__}. It needs libc and libm, and allocates",
        f" * nothing: {name}_agent is all of its memory. Use one for each agent of a game, on any thread.",
        " *",
        f" *     static {name}_agent agent;",
        f" *     {name}_agent_init(&agent, 1);     once, with the seed for sampling",
        f" *     {name}_agent_reset(&agent);       at the start of each episode, to clear its memory",
        f" *     {name}_agent_act(&agent, {_given(trained)}, {_taken(trained)});",
        " *",
        f" * Observation: {_observation_text(trained)}.",
        f" * Action: {_action_text(trained)}.",
        " */",
        f"#ifndef {guard}\n#define {guard}",
        "#include <stdint.h>",
        '#ifdef __cplusplus\nextern "C" {\n#endif',
        *_observation_struct(trained),
        *_struct(trained, network),
        *(f"{prototype};" for prototype in _prototypes(trained)),
        "#ifdef __cplusplus\n}\n#endif",
        f"#endif /* {guard} */",
    ]
    return "\n".join(lines)


def _network(trained: TrainedPolicy) -> NetworkSpec | GraphCode:
    """Return the policy as tables for the engine, or else as code."""
    try:
        return network_spec(trained.policy)
    except UnknownLayerError as error:
        layer = error
    try:
        return graph_code(trained)
    except UnknownLayerError as error:
        raise APIUsageError(
            f"export: C does not support a layer of this policy: {layer}, nor {error}; it supports Default, NatureCNN "
            "and MixedCNN, alone or with an LSTM, GRU or MinGRU, and simple operations of torch; export it as onnx or "
            "torch"
        ) from error


def _engine() -> tuple[set[str], str]:
    """Return the includes of the engine, and its code without includes."""
    includes: set[str] = set()
    bodies = []
    for part in PARTS:
        text = (HEADERS / part).read_text("utf-8")
        includes |= set(re.findall(r"^#include <.*>$", text, re.MULTILINE))
        text = re.sub(r"^#include .*\n", "", text, flags=re.MULTILINE)
        text = re.sub(r"^#ifndef (PUFFER_\w+_H)\n#define \1\n", "", text, flags=re.MULTILINE)
        bodies.append(re.sub(r"#endif\s*\Z", "", text).strip())
    return includes, re.sub(r"\n{3,}", "\n\n", "\n\n".join(bodies))


def _prototypes(trained: TrainedPolicy) -> list[str]:
    name = trained.name
    action = "float" if trained.policy.is_continuous else "int32_t"
    return [
        f"void {name}_agent_init({name}_agent *agent, uint64_t seed)",
        f"void {name}_agent_reset({name}_agent *agent)",
        f"void {name}_agent_act({name}_agent *agent, const {_c_type(trained)} *observation, {action} *action)",
    ]


def _struct(trained: TrainedPolicy, network: NetworkSpec | GraphCode) -> Iterator[str]:
    """Yield the lines of the agent's struct: the public fields, then buffers for the layers."""
    yield "typedef struct {"
    yield "    int32_t greedy; /* 1: most likely action, 0: sampled action */"
    yield "    uint64_t random; /* state of the random generator */"
    yield f"    float params[{network.num_params}]; /* {_params_text(trained)}, of the last step */"
    yield "    float value; /* expected return, of the last step */"
    yield from network.fields if isinstance(network, GraphCode) else _buffers(network)
    if trained.limit:
        space = trained.policy
        count = int(np.prod(space.observation_shape)) * space.observation_dtype.itemsize
        yield f"    float row[{-(-count // 4)}];"
    yield f"}} {trained.name}_agent;"


def _buffers(spec: NetworkSpec) -> Iterator[str]:
    width = row_width(spec)
    if sizes := _memory_sizes(spec):
        yield f"    float memory[{len(sizes)}][{max(sizes)}];"
    yield f"    float x[{width}]; /* buffer between the layers, like all fields below */"
    yield f"    float y[{len(spec.trunks)}][{width}];"
    if spec.image is not None and spec.image_layer is not None:
        sizes = [each.out_height * each.out_width * len(each.matrix.weight) for each in spec.convolutions]
        yield f"    float flat[{len(spec.image_layer.places)}], pixels[2][{max(spec.image.size, *sizes)}];"
    if spec.trunks[0].labels is not None:
        yield f"    int32_t chosen[{1 + sum(each.size for each in spec.inputs if each.encoding == 'labels')}];"


def _memory_sizes(spec: NetworkSpec) -> list[int]:
    """Return the width of each array of memory."""
    memories = [trunk.memory for trunk in spec.trunks if trunk.memory is not None]
    return [memory.size for memory in memories for _ in memory.names]


def _functions(trained: TrainedPolicy, network: NetworkSpec | GraphCode) -> str:
    init, reset, act = _prototypes(trained)
    if isinstance(network, GraphCode):
        memory, lines = network.memory, list(_graph_lines(trained, network))
    else:
        memory = ["agent->memory"] if _memory_sizes(network) else []
        lines = list(_actor_lines(trained, network))
    forget = [f"    memset({each}, 0, sizeof({each}));" for each in memory] or ["    (void)agent;"]
    return "\n".join(
        [
            f"{init} {{",
            "    memset(agent, 0, sizeof(*agent));",
            f"    agent->greedy = {int(trained.greedy)};",
            "    agent->random = seed;",
            "}\n",
            f"{reset} {{",
            *forget,
            "}\n",
            f"{act} {{",
            *lines,
            "}",
        ]
    )


def _graph_lines(trained: TrainedPolicy, code: GraphCode) -> Iterator[str]:
    """Yield the body of the function that acts, for a policy that was translated to code."""
    spec = f"&{trained.name}_agent_spec"
    kind = C_TYPES[TYPES[trained.policy.observation_dtype]]
    if trained.limit:
        yield f"    puffer_normalize({spec}, (const uint8_t *)observation, (uint8_t *)agent->row);"
    yield f"    const {kind} *seen = (const {kind} *){'agent->row' if trained.limit else 'observation'};"
    yield from code.statements
    how = "numbers" if trained.policy.is_continuous else "values"
    yield f"    puffer_choose_{how}({spec}, agent->params, agent->greedy != 0, &agent->random, action);"


def _actor_lines(trained: TrainedPolicy, spec: NetworkSpec) -> Iterator[str]:
    """Yield the body of the function that acts, for a policy that the engine supports."""
    name = trained.name
    yield "    PufferActor actor;"
    yield "    memset(&actor, 0, sizeof(actor));"
    yield "    actor.scratch.kernels = puffer_kernels(NULL);"
    yield "    actor.scratch.x = agent->x;"
    yield from (f"    actor.scratch.y[{i}] = agent->y[{i}];" for i in range(len(spec.trunks)))
    if spec.image is not None:
        yield "    actor.scratch.flat = agent->flat;"
        yield from (f"    actor.scratch.pixels[{i}] = agent->pixels[{i}];" for i in range(2))
    if spec.trunks[0].labels is not None:
        yield "    actor.scratch.chosen = agent->chosen;"
    if trained.limit:
        yield "    actor.row = (uint8_t *)agent->row;"
    yield from (f"    actor.memory[{i}] = agent->memory[{i}];" for i in range(len(_memory_sizes(spec))))
    yield "    actor.params = agent->params;"
    yield "    actor.value = &agent->value;"
    yield "    actor.random = &agent->random;"
    yield "    actor.greedy = agent->greedy != 0;"
    yield f"    puffer_act(&{name}_network, &{name}_agent_spec, &actor, observation, action);"


def _main(trained: TrainedPolicy) -> str:
    """Return a main function that reads observations from standard input and prints the outputs of the agent."""
    name, size = trained.name, _action_size(trained)
    count = 1 if _has_fields(trained) else max(1, trained.fields[0].size)
    kind, number = ("float", "%.9g") if trained.policy.is_continuous else ("int32_t", "%d")
    return f"""#ifdef {name.upper()}_MAIN
#include <stdio.h>

/* Reads pairs of a byte, which is 1 at the start of an episode, and an observation. Prints a line for each pair: the
 * most likely action, the parameters of the distribution, and the value. */
int main(void) {{
    static {name}_agent agent;
    static {_c_type(trained)} observation[{count}];
    {kind} action[{size}];
    uint8_t begins;
    {name}_agent_init(&agent, 0);
    agent.greedy = 1;
    while (fread(&begins, 1, 1, stdin) == 1 && fread(observation, {trained.row_bytes}, 1, stdin) == 1) {{
        if (begins) {name}_agent_reset(&agent);
        {name}_agent_act(&agent, observation, action);
        for (int i = 0; i < {size}; i++) printf("{number} ", action[i]);
        for (int i = 0; i < {trained.policy.distribution.num_params}; i++) printf("%.9g ", agent.params[i]);
        printf("%.9g\\n", agent.value);
    }}
    return 0;
}}
#endif"""


def _has_fields(trained: TrainedPolicy) -> bool:
    return bool(trained.fields[0].path)


def _c_type(trained: TrainedPolicy) -> str:
    """Return the C type of the elements of an observation."""
    if _has_fields(trained):
        return f"{trained.name}_observation"
    return _type_of(trained.fields[0])


def _type_of(field: Field) -> str:
    return C_TYPES[LETTERS[field.dtype.str[1:]]]


def _observation_struct(trained: TrainedPolicy) -> Iterator[str]:
    """Yield the lines of a struct for an observation of several arrays, with the layout of the environment's rows."""
    if not _has_fields(trained):
        return
    at = 0
    yield "typedef struct {"
    names = _identifiers(trained.fields)
    for index, (field, name) in enumerate(zip(trained.fields, names, strict=True)):
        if field.size:
            if field.offset > at:
                yield f"    uint8_t padding{index}[{field.offset - at}];"
            yield f"    {_type_of(field)} {name}[{field.size}]; /* {_shape_text(field)} */"
            at = field.offset + field.size * field.dtype.itemsize
    if not at:
        yield "    uint8_t nothing[1];"
    yield f"}} {trained.name}_observation;"


def _identifiers(fields: Sequence[Field]) -> list[str]:
    """Return a different name for each field, valid in C and C++."""
    found: list[str] = []
    for field in fields:
        name = re.sub(r"\W", "_", "_".join(field.path), flags=re.ASCII)
        name = f"_{name}" if name[:1].isdigit() else name
        while name in found or name in KEYWORDS or re.fullmatch(r"padding\d+", name):
            name += "_"
        found.append(name)
    return found


def _shape_text(field: Field) -> str:
    return f"{field.dtype} {list(field.shape)}"


def _observation_text(trained: TrainedPolicy) -> str:
    if _has_fields(trained):
        return f"a struct {trained.name}_observation, with the values of the environment"
    return f"{_shape_text(trained.fields[0])}, as returned by the environment"


def _action_size(trained: TrainedPolicy) -> int:
    return int(np.prod(trained.policy.distribution.shape, dtype=np.int64))


def _action_text(trained: TrainedPolicy) -> str:
    distribution: Any = trained.policy.distribution
    if trained.policy.is_continuous:
        floats = f"{_action_size(trained)} floats, within the bounds of the environment"
        places = np.flatnonzero(getattr(distribution, "is_integer", False))
        return f"{floats}; whole numbers in {', '.join(map(str, places))}" if len(places) else floats
    starts = np.broadcast_to(distribution.start, distribution.shape).ravel().tolist()
    ranges = [f"{start} to {start + size - 1}" for start, size in zip(starts, distribution.sizes, strict=True)]
    if len(set(ranges)) == 1:
        return f"{len(ranges)} int32_t, from {ranges[0]}" if len(ranges) > 1 else f"one int32_t, from {ranges[0]}"
    return f"{len(ranges)} int32_t, from {'; '.join(ranges)}"


def _params_text(trained: TrainedPolicy) -> str:
    distribution = trained.policy.distribution
    parts = ["logits"] * (distribution.num_logits > 0)
    parts += ["means", "logarithms of standard deviations"] * trained.policy.is_continuous
    return ", then ".join(parts)


def _given(trained: TrainedPolicy) -> str:
    return "&observation" if _has_fields(trained) else "observation"


def _taken(trained: TrainedPolicy) -> str:
    return "&action" if _action_size(trained) == 1 else "action"


def play_c(source: Path, trained: TrainedPolicy, recording: Recording) -> Outputs:
    """Compile an exported file, run it on the observations of a recording, and return its outputs.

    Raises:
        PufferError: There is no compiler, the file does not compile, or the program fails.
    """
    import subprocess

    with tempfile.TemporaryDirectory(prefix="puffer-export-") as folder:
        program = Path(folder, "agent")
        flag = f"-D{trained.name.upper()}_MAIN"
        done = find_compiler("export").run([*FLAGS, flag, "-x", "c", source, "-x", "none", "-lm", "-o", program])
        if done.returncode:
            raise PufferError(f"export: the C compiler fails on {source}:\n{done.stderr.strip()}")
        finished = subprocess.run([str(program)], input=_input(recording), capture_output=True)
    if finished.returncode:
        raise PufferError(f"export: the compiled agent exited with code {finished.returncode}")
    lines = np.loadtxt(finished.stdout.decode().splitlines(), dtype=np.float64, ndmin=2)
    steps, rows = recording.begins.shape
    table = lines.reshape(rows, steps, -1).swapaxes(0, 1)
    size = table.shape[-1] - recording.outputs.params.shape[-1] - 1
    actions = table[..., :size].reshape(recording.outputs.actions.shape).astype(recording.outputs.actions.dtype)
    return Outputs(table[..., size:-1].astype(np.float32), table[..., -1].astype(np.float32), actions)


def _input(recording: Recording) -> bytes:
    """Return the input of the program: for each agent and step, a flag for the start of an episode and an observation.

    All steps of the first agent come first, then the steps of the next one.
    """
    steps, rows = recording.begins.shape
    seen = np.ascontiguousarray(recording.observations).reshape(steps, rows, -1).view(np.uint8)
    flags = recording.begins.astype(np.uint8)[..., None]
    flags[0] = 1
    return np.concatenate([flags, seen], axis=-1).swapaxes(0, 1).tobytes()
