"""Tests of ``puffer export``, which writes an agent as a file in C, ONNX or torch."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pufferlib.cli import main
from pufferlib.native.compiler import HEADERS
from tests.needs import missing_extra
from tests.tiny_runs import TINY

ROOT = Path(__file__).parents[3]
PROGRAMS = re.findall(r"^```py\n(.*?)^```$", (ROOT / "docs/deploy.md").read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.all
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is on the PATH")
def test_exported_c_agent_plays_breakout(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "breakout", *TINY]) == 0
    capsys.readouterr()
    assert main(["export", "breakout", "--to", "c", "--out", "agent.c", "--header"]) == 0
    output = capsys.readouterr().out
    assert output.startswith("agent.c and agent.h (")
    assert "compared with the policy in 1,000 steps: outputs differ by at most" in output
    strict = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O1"]
    subprocess.run(["cc", *strict, "-c", "agent.c"], check=True)
    if shutil.which("c++"):
        plus = ["c++", "-x", "c++", "-std=c++11", *strict[1:], "-fsyntax-only"]
        subprocess.run([*plus, "agent.c"], check=True)
    folders = [f"-I{folder}" for folder in (".", HEADERS, HEADERS.parent / "ocean")]
    program = ROOT / "examples" / "deploy" / "breakout_agent.c"
    subprocess.run(["cc", "-O1", *folders, program, "agent.o", "-lm", "-o", "play"], check=True)
    played = subprocess.run(["./play"], capture_output=True, text=True, check=True).stdout
    assert re.fullmatch(r"20 games, \d+ steps: \d+\.\d points a game\n", played)


@pytest.mark.all
@pytest.mark.skipif(bool(missing_extra("export")), reason=missing_extra("export") or "it is there")
def test_onnx_model_has_metadata(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import onnx

    assert main(["train", "breakout", *TINY]) == 0
    assert main(["export", "breakout", "--to", "onnx"]) == 0
    model = onnx.load("breakout.onnx")
    facts = {entry.key: entry.value for entry in model.metadata_props}
    assert facts["env_name"] == "breakout"
    assert (
        json.loads(facts["outputs"]) == [output.name for output in model.graph.output] == ["action", "logits", "value"]
    )
    assert model.graph.input[0].type.tensor_type.shape.dim[0].dim_param  # any number of rows
    (program,) = (block for block in PROGRAMS if "onnxruntime" in block)
    capsys.readouterr()
    exec(program, {})
    assert capsys.readouterr().out.startswith("breakout\n")
    assert main(["export", "breakout", "--to", "onnx", "--opset", "99"]) == 1
    assert "opset must be from 1 to" in capsys.readouterr().err


@pytest.mark.all
def test_exported_torch_program_runs_without_pufferlib(here: Path) -> None:
    assert main(["train", "breakout", *TINY]) == 0
    assert main(["export", "breakout", "--to", "torch"]) == 0
    (program,) = (block for block in PROGRAMS if "torch.export" in block)
    block_import = "import sys; sys.modules['pufferlib'] = None\n"
    subprocess.run([sys.executable, "-c", block_import + program], check=True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["breakout"], 2, "name a run or an environment and a format, for example: puffer export breakout --to c"),
        (["breakout", "--to", "rust"], 2, "invalid choice: 'rust' .choose from"),
        (["nowhere", "--to", "c"], 2, "'nowhere' is not a run, a checkpoint or an environment"),
        (["breakout", "--to", "c", "--opset", "9"], 1, "opset is for to='onnx', got to='c'; remove the option"),
        (["breakout", "--to", "torch", "--out", "b.pt"], 1, "must end with .pt2, got b.pt; rename it"),
        (["breakout", "--to", "onnx", "--sampled"], 1, "greedy=False is for to='c', got to='onnx'"),
        (["breakout", "--to", "torch", "--greedy"], 1, "greedy=True is for to='c', got to='torch'"),
        (["breakout", "--to", "c", "--device", "cuda"], 1, "device is for to='torch', got to='c': C runs on the CPU"),
        (["breakout", "--to", "torch", "--device", "tpu"], 2, "export: device must be auto, cpu, cuda or cuda:<n>"),
        (["breakout", "--to", "c", "--out", "no/b.c"], 1, "the file must be in a folder that exists, got no/b.c"),
        (["breakout", "--to", "c", "--out", "b.h", "--header"], 1, "the C file must not end with .h if a header"),
        (["breakout", "--to", "c", "--out", "pipe"], 1, "export: the file must be a regular file, got pipe; choose"),
    ],
)
def test_invalid_export_exits_with_error(
    arguments: list[str], code: int, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo("pipe")
    assert main(["export", *arguments]) == code
    assert re.search(message, capsys.readouterr().err)
    assert not (here / "pipe").is_file()


@pytest.mark.all
@pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler is on the PATH")
def test_export_keeps_source_of_environment(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["new", "grid_world", "--folder", "."]) == 0
    source = Path("grid_world.c").read_text()
    assert main(["train", "grid_world.c", *TINY]) == 0
    assert main(["export", "grid_world.c", "--to", "c", "--out", "grid_world.c"]) == 1
    assert "grid_world.c is the source of the environment; choose another file" in capsys.readouterr().err
    assert main(["export", "grid_world.c", "--to", "c"]) == 0
    assert Path("grid_world.c").read_text() == source
    assert Path("grid_world_agent.c").is_file()


def test_export_to_a_folder_that_cannot_be_written_to_exits_with_error(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: path != here)
    assert main(["export", "breakout", "--to", "c"]) == 1
    message = f"the file must be in a folder that can be written to, got {here}; choose another file, for example with"
    assert message in capsys.readouterr().err
