"""Template of a dev container: published to a registry, applied to another project, and opened."""

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.container_registry import serve_registry
from tests.image.engine import ROOT, docker, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(shutil.which("devcontainer") is None, reason="needs npm install --global @devcontainers/cli"),
]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return another project, to which the template was applied for the image tank of this machine."""
    folder = tmp_path_factory.mktemp("project")
    name, _, tag = image_of("tank").rpartition(":")
    options = json.dumps({"registry": name.removesuffix("/tank"), "tag": tag})
    with serve_registry(tmp_path_factory.mktemp("registry")) as port:
        registry = f"localhost:{port}"  # the only name for which the tool uses HTTP
        template = f"{registry}/me/templates/puffertank"
        for arguments in (
            ("publish", "--registry", registry, "--namespace", "me/templates", ROOT / "docker/template"),
            ("apply", "--workspace-folder", folder, "--template-id", template, "--template-args", options),
        ):
            done = run("devcontainer", "templates", *arguments)
            assert done.returncode == 0, done.stderr
    return folder


def test_template_is_applied_with_its_options(project: Path) -> None:
    assert sorted(path.name for path in (project / ".devcontainer").iterdir()) == ["Dockerfile", "devcontainer.json"]
    assert (project / ".devcontainer/Dockerfile").read_text().startswith(f"FROM {image_of('tank')}\n")


def opened(project: Path) -> tuple[list[str], list[str]]:
    """Return the containers and images that `devcontainer up` made for a project."""
    containers = docker("ps", "--all", "--quiet", "--filter", f"label=devcontainer.local_folder={project}")
    images = docker("images", "--format", "{{.Repository}}", "--filter", f"reference=vsc-{project.name}-*")
    return containers.split(), images.split()


@pytest.mark.skipif(not any(image.target == "tank" for image in images()), reason="the image tank is not built")
def test_applied_template_opens_and_trains(project: Path) -> None:
    if os.geteuid() == 0:  # the tool gives tank the uid of any other user
        for path in (project, *project.rglob("*")):
            os.chown(path, 1000, 1000)
    inside = ("devcontainer", "exec", "--workspace-folder", project)
    try:
        up = run("devcontainer", "up", "--workspace-folder", project)
        assert up.returncode == 0, up.stderr
        assert run(*inside, "git", "--version").stdout.startswith("git version")
        trained = run(*inside, "puffer", "train", "squared", "--train.total-timesteps", "65536", "--eval.episodes", "1")
        assert trained.returncode == 0, trained.stdout
        assert [*project.glob("runs/*-squared/summary.json")]
    finally:
        containers, made = opened(project)
        run("docker", "rm", "--force", *containers)
        run("docker", "image", "rm", "--force", *made)
