"""The dev container attaches to what Compose builds, and is no second recipe.

That it starts and works is seen by CI, with the real command line tool (.ci/devcontainer). Its reader accepts
misspelt properties without a word, hence the list of known ones here.
"""

from pathlib import Path
from typing import Any

import pytest

json5 = pytest.importorskip("json5", reason="json5 reads JSON with comments; it comes with pip install pufferlib[lint]")
yaml = pytest.importorskip("yaml", reason="PyYAML reads compose.yaml")

ROOT = Path(__file__).parents[2]
KNOWN = {
    "name",
    "dockerComposeFile",
    "service",
    "runServices",
    "workspaceFolder",
    "overrideCommand",
    "remoteUser",
    "updateRemoteUserUID",
    "postCreateCommand",
    "customizations",
}


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    text = (ROOT / ".devcontainer/devcontainer.json").read_text()
    loaded = json5.loads(text, allow_duplicate_keys=False)
    assert isinstance(loaded, dict)
    return loaded


@pytest.fixture(scope="module")
def service(config: dict[str, Any]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for name in config["dockerComposeFile"]:
        compose = yaml.safe_load((ROOT / ".devcontainer" / name).read_text())
        merged |= compose["services"][config["service"]]
    return merged


def test_every_property_is_a_known_one(config: dict[str, Any]) -> None:
    assert set(config) <= KNOWN


def test_the_image_comes_from_compose_alone(config: dict[str, Any], service: dict[str, Any]) -> None:
    assert not {"image", "build", "features"} & set(config)
    assert service["build"]["target"] == "dev"


def test_starting_builds_nothing_over_the_image_that_has_the_user_s_uid(service: dict[str, Any]) -> None:
    assert service["pull_policy"] == "missing"


def test_the_checkout_is_mounted_where_the_ide_opens_it(config: dict[str, Any], service: dict[str, Any]) -> None:
    assert f".:{config['workspaceFolder']}" in service["volumes"]


def test_the_ide_works_as_an_ordinary_user_of_the_image(config: dict[str, Any]) -> None:
    assert config["remoteUser"] == "tank"
    assert "useradd" in (ROOT / "Dockerfile").read_text()


def test_the_command_after_creation_lies_in_the_image(config: dict[str, Any]) -> None:
    assert (ROOT / "docker/bin" / config["postCreateCommand"]).is_file()


def test_the_test_explorer_is_set_up_for_the_tests(config: dict[str, Any]) -> None:
    settings = config["customizations"]["vscode"]["settings"]
    assert settings["python.testing.pytestEnabled"] is True
    assert all((ROOT / folder).is_dir() for folder in settings["python.testing.pytestArgs"])
    assert settings["python.defaultInterpreterPath"].startswith("/opt/venv/")
