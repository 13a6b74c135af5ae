"""Tests of ``puffer list``: environments, bindings and install commands."""

import json
import sys

import pytest

import pufferlib
from pufferlib import ocean, registry
from pufferlib.cli import main
from pufferlib.cli.verbs import list as list_verb
from pufferlib.registry import outside


def test_list_json_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == pufferlib.list_envs()
    assert all(entry["about"] for entry in entries if entry["source"] == "ocean")


def test_list_prints_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list"]) == 0
    words = capsys.readouterr().out.split()
    assert set(pufferlib.list_envs()) <= set(words)


def test_list_in_terminal_shows_families_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert len(text.splitlines()) < 40
    assert not {f"atari/{name}" for name in registry.names("atari")} & set(text.split())
    assert {"ocean", *registry.binding_facts()} <= {line.split()[0] for line in text.splitlines() if line}
    assert f" {len(registry.names('atari'))}  " in text
    assert main(["list", "atari"]) == 0
    words = capsys.readouterr().out.split()
    assert {f"atari/{name}" for name in registry.names("atari")} <= set(words)
    assert not set(ocean.names()) & set(words)


def test_list_all_includes_unavailable_bindings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_verb, "in_image", lambda: False)
    assert main(["list", "--all", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries.keys() == registry.binding_facts().keys()
    assert {name for name, entry in entries.items() if entry["unavailable"]} == {"dmlab", "minerl", "smac"}
    assert entries["atari"]["install"] == "puffer install atari"
    assert main(["list", "--all"]) == 0
    text = capsys.readouterr().out
    assert all(f" {name} " in text for name in entries)
    assert "PyPI's smac is SMAC3" in " ".join(text.split())


def test_list_shows_installed_bindings_and_install_commands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(list_verb, "state", lambda facts: "installed" if facts.name == "atari" else "")
    monkeypatch.setenv("PUFFER_COMMAND", "./scripts/tank")
    for in_image, way in ((False, "./scripts/tank install nethack"), (True, "docker compose run --rm tank-full")):
        monkeypatch.setattr(list_verb, "in_image", lambda inside=in_image: inside)
        assert main(["list", "atari", "nethack"]) == 0
        text = capsys.readouterr().out
        assert "atari, installed: 104\n" in text
        assert f"nethack, with {way}: 9\n" in text


def test_list_includes_registered_envs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(outside, "REGISTERED", {})
    pufferlib.register("mine/forage", "CartPole-v1", about="Forages.")
    pufferlib.register("alone", "CartPole-v1")
    assert main(["list", "mine", "registered"]) == 0
    text = capsys.readouterr().out
    assert "mine, from outside this repository: 1\n  mine/forage  Forages.\n" in text
    assert "registered, from outside this repository: 1\n  alone" in text
    assert text.endswith(("puffer train mine/forage\n", "puffer train alone\n"))
    assert main(["list", "--json", "mine"]) == 0
    assert json.loads(capsys.readouterr().out) == [{"name": "mine/forage", "source": "mine", "about": "Forages."}]
