"""Builds from source: errors about missing programs, and the contents of the source distribution."""

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


COPIED = re.findall(r"(?m)^COPY (?!--from)(.*) \S+$", (ROOT / "Dockerfile").read_text())


def configure(build: Path, *options: str | Path, programs: str | None = None, **environ: str) -> str:
    """Configure a build that fails, with ``programs`` as PATH, and return CMake's error on one line."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    cmake, ninja = (shutil.which(name, path=path) for name in ("cmake", "ninja"))
    if not cmake or not ninja:
        pytest.skip("cmake or ninja is not installed; they come with the extra dev")
    command = [cmake, "-S", ROOT, "-B", build, "-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}", *options]
    done = subprocess.run(
        command, capture_output=True, text=True, env={"PATH": programs or path, **environ}, timeout=60
    )
    assert done.returncode != 0
    return " ".join(done.stderr.split())


@pytest.mark.parametrize(
    ("environ", "found"),
    [({}, "no cc, gcc or clang on the PATH"), ({"CC": "gcc -pthread"}, "no gcc, which CC or this Python names")],
)
def test_missing_compiler_error_names_the_package(tmp_path: Path, environ: dict[str, str], found: str) -> None:
    message = configure(tmp_path, programs="/nowhere", **environ)
    assert f"expected a C compiler, found {found}" in message
    assert "apt-get install gcc libc6-dev" in message


def test_missing_c_library_error_names_the_package(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no gcc")
    message = configure(tmp_path, CC="gcc -nostdinc")
    assert "expected the headers and start files of the C library" in message
    assert "apt-get install libc6-dev" in message


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


# zig links no bundles, which CMake makes on macOS. A shared library needs the same symbols.
ZIG_FOR_MACOS = """#!/bin/sh
for word; do
    shift
    [ "$word" != -bundle ] || word=-shared
    set -- "$@" "$word"
done
exec "$ZIG" cc -target aarch64-macos "$@"
"""


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_modules_compile_and_link_for_macos(tmp_path: Path) -> None:
    """Nothing of this runs, because there is no Mac. Builds without optimization, which is faster."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    download = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", tmp_path / "zig"]
    if subprocess.run([*download, *extras["compiler"]]).returncode:
        pytest.skip("zig could not be downloaded with pip")
    build, zig = tmp_path / "build", tmp_path / "zig/ziglang/zig"
    options = ["-DCMAKE_SYSTEM_NAME=Darwin", "-DCMAKE_SYSTEM_PROCESSOR=arm64", "-DCMAKE_BUILD_TYPE=Debug"]
    options += ["-DCMAKE_OSX_SYSROOT=", "-DCMAKE_INSTALL_NAME_TOOL=true"]
    for name, code in {"cc": ZIG_FOR_MACOS, "ar": '#!/bin/sh\nexec "$ZIG" ar "$@"\n'}.items():
        (tmp_path / name).write_text(code)
        (tmp_path / name).chmod(0o755)
    options += [f"-DCMAKE_C_COMPILER={tmp_path / 'cc'}", f"-DCMAKE_AR={tmp_path / 'ar'}"]
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environ = {**os.environ, "ZIG": str(zig), "PATH": path, "ZIG_GLOBAL_CACHE_DIR": str(tmp_path / "cache")}
    for command in (["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", *options], ["cmake", "--build", build]):
        done = subprocess.run(command, env=environ, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    modules = [*(build / "pufferlib").rglob("*.so")]
    assert len(modules) == len([*ROOT.glob("pufferlib/**/*.pyx")]) + 1  # pufferlib.native._shared has no source
    assert {module.read_bytes()[:4] for module in modules} == {b"\xcf\xfa\xed\xfe"}  # 64-bit Mach-O
