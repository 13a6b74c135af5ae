"""The C compiler of this machine: which one is taken, and the sentence where there is none."""

import sys
from pathlib import Path

import pytest

from pufferlib.errors import PufferError
from pufferlib.native.compiler import find_compiler, read_warnings


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder that is all of the PATH, and has no compiler yet; no module is installed in it either."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    return tmp_path


def add(folder: Path, name: str) -> Path:
    """Add a program that does nothing."""
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_cc_of_the_environment_comes_first_then_cc_gcc_and_clang(place, monkeypatch):
    for name in ("clang", "gcc", "cc"):
        add(place, name)
        assert find_compiler("x").command == (name,)
    add(place, "mine")
    monkeypatch.setenv("CC", "mine --fast")
    assert find_compiler("x").command == ("mine", "--fast")


def test_ziglang_is_taken_where_there_is_no_other(place, monkeypatch):
    package = place / "modules" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    add(package, "zig")
    monkeypatch.delitem(sys.modules, "ziglang")
    monkeypatch.syspath_prepend(str(package.parent))
    found = find_compiler("x")
    assert found.command[:2] == (str(package / "zig"), "cc")
    assert "-mcpu=baseline" in found.command
    assert found.env["ZIG_LOCAL_CACHE_DIR"].endswith("pufferlib/zig")


def test_another_release_is_another_compiler(place):
    program = add(place, "cc")
    before = find_compiler("x").identity
    program.write_text("#!/bin/sh\n# newer\n")
    assert find_compiler("x").identity != before


def test_no_compiler_is_answered_with_how_to_get_one(place, monkeypatch):
    with pytest.raises(PufferError, match=r"^x: no C compiler \(cc, gcc, clang\) .* run: .*puffer install compiler"):
        find_compiler("x")
    monkeypatch.setenv("CC", "icc -O3")
    with pytest.raises(PufferError, match=r"CC must name a C compiler, got 'icc -O3', which is not on the PATH"):
        find_compiler("x")


def test_an_image_without_a_compiler_names_the_one_that_has_it(place):
    add(place, "tank-entrypoint")  # every image of ours has it on the PATH
    with pytest.raises(PufferError, match=r"is on the PATH; this image does not have it, run outside: docker .* dev$"):
        find_compiler("x")


def test_warnings_are_read_and_nothing_else():
    said = "a.c: In function 'f':\na.c:7:3: warning: odd [-Wodd]\n    7 |  f\na.c:9:1: error: no\n"
    said += "b.h:2:1: warning: even\n"
    assert read_warnings(said) == [("a.c", 7, "odd [-Wodd]"), ("b.h", 2, "even")]
