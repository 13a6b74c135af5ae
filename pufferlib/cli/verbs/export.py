"""``puffer export``: export a trained agent to a file that does not need this library."""

import shlex
from pathlib import Path

from pufferlib.cli.console import highlight, say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.runs.folder import RUNS

__all__ = ["run"]

PROG = "puffer export"
ABOUT = """Export a trained agent to one file that does not need this library: puffer export RUN --to c, puffer export
CHECKPOINT --to onnx, or puffer export ENVIRONMENT --to torch for its latest run. The file is compared with the policy
in 1,000 steps of the environment."""
TO = ("onnx", "c", "torch")


def run(argv: list[str]) -> int:
    """Export the agent in ``argv``."""
    parser = Parser(PROG, ABOUT)
    parser.add_argument("target", nargs="?", metavar="RUN", help="run, checkpoint, or environment")
    parser.add_argument(
        "--to", choices=TO, help="format: onnx (ONNX model), c (one C file with weights), torch (torch.export program)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="PATH",
        help="output file (default: name of the environment, or NAME_agent for NAME.c)",
    )
    parser.add_argument("--best", action="store_true", help="use the checkpoint with the best score")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--greedy", action="store_true", default=None, help="c: take the most likely action")
    choice.add_argument("--sampled", dest="greedy", action="store_false", help="c: sample actions")
    parser.add_argument("--opset", type=int, metavar="N", help="onnx: opset version")
    parser.add_argument("--device", default="cpu", help="torch: cpu (default), cuda, cuda:<n>, or auto")
    parser.add_argument("--header", action="store_true", help="c: also write a header file")
    parser.add_argument("--runs", type=Path, default=RUNS, help="folder with runs (default: runs)")
    options = parser.parse(argv)
    if not options.target or not options.to:
        example = as_typed("puffer export breakout --to c")
        raise UsageError(f"{PROG}: name a run or an environment and a format, for example: {example}")
    from pufferlib.exports.exported import export  # imports torch, which is slow

    made = export(
        options.target,
        options.to,
        options.out,
        best=options.best,
        greedy=options.greedy,
        opset=options.opset,
        header=options.header,
        device=options.device,
        runs=options.runs,
    )
    files = " and ".join(style(str(path), "bold") for path in (made.path, made.header) if path)
    size = f"{made.path.stat().st_size / 1000:,.0f} kB"
    say(f"{files} ({size}): {made.env_name}, as {TITLES[made.to]}")
    worst = f"{made.difference:.1e}"
    say(highlight(f"compared with the policy in {made.steps:,} steps: outputs differ by at most {worst}", worst))
    path = shlex.quote(str(made.path)) if made.to == "c" else made.path
    say(NEXT[made.to].format(path=path, stem=made.path.stem))
    return 0


TITLES = {"onnx": "an ONNX model", "c": "C", "torch": "a torch.export program"}
NEXT = {
    "c": "Use it: see the comment at its top; compile it with: cc -O2 -c {path}",
    "onnx": 'Use it: onnxruntime.InferenceSession("{path}")',
    "torch": 'Use it: torch.export.load("{path}").module()',
}
