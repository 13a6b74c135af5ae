"""``puffer export``: a trained agent for programs without this library."""

from pathlib import Path

from pufferlib.cli.console import highlight, say, style
from pufferlib.cli.options import Parser
from pufferlib.errors import UsageError
from pufferlib.machine.commands import as_typed
from pufferlib.training.runs import RUNS

__all__ = ["run"]

PROG = "puffer export"
ABOUT = """Write a trained agent into one file for programs without this library, and check it against the policy in
1,000 steps of its environment: puffer export RUN --to c, puffer export CHECKPOINT --to onnx, or puffer export
ENVIRONMENT --to torch for the latest run of it."""
TO = ("onnx", "c", "torch")


def run(argv: list[str]) -> int:
    """Export what ``argv`` names."""
    parser = Parser(PROG, ABOUT)
    parser.add_argument("target", nargs="?", metavar="RUN", help="a run, a checkpoint, or an environment")
    parser.add_argument(
        "--to", choices=TO, help="onnx: a model of ONNX; c: one C file, weights included; torch: a torch.export program"
    )
    parser.add_argument("--out", type=Path, metavar="PATH", help="the file (default: the name of the environment)")
    parser.add_argument("--best", action="store_true", help="the checkpoint of the best score in training")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--greedy", action="store_true", default=None, help="c: take the likeliest action")
    choice.add_argument("--sampled", dest="greedy", action="store_false", help="c: sample the actions")
    parser.add_argument("--opset", type=int, metavar="N", help="onnx: version of its operators")
    parser.add_argument("--device", default="cpu", help="torch: cpu (default), cuda, cuda:<n>, or auto")
    parser.add_argument("--header", action="store_true", help="c: a header for other files too")
    parser.add_argument("--runs", type=Path, default=RUNS, help="where to look for the latest run (default: runs)")
    options = parser.parse(argv)
    if not options.target or not options.to:
        example = as_typed("puffer export breakout --to c")
        raise UsageError(f"{PROG}: name a run or an environment and a format, for example: {example}")
    from pufferlib.exports.exported import export  # brings torch, for which nobody should wait to be told of a slip

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
    say(highlight(f"checked against the policy in {made.steps:,} steps: its outputs differ by at most {worst}", worst))
    say(NEXT[made.to].format(path=made.path, stem=made.path.stem))
    return 0


TITLES = {"onnx": "an ONNX model", "c": "C", "torch": "a program of torch.export"}
NEXT = {
    "c": "Use it: the comment at its top says how; compile it with: cc -O2 -c {path}",
    "onnx": 'Use it: onnxruntime.InferenceSession("{path}")',
    "torch": 'Use it: torch.export.load("{path}").module()',
}
