"""The dev container attaches to what Compose builds, and is no second recipe.

That it starts and works is seen by CI, with the real command line tool (.ci/devcontainer). Its reader accepts
misspelt properties without a word, hence the list of known ones here.
"""

from pathlib import Path
from typing import Any

import pytest

json5 = pytest.importorskip("json5", reason="json5 reads JSON with comments; it comes with pip install -e '.[lint]'")
yaml = pytest.importorskip("yaml", reason="PyYAML reads compose.yaml")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".devcontainer"
CONFIGURATIONS = sorted(path for path in FOLDER.rglob("devcontainer.json"))
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


def read(path: Path) -> dict[str, Any]:
    loaded = json5.loads(path.read_text(), allow_duplicate_keys=False)
    assert isinstance(loaded, dict)
    return loaded


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Merge two files as Compose does."""
    both = {name: merged(one[name], other[name]) for name in one.keys() & other if isinstance(one[name], dict)}
    return one | other | both


@pytest.fixture(scope="module", params=CONFIGURATIONS, ids=lambda path: str(path.relative_to(FOLDER)))
def file(request: pytest.FixtureRequest) -> Path:
    path = request.param
    assert isinstance(path, Path)
    return path


@pytest.fixture(scope="module")
def config(file: Path) -> dict[str, Any]:
    return read(file)


@pytest.fixture(scope="module")
def service(file: Path, config: dict[str, Any]) -> dict[str, Any]:
    service: dict[str, Any] = {}
    for name in config["dockerComposeFile"]:
        service = merged(service, yaml.safe_load((file.parent / name).read_text())["services"][config["service"]])
    return service


def test_the_one_with_the_gpu_asks_for_it_and_for_the_build_of_torch_that_uses_it() -> None:
    # COMPOSE_FILE, by which .env gives the GPU to all else, is hidden by the files that a configuration names.
    gpu = read(FOLDER / "gpu/devcontainer.json")
    assert "../../compose.gpu.yaml" in gpu["dockerComposeFile"]
    dev = yaml.safe_load((FOLDER / "gpu/compose.yaml").read_text())["services"]["dev"]
    assert dev == {"image": "puffertank/dev:cuda", "build": {"args": {"DEVICE": "cuda"}}}


def test_all_configurations_differ_in_their_names_and_compose_files_alone() -> None:
    first, *others = map(read, CONFIGURATIONS)
    assert others
    for other in others:
        assert {name for name in first | other if first.get(name) != other.get(name)} == {"name", "dockerComposeFile"}


def test_only_the_one_with_the_gpu_needs_one(file: Path, service: dict[str, Any]) -> None:
    assert ("deploy" in service) == (file.parent.name == "gpu")


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
