"""Correctness checks and speed on a GPU: agreement with the CPU, resumed runs, synchronizations, and PufferLib.

    python benchmarks/gpu.py --out gpu.json [--peer-python peers/bin/python] [--quick]

Takes about 10 minutes on a machine with an NVIDIA GPU, or 2 with --quick. For the peer, see requirements.txt. The exit
code is 1 if a check fails. Each printed line contains the name of the GPU. `python benchmarks/speed.py gpu.json`
publishes the speeds.
"""

import argparse
import collections
import copy
import dataclasses
import functools
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

import sides
from report import OURS, PUFFER, Row, machine, write

SMALL = {
    "env.num_envs": 64,
    "env.num_threads": 1,
    "train.horizon": 16,
    "train.minibatch_size": 256,
    "train.total_timesteps": 10**9,
    "policy.hidden_size": 32,
}
LARGE = {"env.num_envs": 8192, "env.num_threads": 8, "train.horizon": 64, "train.minibatch_size": 65_536}
WIDE = {"policy.hidden_size": 512}
MEMORIES = ("none", "MinGRU", "LSTM", "GRU")
SPEEDS: dict[str, dict[str, Any]] = {  # published in docs/speed.md
    "settings of breakout for a GPU: 4,096 games, horizon 32, minibatch 8,192": {},
    "8,192 games, horizon 64, minibatch 65,536": LARGE,
    **{f'the same with `policy.memory = "{name}"`': {**LARGE, "policy.memory": name} for name in MEMORIES[1:]},
    "the same with an LSTM of width 128": {**LARGE, "policy.memory": "LSTM", "policy.hidden_size": 128},
    "8,192 games, width 512, without memory": {**LARGE, **WIDE},
    'the same with `train.precision = "bfloat16"`': {**LARGE, **WIDE, "train.precision": "bfloat16"},
    "8,192 games, an LSTM of width 512": {**LARGE, **WIDE, "policy.memory": "LSTM"},
    'the same LSTM with `train.precision = "bfloat16"`': {
        **LARGE,
        **WIDE,
        "policy.memory": "LSTM",
        "train.precision": "bfloat16",
    },
    "8,192 games without memory, `train.cuda_graphs = false`": {**LARGE, "train.cuda_graphs": False},
}
CLOSE = 1e-4  # maximum relative error of a float32 gradient
WAITS = 20  # maximum number of synchronizations in an update, in addition to one per step


@contextmanager
def training(env: str, overrides: dict[str, Any]) -> Iterator[Any]:
    """Create a trainer, and close it at the end."""
    from pufferlib.training import Trainer, load_config

    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(load_config(env, {"train.checkpoint_interval": 0, **overrides}), folder)
        try:
            yield trainer
        finally:
            trainer.close()


def gradients_of_both() -> dict[str, float]:
    """Return the largest relative error of a gradient on the GPU by memory, with equal minibatches and weights."""
    from pufferlib.training import ppo
    from pufferlib.training.rollout import in_order

    found = {}
    for memory in MEMORIES:
        cpu = {**SMALL, "train.minibatch_size": 1024, "policy.memory": memory, "train.device": "cpu"}
        with training("breakout", cpu) as trainer:
            trainer.step()
            rollout, advantages = trainer.rollout, torch.randn(16, 64)
            draws = in_order(rollout.as_parts(rollout.masks).shape[1], rollout.rows)
            (batch,) = rollout.minibatches(advantages, torch.default_generator, draws=draws)
            results = []
            for device in ("cpu", "cuda"):
                policy = copy.deepcopy(trainer.policy).to(device)
                fields = {name: each.to(device) for name, each in vars(batch).items() if isinstance(each, torch.Tensor)}
                state = {name: each.to(device) for name, each in batch.state.items()}
                ppo.accumulate_gradients(
                    policy, dataclasses.replace(batch, state=state, **fields), trainer.config.train
                )
                results.append([weights.grad.cpu() for weights in policy.parameters()])
        errors = [((ours - theirs).norm() / theirs.norm()).item() for theirs, ours in zip(*results, strict=True)]
        found[memory] = max(errors)
    return found


def weights_with_graphs() -> dict[str, float]:
    """Return the largest relative difference of weights after 3 updates with and without CUDA graphs, by memory."""
    found = {}
    for memory in MEMORIES:
        results = []
        for graphs in (True, False):
            gpu = {**SMALL, "policy.memory": memory, "train.optimizer": "adam", "train.device": "cuda"}
            with training("breakout", {**gpu, "train.learning_rate": 1e-4, "train.cuda_graphs": graphs}) as trainer:
                for _ in range(3):
                    trainer.step()
                results.append([weights.detach().cpu() for weights in trainer.policy.parameters()])
        found[memory] = max(
            ((ours - theirs).norm() / theirs.norm().clamp(min=1e-2)).item()
            for ours, theirs in zip(*results, strict=True)
        )
    return found


