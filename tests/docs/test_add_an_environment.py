"""The commands of docs/add-an-environment.md work, outside of the repository and in a copy of it."""

import contextlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pufferlib.cli import main
from pufferlib.ocean.files import write_template
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "add-an-environment.md"
LEFT_OUT = shutil.ignore_patterns(".*", "build", "dist", "runs", "results", "docker", "__pycache__", "*.so")
TOOLS = ("cmake", "ninja", "Cython")
OCEAN = "pufferlib.ocean._ocean"

pytestmark = [
    pytest.mark.all,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PAGE.exists(), reason="not in a checkout of the repository"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc"),
    pytest.mark.skipif(
        any(importlib.util.find_spec(tool) is None for tool in TOOLS),
        reason=f"needs {', '.join(TOOLS)}: pip install -e '.[dev]' in a checkout",
    ),
]


def blocks(language):
    """Return the code blocks of the page in this language."""
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)


def run(command, tree, path="", code=0):
    """Run a command in ``tree`` without ``site``, whose .pth files would import the installed package."""
    packages = [entry for entry in sys.path if entry.endswith("-packages")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tree), *packages]), "PATH": f"{path}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=tree, env=env, capture_output=True, text=True)
    assert done.returncode == code, f"{command}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(tree, tmp_path):
    """Compile the module with all C environments. Other modules are copied from the installed package."""
    import cmake
    import ninja

    tools = tmp_path / "bin"
    tools.mkdir()
    cython = tools / "cython"
    cython.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -m cython "$@"\n')
    cython.chmod(0o755)
    path = f"{tools}:{cmake.CMAKE_BIN_DIR}:{ninja.BIN_DIR}"
    out = tmp_path / "out"
    # A debug build takes a fraction of the time.
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"]
    run(["cmake", "-S", tree, "-B", out, *options], tree, path)
    run(["cmake", "--build", out, "--target", OCEAN], tree, path)
    for source in (*(tree / "pufferlib").rglob("*.pyx"), tree / "pufferlib" / "native" / "_shared"):
        module = ".".join(source.relative_to(tree).with_suffix("").parts)
        own = out.glob("pufferlib/ocean/_ocean.*.so")
        built = own if module == OCEAN else [importlib.util.find_spec(module).origin]
        shutil.copy(*built, source.parent)


def test_unsupported_platform_is_an_error(tmp_path):
    import cmake
    import ninja

    machine = ["-DCMAKE_SYSTEM_NAME=FreeBSD", "-DCMAKE_SYSTEM_PROCESSOR=arm64"]
    tools = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={Path(ninja.BIN_DIR) / 'ninja'}"]
    command = [Path(cmake.CMAKE_BIN_DIR) / "cmake", "-S", ROOT, "-B", tmp_path, *tools, *machine]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1
    assert "pufferlib: expected Linux or macOS, got FreeBSD; use the image" in " ".join(done.stderr.split())


def test_documented_c_file_plays_and_learns(tmp_path, monkeypatch):
    """A fifth of the template's training steps are enough to learn to walk straight to the door."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new, train, check, *_ = (block.split() for block in blocks("sh"))
    assert new[:2] == ["puffer", "new"]
    assert main(new[1:]) == 0
    assert train[2] == check[2] == "corridor.c"
    assert main(check[1:]) == 0
    names = {}
    exec(blocks("python")[0], names)
    assert names["picture"].shape == (64, 320, 3)

    with contextlib.closing(Trainer(load_config(train[2], {"train.device": "cpu"}), tmp_path)) as trainer:
        lengths = []
        while trainer.agent_steps < trainer.config.train.total_timesteps / 5:
            lengths.append(trainer.step().get("environment/episode_length"))  # None if no episode was reported
    reported = [length for length in lengths if length]
    assert reported[0] > 3 * reported[-1]
    assert reported[-1] < 6  # at best 5 on average, from a random cell


def test_documented_ocean_environment_works(tmp_path):
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
    shutil.copytree(ROOT / "bindings", tree / "pufferlib" / "bindings", ignore=LEFT_OUT, dirs_exist_ok=True)
    before = {file for file in tree.rglob("*") if file.is_file()}
    new, _train, _check, move, install, *_ = blocks("sh")
    assert install.startswith("pip install")

    assert new.startswith("puffer new ")
    write_template(new.split()[-1], tree)
    run(["bash", "-euc", move], tree)
    added = {str(file.relative_to(tree)) for file in tree.rglob("*") if file.is_file() and file not in before}
    assert added == {"pufferlib/ocean/corridor/corridor.c", "pufferlib/ocean/corridor/train.toml"}
    build(tree, tmp_path)

    check = (
        f"import pufferlib\nfrom pufferlib import ocean\nassert pufferlib.__file__.startswith({str(tree)!r})\n"
        "print(pufferlib.make('corridor', length=20).render_mode, ocean.names(), ocean.Corridor.__doc__)"
    )
    shown = run([sys.executable, "-S", "-c", check], tree)
    assert "'corridor'" in shown
    assert "length: cells from one end to the other (an int from 2 to 1000; default 10)" in shown

    pytest_command = [sys.executable, "-S", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "corridor"]
    pytest_command += ["tests/ocean/test_ocean.py", "tests/native/test_ocean_fuzz.py"]
    report = run(pytest_command, tree, code=1)
    (digest,) = set(re.findall(r"no recording of corridor; add its hash (\w+) to trajectories.json", report))
    recorded = tree / "tests" / "ocean" / "trajectories.json"
    recorded.write_text(json.dumps({**json.loads(recorded.read_text()), "corridor": digest}))
    report = run(pytest_command, tree)
    assert re.search(r"\d\d passed", report), report
