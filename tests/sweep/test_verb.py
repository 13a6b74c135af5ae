"""``puffer sweep`` of a search that is there: tests/cli/verbs has what needs none."""

import pytest

from pufferlib.cli import main
from tests.sweeps import ONLY, SPACES

FLAGS = [
    "--env.num-envs=32", "--train.total-timesteps=4096", "--train.horizon=16", "--train.minibatch-size=256",
    "--train.num-threads=1", "--train.device=cpu", "--policy.hidden-size=16", "--eval.episodes=4",
    f"--sweep.only={ONLY}",
    *(f"--sweep.{key}.{name}={value}" for key, table in SPACES.items() for name, value in table.items()),
]  # fmt: skip


def test_the_same_search_as_from_python_is_typed(done, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", "squared", f"--sweeps={done.folder.parent}", "--sweep.trials=4", *FLAGS]) == 0
    printed = capsys.readouterr().out
    assert "4 of 4 trials done" in printed
    assert f"the best is trial {done.best.number}, score" in printed
    assert done.flags(done.best) in printed
    assert "report.html" in printed


def test_a_report_is_written_anew(done) -> None:
    (done.folder / "report.html").unlink(missing_ok=True)
    assert main(["sweep", "squared", "--report", f"--sweeps={done.folder.parent}"]) == 0
    assert (done.folder / "report.html").is_file()
    assert main(["sweep", "squared", "--report", "--sweep.name=cube", f"--sweeps={done.folder.parent}"]) == 1
