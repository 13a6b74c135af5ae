"""Time of a step of one game of breakout compiled to WebAssembly, in node, compared with the native library.

    python benchmarks/web.py             # needs node on the PATH, and the extra compiler
    python benchmarks/web.py --quick     # quick check

Both step games with the same parameters on one core, and take turns. In node, JavaScript calls one game once for each
step. The native library steps a thousand games per call, because a call from Python takes longer than a step.
Figures are CPU time. Also writes benchmarks/results/web.json.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))  # missing if PYTHONSAFEPATH is set

from report import OURS, Row
from sides import Sides
from turns import Measure, main

import pufferlib
from pufferlib.web.games import build_game

ENV = "breakout"
GAMES = 1000
STEPS_PER_S = 15e6  # goal in node
TIMED = """
const { readFileSync } = require("fs");
const { Game, SAME_STEP } = require(process.argv[2]);
const [facts, code] = process.argv.slice(3, 5).map((path) => readFileSync(path));
const seconds = Number(process.argv[5]);
Game.open(JSON.parse(facts), code, SAME_STEP).then((game) => {
  const { step } = game.functions;
  game.reset(0);
  for (let i = 0; i < 100000; i++) step();  // until the code is optimized
  const start = process.cpuUsage();
  let steps = 0, spent = 0;
  while (spent < seconds * 1e6) {
    for (let i = 0; i < 100000; i++) step();
    steps += 100000;
    const { user, system } = process.cpuUsage(start);
    spent = user + system;
  }
  console.log((1000 * spent) / steps);
});
"""


def in_node(folder: Path, seconds: float) -> float:
    """Return the CPU time of a step in node, in nanoseconds."""
    static = Path(pufferlib.__file__).parent / "web" / "static" / "game.js"
    command = ["node", folder / "timed.js", static, folder / "facts.json", folder / "game.wasm", str(seconds)]
    return float(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def native(seconds: float) -> float:
    """Return the CPU time of a step of the native library, in nanoseconds."""
    with pufferlib.make(ENV, num_envs=GAMES) as env:
        env.reset(seed=0)
        actions = np.zeros(GAMES, np.int32)
        start, steps = time.process_time(), 0
        while (spent := time.process_time() - start) < seconds:
            for _ in range(100):
                env.step(actions)
            steps += 100 * GAMES
    return 1e9 * spent / steps


def rows(stack: ExitStack, sides: Sides) -> Iterator[tuple[Row, dict[str, Measure]]]:
    """Yield the row with the measurements of its contestants. ``stack`` closes their resources."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    game = build_game("benchmarks/web.py", ENV)
    (folder / "game.wasm").write_bytes(game.code)
    (folder / "facts.json").write_text(json.dumps(game.facts))
    (folder / "timed.js").write_text(TIMED)
    web = partial(in_node, folder, sides.seconds)
    calls: dict[str, Measure] = {OURS: web, "native": partial(native, sides.seconds)}
    yield Row(f"a step of {ENV} in node", "ns", most=1e9 / STEPS_PER_S), calls


if __name__ == "__main__":
    with ExitStack() as stack:
        main(__doc__, __file__, partial(rows, stack), (), minutes=1, rounds=5, seconds=0.5)
