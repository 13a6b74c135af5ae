"""Dockerfiles of docs/recipes.md, each built and run."""

import os
import re
from pathlib import Path

import pytest

from tests.image.engine import ROOT, image_of, images, run

pytestmark = [
    pytest.mark.image,
    pytest.mark.nightly,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        not any(image.target == "runtime" for image in images()),
        reason="image tests: the image runtime is not built, or no Docker engine answers",
    ),
]

RECIPES = dict(
    re.findall(r"(?ms)^## ([^\n]+)\n(?:(?!^## ).)*?^```dockerfile\n(.*?)^```$", (ROOT / "docs/recipes.md").read_text())
)
FILES = {
    "my_env.py": """
import gymnasium


class Coin(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.observation_space.low, {}

    def step(self, action):
        return self.observation_space.low, float(action), True, False, {}
""",
    "requirements.txt": "einops==0.8.0\nnumpy==1.20.0\n",
    "test_project.py": """
import unittest
import pufferlib


class Environments(unittest.TestCase):
    def test_squared(self):
        pufferlib.make("squared", num_envs=2).reset(seed=1)
""",
}
# Arguments of the container, and what it prints.
EXPECTED = {
    "Add a Debian package": (["jq", "--version"], "jq-1"),
    "Add your own environment": (
        ["puffer", "train", "/opt/mine/my_env.py", "--train.total-timesteps", "2048", "--eval.episodes", "1"],
        "my_env.py on the CPU",
    ),
    "Come from Conda": (
        ["python", "-c", "import einops, numpy; print(einops.__version__, numpy.__version__ > '2')"],
        "0.8.0 True",
    ),
    "Test another project in the image": ([], "OK"),
}


@pytest.mark.parametrize("title", RECIPES)
def test_recipe_builds_and_works(title: str, tmp_path: Path) -> None:
    recipe = RECIPES[title].replace("puffertank/runtime:cpu", image_of("runtime"))
    secret: tuple[str, ...] = ()
    if certificates := os.environ.get("TANK_CA"):
        mount = "RUN --mount=type=secret,id=ca,target=/etc/ssl/certs/ca-certificates.crt "
        recipe, secret = recipe.replace("RUN ", mount), ("--secret", f"id=ca,src={certificates}")
    for name, text in {"Dockerfile": recipe, **FILES}.items():
        (tmp_path / name).write_text(text)
    tag = f"puffertank-test-{re.sub(r'[^a-z]+', '-', title.lower())}"
    command, expected = EXPECTED[title]
    try:
        done = run("docker", "build", "--network", "host", "--tag", tag, *secret, tmp_path)
        assert done.returncode == 0, done.stderr
        done = run("docker", "run", "--rm", "--network", "none", tag, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout + done.stderr
    finally:
        run("docker", "image", "rm", "--force", tag)
