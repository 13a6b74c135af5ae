"""Time of one step of an exported agent, in C and in ONNX Runtime, beside the engine in Python and torch.

    python benchmarks/export.py breakout --runs runs

All answer the same observations of the environment, one after another on one core, in turns; a figure is the least of
its turns, in time of the processor. The memory is carried along in C and by the engine; nothing is reset.
"""

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent))  # left out by PYTHONSAFEPATH, which the images set

import report

from pufferlib.export.exported import write_checked
from pufferlib.export.graph import Graph, quietly
from pufferlib.export.recording import record
from pufferlib.export.trained import TrainedPolicy, open_trained
from pufferlib.models.engine import compile_policy
from pufferlib.native.compiler import find_compiler
from pufferlib.train.runs import RUNS, find_run

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
    double begin = now();
    for (long i = 0; i < rows * turns; i++) {name}_agent_act(&agent, (const void *)(seen + i % rows * {bytes}), action);
    printf("%g", (now() - begin) / rows / turns);
}}
"""

Step = Callable[[int], Any]


def c_agent(trained: TrainedPolicy, folder: Path, rows: Any) -> Callable[[float], float]:
    """A program that times the C agent, compiled as its users would."""
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
    """One step of each contestant in Python, for row i of the observations."""
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


def us_per_step(step: Step, rows: int, seconds: float) -> float:
    """Microseconds of a step."""
    count, begin = 0, time.process_time()
    while (spent := time.process_time() - begin) < seconds:
        for i in range(min(rows, 50)):
            step(i)
        count += min(rows, 50)
    return 1e6 * spent / count


def main() -> None:
    """Measure in turns, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run")
    parser.add_argument("--runs", type=Path, default=RUNS)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of each contestant in a turn")
    options = parser.parse_args()
    torch.set_num_threads(1)
    found = find_run("benchmarks/export.py", options.run, options.runs)
    with open_trained(found.settings(), found) as trained, tempfile.TemporaryDirectory() as name:
        rows = record(trained, 500).observations[:, 0]
        compiled, steps = c_agent(trained, Path(name), rows), steps_of(trained, Path(name), rows)
        found_us: dict[str, list[float]] = {"C": [], **{key: [] for key in steps}}
        with torch.inference_mode():
            for _ in range(options.turns):
                found_us["C"].append(compiled(options.seconds))
                for key, step in steps.items():
                    found_us[key].append(us_per_step(step, len(rows), options.seconds))
    least = {key: min(us) for key, us in found_us.items()}
    print(f"{trained.env_name}, us a step; {report.cpu()}, one core")
    for key, us in sorted(least.items(), key=lambda item: item[1]):
        print(f"{key:<26}{us:9.2f}  {us / least['C']:7.1f} x  (median {statistics.median(found_us[key]):.2f})")


if __name__ == "__main__":
    main()
