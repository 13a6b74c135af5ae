"""The wheels of scripts/wheels: their names, and their use in Debian without a compiler. Building takes minutes."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

import pufferlib

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(3600)]

# Suites of Debian, the package of Python, and the extras whose packages pip finds for it. The CPU build of torch is on
# PyPI for no Python. The image has it for 3.11.
SUITES = {
    "bookworm": ("python3", "[atari,render,train]"),
    "trixie": ("python3", "[atari,render]"),
    "forky": ("python3.14", "[atari,render]"),
}
# Unit tests of the core, and what they need to run.
FOLDERS = ("emulation", "envpool", "machine", "ocean", "registry", "seeds", "vector", "wrappers")
RUNNER = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "pyyaml")
NEED_A_COMPILER = {"test_fuzz.py", "test_native.py", "test_native_process.py", "test_pools.py"}  # of envpool
# Hypothesis warns on Python 3.14 because of its reference counts.
PYTEST = "python -m pytest -q -p no:cacheprovider -n auto --default -W 'ignore:It looks like `register_random`'"
USED = """
import json, sys, pufferlib
from pufferlib.ocean import _ocean
envs = pufferlib.make("squared", num_envs=64)
envs.reset(seed=1)
for _ in range(100):
    envs.step(envs.action_space.sample())
emulated = pufferlib.make("CartPole-v1", num_envs=2)
emulated.reset(seed=1)
emulated.step(emulated.action_space.sample())
print(json.dumps([sys.version_info[:2], _ocean.__file__.rpartition("/")[2]]))
"""
TRAIN = ["train", "squared", "--train.total-timesteps", "100000"]


def run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with everything that scripts/wheels builds."""
    if PathFinder.find_spec("pip") is None:
        pytest.skip("pip is not installed, as in the images")
    folder = tmp_path_factory.mktemp("dist")
    done = subprocess.run([ROOT / "scripts/wheels", "--out", folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def test_release_has_an_sdist_and_a_wheel_for_every_platform(dist: Path) -> None:
    version = pufferlib.__version__
    linux = {arch: f"manylinux2014_{arch}.manylinux_2_17_{arch}" for arch in ("x86_64", "aarch64")}
    assert {path.name for path in dist.iterdir()} == {
        f"pufferlib-{version}.tar.gz",
        f"pufferlib-{version}-cp311-cp311-{linux[os.uname().machine]}.whl",
        *(f"pufferlib-{version}-cp311-abi3-{tags}.whl" for tags in linux.values()),
    }


def bootstrap(suite: str, folder: Path, *options: str) -> None:
    """Make a new root of Debian."""
    if not shutil.which("mmdebstrap") or os.geteuid():
        pytest.skip("needs root and mmdebstrap (Debian: apt-get install mmdebstrap)")
    usual = ["--dpkgopt=force-unsafe-io"]
    usual += ['--aptopt=Acquire::Check-Valid-Until "false"']  # mirrors of suites that change may be days behind
    done = subprocess.run(["mmdebstrap", *usual, *options, suite, folder], capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"Debian {suite} could not be downloaded: {done.stderr.splitlines()[-1]}")


@contextmanager
def debian(suite: str, package: str, folder: Path) -> Iterator[Path]:
    """Yield a new root of Debian with Python and no compiler."""
    bootstrap(suite, folder, "--variant=minbase", f"--include={package},{package}-venv")
    subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder / "proc"], check=True)


@pytest.mark.parametrize("suite", SUITES)
def test_wheel_works_in_debian_without_a_compiler(dist: Path, suite: str, tmp_path: Path) -> None:
    package, extras = SUITES[suite]
    with debian(suite, package, tmp_path / "root") as root:
        inside = ["chroot", root, "/usr/bin/env", "-i", "PATH=/env/bin:/usr/bin:/bin", "HOME=/root"]
        assert not run(*inside, "sh", "-c", "command -v cc gcc clang || true")
        python = run(*inside, package, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
        fetch_requirements(python, extras, root / "links", *RUNNER)
        for wheel in dist.glob("*.whl"):
            shutil.copy(wheel, root / "links")
        run(*inside, package, "-m", "venv", "/env")
        run(*inside, "pip", "install", "--no-index", "--find-links", "/links", f"pufferlib{extras}", *RUNNER)
        version, module = json.loads(run(*inside, "python", "-W", "error", "-c", USED))
        assert (".".join(map(str, version)), "abi3" in module) == (python, python != "3.11")
        if "train" in extras:
            assert "squared" in run(*inside, "puffer", *TRAIN)
        # Without the sources of the package, so that the tests import the wheel.
        for name in ("bindings", "tests"):
            shutil.copytree(ROOT / name, root / "src" / name, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "pyproject.toml", root / "src")
        files = shlex.join(unit_tests(with_torch="train" in extras))
        assert " passed" in run(*inside, "sh", "-c", f"cd /src && {PYTEST} {files}")


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the machine is ARM, where no emulator is needed")
def test_wheel_works_in_emulated_arm_debian(dist: Path, tmp_path: Path) -> None:
    emulator = shutil.which("qemu-aarch64-static")
    if not emulator:
        pytest.skip("needs an emulator (Debian: apt-get install qemu-user-static)")
    root, links = tmp_path / "root", tmp_path / "root/links"
    # Packages are only unpacked. Their scripts would start programs, which only the kernel could emulate.
    packages = "--include=python3,libstdc++6"  # the second for numpy
    bootstrap("bookworm", root, "--variant=extract", "--architectures=arm64", packages)
    fetch_requirements("3.11", "", links, "pip", machine="aarch64")
    for file in (*dist.glob("*.whl"), emulator):
        shutil.copy(file, links)
    inside = ["env", "-i", f"PATH={os.environ['PATH']}", "HOME=/root", "PYTHONPATH=/site", "chroot", root]
    inside += ["/links/qemu-aarch64-static", "/usr/bin/python3"]
    (pip,) = links.glob("pip-*.whl")
    options = ["--no-index", "--find-links", "/links", "--no-compile", "--target", "/site"]
    run(*inside, f"/links/{pip.name}/pip", "install", *options, "pufferlib")
    assert json.loads(run(*inside, "-W", "error", "-c", USED)) == [[3, 11], "_ocean.abi3.so"]


def unit_tests(with_torch: bool) -> list[str]:
    """Return the test files of the core that need no compiler, no other framework, and no torch if it is not there."""
    found = [*ROOT.glob("tests/test_*.py"), *(p for name in FOLDERS for p in ROOT.glob(f"tests/{name}/test_*.py"))]
    found = [path for path in found if not (path.parent.name == "envpool" and path.name in NEED_A_COMPILER)]
    absent = ["stable_baselines3"]
    if not with_torch:
        absent += ["torch", r"pufferlib\.(models|play|pytorch|training)"]
    needs_more = re.compile(rf"(?m)^(import|from) ({'|'.join(absent)})\b")
    return sorted(str(path.relative_to(ROOT)) for path in found if not needs_more.search(path.read_text()))


def fetch_requirements(python: str, extras: str, folder: Path, *others: str, machine: str = os.uname().machine) -> None:
    """Download wheels of what pufferlib requires for another Python, with the pip settings of this machine."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *others]
    for extra in filter(None, extras.strip("[]").split(",")):
        wanted += project["optional-dependencies"][extra]
    options = ["--only-binary", ":all:", "--python-version", python, "--dest", folder, "--quiet"]
    for glibc in range(17, 29):
        options += ["--platform", f"manylinux_2_{glibc}_{machine}"]
    run(sys.executable, "-m", "pip", "download", *options, *wanted)
