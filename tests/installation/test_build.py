"""Builds from source: what a missing program is answered with, and what the source distribution holds."""

import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def test_a_missing_compiler_is_answered_with_the_package_to_install(tmp_path: Path) -> None:
    if not (cmake := shutil.which("cmake")):
        pytest.skip("cmake is not here; it comes with the extra dev")
    command = [cmake, "-S", ROOT, "-B", tmp_path, "-G", "Ninja", "-DCMAKE_MAKE_PROGRAM=/bin/true"]
    command += ["-DPUFFERLIB_C_COMPILER=PUFFERLIB_C_COMPILER-NOTFOUND"]
    command += ["-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": "/nowhere"}, timeout=60)
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert "expected a C compiler, found no cc, gcc or clang on the PATH" in message
    assert "apt-get install gcc libc6-dev" in message


def test_the_source_distribution_holds_what_its_dockerfile_copies() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["scikit-build"]
    assert not {"Dockerfile", "docker", "compose.yaml"} & set(settings["sdist"]["exclude"])
