"""Tests of binding.toml files, and of the errors for missing packages and libraries."""

from pathlib import Path

import pytest

import pufferlib
from pufferlib.bindings._shared.missing import explain_missing
from pufferlib.machine import commands
from pufferlib.registry.facts import Facts, all_facts, read_facts

GOOD = """
title = "Game"
about = "A game"
homepage = "https://game.example"
licence = "MIT"
requires = ["game==1.0"]
modules = ["game"]
example = "one"
conformance = ["one"]
"""
WITH_EXTRA = f"{GOOD}extra = true\n"
WITHOUT = f'{GOOD}extra = false\nextra_why = "it asks for an old numpy"\n'
TABLES = """
[metadata.game]
version = "1.0"
requires = ["numpy"]
why = "it asks for an old numpy"
[build]
packages = ["cython==3.3.1"]
[apt]
libgl1 = "libGL.so.1, for its pictures"
libfoo2 = "sounds"
[apt-build]
gcc = "it is compiled"
"""


def facts_of(text: str, folder: Path) -> Facts:
    """Write ``text`` to a binding.toml and read it."""
    file = folder / "game" / "binding.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text, "utf-8")
    return read_facts(file)


def test_binding_has_folder_name_and_unset_keys_are_empty(tmp_path: Path) -> None:
    facts = facts_of(WITH_EXTRA, tmp_path)
    assert (facts.name, facts.requires, facts.common, facts.apt, facts.isolated) == (
        "game",
        ("game==1.0",),
        True,
        {},
        "",
    )
    assert all_facts(tmp_path) == {"game": facts}


def test_extra_name_is_normalized(tmp_path: Path) -> None:
    (tmp_path / "big_game").mkdir()
    (tmp_path / "big_game" / "binding.toml").write_text(WITH_EXTRA)
    facts = all_facts(tmp_path)["big_game"]
    assert (facts.extra_name, facts.command) == ("big-game", "puffer install big_game")


def test_tables_are_read(tmp_path: Path) -> None:
    facts = facts_of(WITHOUT + TABLES, tmp_path)
    assert facts.metadata["game"].requires == ("numpy",)
    assert facts.build == ("cython==3.3.1",)
    assert facts.apt_build == {"gcc": "it is compiled"}
    assert not facts.common


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"{WITH_EXTRA}homepge = ''", r"game/binding\.toml: unknown key 'homepge'; did you mean 'homepage'"),
        (WITH_EXTRA.replace("licence", "#"), r"game/binding\.toml: licence is missing"),
        (WITH_EXTRA.replace('"A game"', "3"), "about must be a string, got 3"),
        (WITH_EXTRA.replace('["game"]', '"game"'), "modules must be a list of strings, got 'game'"),
        (WITH_EXTRA.replace("true", '"yes"'), "extra must be true or false, got 'yes'"),
        (WITH_EXTRA.replace("==1.0", ">=1.0"), "requires must pin every package"),
        (GOOD + "extra = false", "extra_why must explain why"),
        (WITHOUT.replace("false", "true"), "extra_why contradicts"),
        (WITHOUT + "common = true", "common needs extra"),
        (WITH_EXTRA.replace('["one"]', "[]"), "conformance must name 1 to 4"),
        (WITH_EXTRA + 'deterministic = ["two"]', "deterministic must be some of conformance"),
        (WITH_EXTRA + "[build]\npackage = []", "build: unknown key 'package'; did you mean 'packages'"),
        (WITH_EXTRA + "[metadata.game]\nversion = '1'\nrequires = []", "metadata.game: why is missing"),
        (WITH_EXTRA + "[apt]\nlibgl1 = 1", "apt.libgl1 must be its reason, got 1"),
        ("title =", "cannot be read as TOML"),
    ],
)
def test_invalid_binding_file_raises(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(pufferlib.APIUsageError, match=message):
        facts_of(text, tmp_path)


@pytest.fixture(autouse=True)
def _outside_of_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "in_image", lambda: False)


@pytest.mark.parametrize("text", [WITH_EXTRA, WITHOUT])
def test_missing_package_names_install_command(text: str, tmp_path: Path) -> None:
    message = "game/one: needs the package nowhere_to_be_found, which is not installed; run: puffer install game, or"
    with pytest.raises(pufferlib.BindingMissing, match=message), explain_missing(facts_of(text, tmp_path), "game/one"):
        import nowhere_to_be_found.inside  # noqa: F401


@pytest.mark.parametrize(("text", "image"), [(WITH_EXTRA, "tank"), (WITHOUT, "tank-full")])
def test_missing_package_in_image_names_other_image(
    text: str, image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "in_image", lambda: True)
    message = f"this image does not have it, run outside: docker compose run --rm {image} train game/one"
    with pytest.raises(pufferlib.BindingMissing, match=message), explain_missing(facts_of(text, tmp_path), "game/one"):
        raise ModuleNotFoundError("No module named 'game'", name="game")


def test_unavailable_binding_explains_requirements(tmp_path: Path) -> None:
    facts = facts_of(WITHOUT + 'unavailable = "build it yourself"', tmp_path)
    with pytest.raises(pufferlib.BindingMissing, match="not installed; build it yourself"), explain_missing(facts, "g"):
        raise ModuleNotFoundError("No module named 'game'", name="game")


@pytest.mark.parametrize(("library", "package"), [("libGL.so.1", "libgl1,"), ("libbar.so.3.2", "libgl1 libfoo2,")])
def test_missing_library_names_debian_package(library: str, package: str, tmp_path: Path) -> None:
    message = f"needs the system library {library}, which is not installed; run: sudo apt-get install {package}"
    facts = facts_of(WITHOUT + TABLES, tmp_path)
    with pytest.raises(pufferlib.BindingMissing, match=message), explain_missing(facts, "game/one"):
        raise ImportError(f"{library}: cannot open shared object file: No such file or directory")


def test_missing_library_of_the_package_itself_asks_for_a_new_installation(tmp_path: Path) -> None:
    message = r"g: the installed package game lacks its library libgame\.so\.3; run: pip install --force-reinstall"
    facts = facts_of(WITHOUT + TABLES, tmp_path)
    with pytest.raises(pufferlib.BindingMissing, match=message), explain_missing(facts, "g"):
        raise OSError("libgame.so.3: cannot open shared object file: No such file or directory")


@pytest.mark.parametrize(
    "error",
    [
        ModuleNotFoundError("No module named 'pufferlib.nothing'", name="pufferlib.nothing"),
        ImportError("cannot import name 'x' from 'game'"),
        OSError("disk full"),
    ],
)
def test_other_errors_are_unchanged(error: Exception, tmp_path: Path) -> None:
    with pytest.raises(type(error)) as caught, explain_missing(facts_of(WITH_EXTRA, tmp_path), "game/one"):
        raise error
    assert caught.value is error