def resumed_on_the_other() -> dict[str, bool]:
    """Return whether a run resumes on the other device with its weights and trains, by first and second device."""
    found = {}
    for first, second in (("cuda", "cpu"), ("cpu", "cuda")):
        settings = {**SMALL, "policy.memory": "MinGRU"}
        with training("breakout", {**settings, "train.device": first}) as trainer:
            for _ in range(3):
                trainer.step()
            trainer.save()
            weights = [each.detach().cpu().clone() for each in trainer.policy.parameters()]
            with training("breakout", {**settings, "train.device": second}) as other:
                other.restore(trainer.checkpoint_path)
                ours = [each.detach().cpu() for each in other.policy.parameters()]
                same = all(torch.equal(*pair) for pair in zip(weights, ours, strict=True))
                updates = [other.step()["update"] for _ in range(3)][-1]
                found[f"{first} to {second}"] = same and updates == 6
    return found


def waits_of_an_update() -> dict[str, int]:
    """Return how often the CPU waits for the GPU during an update of breakout, by file and line."""
    with training("breakout", {"train.device": "cuda"}) as trainer:
        for _ in range(4):
            trainer.step()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            torch.cuda.set_sync_debug_mode("warn")
            trainer.step()
            torch.cuda.set_sync_debug_mode("default")
        places = [f"{Path(each.filename).name}:{each.lineno}" for each in caught if "synchroniz" in str(each.message)]
        steps = trainer.rollout.horizon
    found = dict(collections.Counter(places))
    return {"steps": steps, "all": len(places), **found}


def steps_per_second(overrides: dict[str, Any], seconds: float) -> float:
    """Return the agent-steps per second of training on breakout."""
    with training("breakout", {"train.device": "cuda", "train.total_timesteps": 10**11, **overrides}) as trainer:
        for _ in range(4):
            trainer.step()
        torch.cuda.synchronize()
        speeds, start = [], time.perf_counter()
        while time.perf_counter() - start < seconds or len(speeds) < 3:
            speeds.append(trainer.step()["sps"])
        return statistics.median(speeds)


def seconds_to(env: str, score: float, limit_s: float) -> float | None:
    """Return the seconds until the episodes of an update reach the score, with the environment's own settings."""
    with training(env, {"train.device": "cuda"}) as trainer:
        start = time.perf_counter()
        while (seconds := time.perf_counter() - start) < limit_s:
            if trainer.step().get("environment/score", -1e9) >= score:
                return seconds
    return None


def peer_speeds(python: str, seconds: float) -> dict[str, float | None]:
    """Return the agent-steps per second of PufferLib on breakout with its own settings, with and without memory."""
    side = sides.Side(python, str(Path(__file__).parent / "train.py"))
    try:
        return {name: side.ask("puffer_on_gpu", name == "LSTM", seconds) for name in ("LSTM", "none")}
    finally:
        side.close()


def main() -> int:
    """Run all checks and measurements, and print and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--peer-python", help="interpreter with PufferLib 3.0.0 and torch for the GPU")
    parser.add_argument("--quick", action="store_true", help="measure each speed for 3 seconds")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("benchmarks/gpu.py: needs an NVIDIA GPU that torch can use; see puffer doctor --gpu")
    seconds = 3.0 if options.quick else 20.0
    found: dict[str, Any] = {"card": torch.cuda.get_device_name(), "torch": torch.__version__}

    def note(name: str, measure: Callable[[], Any]) -> Any:
        found[name] = measure()
        print(f"{found['card']}: {name}: {found[name]}", flush=True)
        return found[name]

    checks = {
        "gradients": max(note("gradients of both devices differ by", gradients_of_both).values()) < CLOSE,
        "graphs": max(note("weights with and without graphs differ by", weights_with_graphs).values()) < 100 * CLOSE,
        "resume": all(note("resumed on the other device", resumed_on_the_other).values()),
    }
    waits = note("waits of an update", waits_of_an_update)
    checks["waits"] = waits["all"] - waits["steps"] <= WAITS
    rows = []
    for what, overrides in SPEEDS.items():
        speed = note(f"steps/s, {what}", functools.partial(steps_per_second, overrides, seconds))
        rows.append(Row(what, "us", figures={OURS: [1e6 / speed]}).as_dict())
    note("seconds to 20.9 in pong", lambda: seconds_to("pong", 20.9, 60))
    note("seconds to 840 in breakout", lambda: seconds_to("breakout", 840, 60))
    if options.peer_python:
        for memory, speed in note("steps/s, PufferLib", lambda: peer_speeds(options.peer_python, seconds)).items():
            what = f"PufferLib 3.0.0, its own settings: 8,192 games, horizon 64, minibatch 32,768, memory {memory}"
            if speed is not None:  # else the error was printed
                rows.append(Row(what, "us", figures={PUFFER: [1e6 / speed]}).as_dict())
    found["checks"] = checks
    if options.out:
        here = {**machine(), "cpu": f"{found['card']}, torch {torch.__version__}"}
        write(options.out, {"machine": here, "is_whole": True, "rows": rows, "found": found})
    failed = [name for name, passed in checks.items() if not passed]
    print(f"failed: {', '.join(failed)}" if failed else "all checks passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
