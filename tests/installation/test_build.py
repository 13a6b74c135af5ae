"""Builds from source: errors about missing programs, and the contents of the source distribution."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


COPIED = re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text())


def configure(build: Path, *options: str | Path, programs: str | None = None) -> str:
    """Configure a build that fails, with ``programs`` as PATH, and return CMake's error on one line."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    cmake, ninja = (shutil.which(name, path=path) for name in ("cmake", "ninja"))
    if not cmake or not ninja:
        pytest.skip("cmake or ninja is not installed; they come with the extra dev")
    command = [cmake, "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *options]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": programs or path}, timeout=60)
    assert done.returncode != 0
    return " ".join(done.stderr.split())


def test_missing_compiler_error_names_the_package(tmp_path: Path) -> None:
    options = ["-DPUFFERLIB_C_COMPILER=PUFFERLIB_C_COMPILER-NOTFOUND"]
    options += ["-DCMAKE_FIND_USE_SYSTEM_ENVIRONMENT_PATH=OFF", "-DCMAKE_FIND_USE_CMAKE_SYSTEM_PATH=OFF"]
    message = configure(tmp_path, *options, programs="/nowhere")
    assert "expected a C compiler, found no cc, gcc or clang on the PATH" in message
    assert "apt-get install gcc libc6-dev" in message


def test_missing_python_headers_error_names_the_package(tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("no C compiler, which CMake checks first")
    message = configure(tmp_path, f"-DPython_EXECUTABLE={sys.executable}", "-DPython_INCLUDE_DIR=/nowhere")
    assert f"expected the C headers of Python 3.11, found no Python.h for {sys.executable}" in message
    assert "apt-get install python3-dev" in message


@pytest.mark.all
def test_source_distribution_contains_all_build_inputs(tmp_path: Path) -> None:
    pytest.importorskip("scikit_build_core", reason="it comes with the extra dev")
    code = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, capture_output=True)
    (archive,) = tmp_path.iterdir()
    with tarfile.open(archive) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    files = {"Dockerfile", "compose.yaml", ".dockerignore", "pufferlib/native/cached_cython.py"}
    files |= {copied for line in COPIED for copied in line.split()}
    absent = {file for file in files if not any(name == file or name.startswith(f"{file}/") for name in names)}
    assert not absent
