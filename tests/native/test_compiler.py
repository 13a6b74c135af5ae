"""``find_compiler``: choice of a C compiler, and errors if there is none."""

import sys
from pathlib import Path

import pytest

from pufferlib.errors import PufferError
from pufferlib.native.compiler import find_compiler, read_warnings


@pytest.fixture
def empty_path(tmp_path, monkeypatch):
    """Empty folder that is the only one on the PATH. The module ziglang is not installed."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setitem(sys.modules, "ziglang", None)
    return tmp_path


def add_program(folder: Path, name: str) -> Path:
    """Create a program that does nothing."""
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def test_find_compiler_prefers_variable_cc_then_cc_gcc_clang(empty_path, monkeypatch):
    for name in ("clang", "gcc", "cc"):
        add_program(empty_path, name)
        assert find_compiler("x").command == (name,)
    add_program(empty_path, "mine")
    monkeypatch.setenv("CC", "mine --fast")
    assert find_compiler("x").command == ("mine", "--fast")


def test_ziglang_is_used_if_there_is_no_other_compiler(empty_path, monkeypatch):
    package = empty_path / "modules" / "ziglang"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    add_program(package, "zig")
    monkeypatch.delitem(sys.modules, "ziglang")
    monkeypatch.syspath_prepend(str(package.parent))
    found = find_compiler("x")
    assert found.command[:2] == (str(package / "zig"), "cc")
    assert "-mcpu=baseline" in found.command
    assert found.env["ZIG_LOCAL_CACHE_DIR"].endswith("pufferlib/zig")


def test_identity_depends_on_the_compiler_program(empty_path):
    program = add_program(empty_path, "cc")
    before = find_compiler("x").identity
    program.write_text("#!/bin/sh\n# newer\n")
    assert find_compiler("x").identity != before


def test_missing_compiler_names_the_install_command(empty_path, monkeypatch):
    with pytest.raises(PufferError, match=r"^x: no C compiler \(cc, gcc, clang\) .* run: .*puffer install compiler"):
        find_compiler("x")
    monkeypatch.setenv("CC", "icc -O3")
    with pytest.raises(PufferError, match=r"CC must name a C compiler, got 'icc -O3', which is not on the PATH"):
        find_compiler("x")


def test_missing_compiler_in_an_image_names_the_dev_image(empty_path):
    add_program(empty_path, "tank-entrypoint")  # every image has this program
    with pytest.raises(PufferError, match=r"is on the PATH; this image does not have it, run outside: docker .* dev$"):
        find_compiler("x")


def test_read_warnings_returns_warnings_only():
    output = "a.c: In function 'f':\na.c:7:3: warning: odd [-Wodd]\n    7 |  f\na.c:9:1: error: no\n"
    output += "b.h:2:1: warning: even\n"
    assert read_warnings(output) == [("a.c", 7, "odd [-Wodd]"), ("b.h", 2, "even")]
