"""The dev container uses the image that Compose builds, without a second recipe.

CI tests that it starts and works, with the devcontainer command line tool (.ci/devcontainer). The tool silently ignores
misspelled properties, so this file has a list of known properties.
"""

import re
from pathlib import Path
from typing import Any

import pytest

import pufferlib

json5 = pytest.importorskip("json5", reason="json5 reads JSON with comments; it comes with pip install -e '.[lint]'")
yaml = pytest.importorskip("yaml", reason="PyYAML reads compose.yaml")

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".devcontainer"
TEMPLATE = ROOT / "docker/template"
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


def test_gpu_configuration_requests_a_gpu_and_the_cuda_build() -> None:
    # A configuration that lists Compose files ignores COMPOSE_FILE, which adds the GPU for everything else in .env.
    gpu = read(FOLDER / "gpu/devcontainer.json")
    assert "../../compose.gpu.yaml" in gpu["dockerComposeFile"]
    dev = yaml.safe_load((FOLDER / "gpu/compose.yaml").read_text())["services"]["dev"]
    assert dev == {"image": "puffertank/dev:cuda", "build": {"args": {"DEVICE": "cuda"}}}


def test_configurations_differ_only_in_name_and_compose_files() -> None:
    first, *others = map(read, CONFIGURATIONS)
    assert others
    for other in others:
        assert {name for name in first | other if first.get(name) != other.get(name)} == {"name", "dockerComposeFile"}


def test_only_the_gpu_configuration_needs_a_gpu(file: Path, service: dict[str, Any]) -> None:
    assert ("deploy" in service) == (file.parent.name == "gpu")


def test_every_property_is_known(config: dict[str, Any]) -> None:
    assert set(config) <= KNOWN


def test_image_is_defined_only_by_compose(config: dict[str, Any], service: dict[str, Any]) -> None:
    assert not {"image", "build", "features"} & set(config)
    assert service["build"]["target"] == "dev"


def test_starting_does_not_rebuild_the_image(service: dict[str, Any]) -> None:
    assert service["pull_policy"] == "missing"


def test_checkout_is_mounted_at_the_workspace_folder(config: dict[str, Any], service: dict[str, Any]) -> None:
    assert f".:{config['workspaceFolder']}:z" in service["volumes"]


def test_ide_runs_as_user_tank(config: dict[str, Any]) -> None:
    assert config["remoteUser"] == "tank"
    assert "useradd" in (ROOT / "Dockerfile").read_text()


def test_post_create_command_is_in_the_image(config: dict[str, Any]) -> None:
    assert (ROOT / "docker/bin" / config["postCreateCommand"]).is_file()


def test_test_explorer_is_configured(config: dict[str, Any]) -> None:
    settings = config["customizations"]["vscode"]["settings"]
    assert settings["python.testing.pytestEnabled"] is True
    assert all((ROOT / folder).is_dir() for folder in settings["python.testing.pytestArgs"])
    assert settings["python.defaultInterpreterPath"].startswith("/opt/venv/")


# Template for other projects (docs/recipes.md). tests/image/test_template.py publishes and applies it.


def test_template_uses_each_of_its_options() -> None:
    options = read(TEMPLATE / "devcontainer-template.json")["options"]
    used = {
        name
        for path in (TEMPLATE / ".devcontainer").iterdir()
        for name in re.findall(r"\$\{templateOption:(\w+)\}", path.read_text())
    }
    assert used == set(options)
    assert all(option["type"] == "string" and option["description"] for option in options.values())
    assert all(option["default"] in option.get("enum", option.get("proposals")) for option in options.values())


def test_template_has_the_version_of_the_package() -> None:
    assert read(TEMPLATE / "devcontainer-template.json")["version"] == pufferlib.__version__


def test_template_offers_images_of_releases() -> None:
    images = read(TEMPLATE / "devcontainer-template.json")["options"]["image"]["enum"]
    assert set(images) <= set(yaml.safe_load((ROOT / "compose.yaml").read_text())["services"])
    (released,) = re.findall(r"\^\(([a-z|-]+)\):\(cpu\|cuda\)\$", (ROOT / "scripts/release").read_text())
    assert set(images) <= set(released.split("|"))


def test_template_does_not_need_a_gpu() -> None:
    config = read(TEMPLATE / ".devcontainer/devcontainer.json")
    assert set(config) <= KNOWN | {"build", "hostRequirements", "init", "runArgs"}
    assert config["hostRequirements"] == {"gpu": "optional"}
    assert config["remoteUser"] == "tank"
