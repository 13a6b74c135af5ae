"""The wheel of examples/package contains the C files, and its entry point registers them."""

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from pufferlib.ocean.fuzz import fuzz_file
from tests.tiers import once

PACKAGE = Path(__file__).parents[2] / "examples" / "package"
GAMES = ("brake", "coin")

pytestmark = [
    pytest.mark.skipif(not PACKAGE.exists(), reason="not in a checkout of the repository"),
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc"),
]

USE = """
import pufferlib
from pufferlib.cli import main
from pufferlib.settings.config import load_config
assert {"mygames/brake", "mygames/coin"} <= set(pufferlib.list_envs())
assert load_config("mygames/coin").train.total_timesteps == 200_000
assert main(["train", "mygames/coin", "--help"]) == 0
env = pufferlib.make("mygames/brake", num_envs=4, track=60)
env.reset(seed=0)
for _ in range(200):
    env.step([0, 1, 0, 1])
print(env.render().shape)
"""


@pytest.mark.all
@pytest.mark.skipif(importlib.util.find_spec("setuptools") is None, reason="needs setuptools: pip install setuptools")
def test_wheel_contains_registered_games(tmp_path):
    source = shutil.copytree(PACKAGE, tmp_path / "source")
    command = [sys.executable, "-c", "import setuptools.build_meta as b; b.build_wheel('..')"]
    subprocess.run(command, cwd=source, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    paths = os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": paths, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", USE], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert "--env.heads-share: how often the coin comes up heads (a number from 0 to 1; default 0.8)" in done.stdout
    assert done.stdout.endswith("(32, 160, 3)\n")


@pytest.mark.parametrize("name", once(GAMES, ["brake"]))
def test_games_pass_the_fuzzer(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert fuzz_file(str(PACKAGE / "mygames" / f"{name}.c"), steps=2000).defects == ()
