"""Dockerfiles of docs/recipes.md, each built and run."""

import re
import shutil
from pathlib import Path

import pytest

from tests.image.engine import ROOT, build, docker, image_of, images, run

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
RETURNS = """
import torch, discounted
rewards = torch.tensor([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])
ends = torch.tensor([[False, True], [False, False], [True, True]])
print(discounted.discounted(rewards, ends, 0.5).tolist())
"""
PLAY = """
import os, pufferlib
env = pufferlib.make("retro/Airstriker-Genesis-v0", num_envs=1)
print(os.environ["PUFFER_POKEMON_RED_ROM"], env.reset(seed=1)[0].shape[1:])
"""
CARTRIDGE = "/opt/venv/lib/python3.11/site-packages/stable_retro/data/stable/Airstriker-Genesis-v0/rom.md"
# Arguments of the container, and what it prints.
EXPECTED = {
    "Add a CUDA extension": (["python", "-c", RETURNS], "[[1.75, 2.0], [1.5, 3.0], [1.0, 2.0]]"),
    "Add a Debian package": (["jq", "--version"], "jq-1"),
    "Add a ROM": (
        ["python", "-c", PLAY],
        "/opt/mine/roms/red.gb (4, 84, 84)",
    ),
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


def devices(title: str) -> list[str]:
    """Return the devices for which a recipe is built. All recipes also work without a GPU."""
    return ["cpu", "cuda"] if ":cuda\n" in RECIPES[title] else ["cpu"]


def base(recipe: str, device: str) -> str:
    """Return the image from which a recipe is built. The test is skipped if it is not built."""
    (service,) = re.findall(r"(?m)^FROM puffertank/([a-z-]+):", recipe)
    name = image_of(service)
    if device == "cuda":
        name = name.rpartition(":")[0] + ":cuda"
    if run("docker", "image", "inspect", name).returncode != 0:
        pytest.skip(f"the image {name} is not built")
    return name


def move_cartridge(image: str, tag: str, folder: Path) -> None:
    """Move the free cartridge of an image into a folder, and build the image ``tag`` without it."""
    folder.mkdir()
    container = docker("create", image)
    try:
        docker("cp", f"{container}:{CARTRIDGE}", folder / "mine.bin")
    finally:
        docker("rm", container)
    (folder / "Dockerfile").write_text(f"FROM {image}\nUSER root\nRUN rm {CARTRIDGE}\nUSER 1000\n")
    docker("build", "--tag", tag, folder)
    (folder / "Dockerfile").unlink()


@pytest.mark.parametrize(("title", "device"), [(title, device) for title in RECIPES for device in devices(title)])
def test_recipe_builds_and_works(title: str, device: str, tmp_path: Path) -> None:
    tag = f"puffertank-test-{re.sub(r'[^a-z]+', '-', title.lower())}-{device}"
    tags, image = [tag], base(RECIPES[title], device)
    command, expected = EXPECTED[title]
    try:
        if "COPY roms" in RECIPES[title]:
            tags.append(f"{tag}-base")
            move_cartridge(image, tags[1], tmp_path / "roms")
            image = tags[1]
        recipe = re.sub(r"(?m)^FROM .*", f"FROM {image}", RECIPES[title])
        shutil.copytree(ROOT / "examples/extension", tmp_path, dirs_exist_ok=True)
        for name, text in FILES.items():
            (tmp_path / name).write_text(text)
        build(recipe, tag, tmp_path)
        done = run("docker", "run", "--rm", "--network", "none", tag, *command)
        assert done.returncode == 0, done.stdout + done.stderr
        assert expected in done.stdout + done.stderr
    finally:
        run("docker", "image", "rm", "--force", *tags)
