"""Template of a dev container: published to a registry, applied to another project, and built."""

import json
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


@pytest.mark.skipif(not any(image.target == "tank" for image in images()), reason="the image tank is not built")
def test_applied_template_builds_an_image_with_git(project: Path) -> None:
    tag = "puffertank-test-template"
    try:
        docker("build", "--network", "host", "--tag", tag, project / ".devcontainer")
        program = "import subprocess, pufferlib; subprocess.run(['git', '--version'], check=True)"
        assert docker("run", "--rm", tag, "python", "-c", program).startswith("git version")
    finally:
        run("docker", "image", "rm", "--force", tag)
