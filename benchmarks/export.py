"""Time of one step of an exported agent in C and ONNX Runtime, compared with our engine in Python and torch.

    python benchmarks/export.py             # the agent that ships with breakout
    python benchmarks/export.py --quick     # quick check

All contestants process the same observations, one at a time on one core, and take turns. Figures are CPU time. C and
the engine keep the recurrent state from step to step, and it is never reset. Also writes
benchmarks/results/export.json.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import OURS, Row
from sides import Sides
from turns import Measure, main

from pufferlib.exports import TrainedPolicy, open_trained
from pufferlib.exports.exported import write_checked
from pufferlib.exports.recording import record
from pufferlib.exports.torch_formats import Graph, quietly
from pufferlib.models.engine import compile_policy
from pufferlib.native.compiler import find_compiler
from pufferlib.runs import shipped_agent

TIMED = """
#include "agent.c"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e6 * t.tv_sec + t.tv_nsec / 1e3;
}}
int main(int argc, char **argv) {{
    const long rows = atol(argv[argc - 2]), turns = atol(argv[argc - 1]);
    char *seen = malloc(rows * {bytes});
    static {name}_agent agent;
    {action} action[{size}];
    if (fread(seen, {bytes}, rows, stdin) != (size_t)rows) return 1;
    {name}_agent_init(&agent, 1);
    double start = now();
    for (long i = 0; i < rows * turns; i++) {name}_agent_act(&agent, (const void *)(seen + i % rows * {bytes}), action);
    printf("%g", (now() - start) / rows / turns);
}}
"""

ENV = "breakout"
Step = Callable[[int], Any]


def c_agent(trained: TrainedPolicy, folder: Path, rows: Any) -> Callable[[float], float]:
    """Return a function that times the C agent, which is compiled as its users would do it."""
    write_checked(trained, "c", folder / "agent.c")
    space = trained.policy.distribution
    action = "float" if trained.policy.is_continuous else "int32_t"
    text = TIMED.format(name=trained.name, bytes=trained.row_bytes, action=action, size=int(np.prod(space.shape)))
    (folder / "timed.c").write_text("#define _POSIX_C_SOURCE 199309L\n" + text)
    done = find_compiler("export").run(["-O2", folder / "timed.c", "-lm", "-o", folder / "timed"])
    assert done.returncode == 0, done.stderr

    def us_per_step(seconds: float) -> float:
        turns = 1
        while True:
            command = [str(folder / "timed"), str(len(rows)), str(turns)]
            us = float(subprocess.run(command, input=rows.tobytes(), capture_output=True, check=True).stdout)
            if us * len(rows) * turns >= seconds * 1e6:
                return us
            turns = int(turns * max(2, 1.2 * seconds * 1e6 / (us * len(rows) * turns)))

    return us_per_step


def steps_of(trained: TrainedPolicy, folder: Path, rows: Any) -> dict[str, Step]:
    """Return a function for each contestant in Python that processes row ``i`` of the observations."""
    import onnxruntime

    policy, graph = trained.policy, Graph(trained)
    engine = compile_policy(policy)
    arrays = [np.ascontiguousarray(row[None]) for row in rows]
    tensors = [torch.from_numpy(row) for row in arrays]
    params, values = np.empty((1, policy.distribution.num_params), np.float32), np.empty(1, np.float32)
    ours, theirs = policy.initial_state(1), policy.initial_state(1)
    write_checked(trained, "onnx", folder / "agent.onnx")
    write_checked(trained, "torch", folder / "agent.pt2")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "agent.onnx"), options, providers=["CPUExecutionProvider"])
    with quietly():
        program = torch.export.load(folder / "agent.pt2").module()
    memory = {name: each.numpy() for name, each in zip(graph.input_names[1:], ours.values(), strict=True)}
    steps: dict[str, Step] = {
        "ONNX Runtime, in Python": lambda i: session.run(None, {"observation": arrays[i], **memory}),
        "torch": lambda i: policy.forward_eval(tensors[i], theirs),
        "program of torch.export": lambda i: program(tensors[i], *theirs.values()),
    }
    if engine is not None:
        steps["engine, in Python"] = lambda i: engine.forward(arrays[i], ours, params, values)
    return steps


@torch.inference_mode()
def us_per_step(step: Step, rows: int, seconds: float) -> float:
    """Return the CPU time of a step in microseconds."""
    count, start = 0, time.process_time()
    while (spent := time.process_time() - start) < seconds:
        for i in range(min(rows, 50)):
            step(i)
        count += min(rows, 50)
    return 1e6 * spent / count


def rows(stack: ExitStack, sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the row with the measurements of its contestants. ``stack`` closes their resources."""
    torch.set_num_threads(1)
    found = shipped_agent("benchmarks/export.py", ENV)
    trained = stack.enter_context(open_trained(found.settings(), found))
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    seen = record(trained, 500).observations[:, 0]
    calls: dict[str, Measure] = {OURS: partial(c_agent(trained, folder, seen), sides.seconds)}
    for key, step in steps_of(trained, folder, seen).items():
        calls[key] = partial(us_per_step, step, len(seen), sides.seconds)
    yield Row(f"a step of the agent of {ENV}, exported to C", "us"), calls


if __name__ == "__main__":
    with ExitStack() as stack:
        main(__doc__, __file__, partial(rows, stack), (), minutes=1, rounds=5, seconds=0.3)
