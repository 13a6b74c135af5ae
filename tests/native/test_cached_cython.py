"""Cache of FakeCython's output, by the contents of its inputs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pufferlib.native.cached_cython import cached_cython

PACKAGE = Path(__file__).parents[2] / "pufferlib"
MODULE = "pufferlib/_module.pyx"


class FakeCython:
    """Replacement of Cython that counts its runs and copies the source."""

    def __init__(self, folder: Path) -> None:
        self.program = folder / "cython"
        self.runs = folder / "runs"
        self.output = folder / "build" / "pufferlib._module.c"
        self.output.parent.mkdir()
        self.runs.touch()
        # Called as: cython [-X OPTION] SOURCE -o OUTPUT
        self.program.write_text(
            f'#!/bin/sh\necho >>"{self.runs}"\nwhile [ "$2" != -o ]; do shift; done\ncp "$1" "$3"\n'
        )
        self.program.chmod(0o755)

    def __call__(self, version: str = "3.3", *options: str) -> int:
        """Write the C file, and return how often Cython ran for it."""
        before = len(self.runs.read_text())
        assert cached_cython(version, self.output, [str(self.program), *options, MODULE]) == 0
        assert self.output.read_text() == Path(MODULE).read_text()
        return len(self.runs.read_text()) - before


@pytest.fixture
def cython(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeCython:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CYTHON_CACHE_DIR", raising=False)
    (tmp_path / "pufferlib").mkdir()
    Path(MODULE).write_text("one")
    Path("pufferlib/types.pxd").write_text("types")
    return FakeCython(tmp_path)


def test_unchanged_contents_keep_the_c_file(cython: FakeCython) -> None:
    assert cython() == 1
    os.utime(cython.output, (1, 1))
    os.utime(MODULE, (9e9, 9e9))
    assert cython() == 0
    assert cython.output.stat().st_mtime == 1


def test_version_options_and_sources_are_part_of_the_key(cython: FakeCython) -> None:
    assert cython() == 1
    assert cython("3.4") == 1
    assert cython("3.4", "-X") == 1
    Path(MODULE).write_text("two")
    assert cython() == 1
    Path("pufferlib/types.pxd").write_text("others")
    assert cython() == 1
    Path("pufferlib/more.pxd").touch()
    assert cython() == 1


def test_earlier_contents_are_cached(cython: FakeCython) -> None:
    assert cython() == 1
    Path(MODULE).write_text("two")
    assert cython() == 1
    Path(MODULE).write_text("one")
    assert cython() == 0


def test_cython_cache_dir_is_shared_between_builds(
    cython: FakeCython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CYTHON_CACHE_DIR", str(tmp_path / "shared"))
    assert cython() == 1
    shutil.rmtree(cython.output.parent)
    cython.output.parent.mkdir()
    assert cython() == 0


def test_damaged_and_unwritable_caches_run_cython_again(
    cython: FakeCython, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cython() == 1
    (entry,) = (cython.output.parent / "cython").iterdir()
    entry.write_bytes(entry.read_bytes()[:-5])
    assert cython() == 1
    assert cython() == 0
    (tmp_path / "file").touch()
    monkeypatch.setenv("CYTHON_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert cython() == 1


def test_cache_keeps_eight_entries_per_module(cython: FakeCython) -> None:
    for version in range(20):
        cython(str(version))
    assert len(list((cython.output.parent / "cython").iterdir())) == 8
    assert cython("19") == 0


def test_errors_of_cython_are_returned_and_not_cached(cython: FakeCython) -> None:
    cython.program.write_text('#!/bin/sh\necho broken >"$3"\nexit 3\n')
    for _ in range(2):
        assert cached_cython("3.3", cython.output, [str(cython.program), MODULE]) == 3


def test_shared_module_has_no_source(cython: FakeCython) -> None:
    cython.program.write_text(f'#!/bin/sh\necho >>"{cython.runs}"\necho "$2 $3" >"$4"\n')
    for version, runs in (("3.3", 1), ("3.3", 1), ("3.4", 2)):
        assert cached_cython(version, cython.output, [str(cython.program), "-3", "--module-name=shared"]) == 0
        assert cython.output.read_text() == "--module-name=shared --generate-shared\n"
        assert len(cython.runs.read_text()) == runs
        Path("pufferlib/types.pxd").write_text(version)


@pytest.mark.all
def test_touched_sources_are_not_recompiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for program in ("cmake", "ninja", "cython", "cc"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not here; cmake, ninja and cython come with the extra dev")
    tree, build = tmp_path / "tree", tmp_path / "build"
    shutil.copytree(PACKAGE, tree / "pufferlib", ignore=shutil.ignore_patterns("*.so", "*.py[ic]", "__pycache__"))
    shutil.copy(PACKAGE.parent / "CMakeLists.txt", tree)
    options = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", f"-DPython_EXECUTABLE={sys.executable}"]
    subprocess.run(["cmake", "-S", tree, "-B", build, *options], check=True, capture_output=True)

    def compiled() -> tuple[float, ...]:
        command = ["cmake", "--build", build, "--target", "pufferlib.training._advantage"]
        subprocess.run(command, check=True, capture_output=True)
        files = (build / "pufferlib.training._advantage.c", *build.glob("pufferlib/training/_advantage.*.so"))
        return tuple(file.stat().st_mtime for file in files)

    first = compiled()
    for source in (*tree.rglob("*.pyx"), *tree.rglob("*.pxd")):
        source.touch()
    assert compiled() == first
