"""Rules of the house that no other tool holds: few files at the top, one meaning for each class name, no links."""

import ast
import shutil
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_MODULES_AT_THE_TOP = 10
MOST_FILES_OF_BACKENDS = 27
#: One meaning at two sizes: around one environment and around a batch of them, as in Gymnasium.
FOR_ONE_AND_FOR_MANY = {"ClipAction": ["pufferlib/wrappers/single.py", "pufferlib/wrappers/vector/clip.py"]}


def test_the_package_root_stays_small_enough_to_read():
    modules = sorted(path.name for path in (ROOT / "pufferlib").iterdir() if path.suffix == ".py")
    assert len(modules) <= MOST_MODULES_AT_THE_TOP, f"give one of these a folder: {modules}"


def test_the_backends_stay_few_enough_to_find_one_s_way():
    files = [path for path in (ROOT / "pufferlib/vector").rglob("*") if path.suffix in {".py", ".pyi", ".pyx", ".pxd"}]
    assert len(files) <= MOST_FILES_OF_BACKENDS, "give what is not about backends a home elsewhere"


def test_no_class_name_has_two_meanings():
    homes = defaultdict(list)
    for folder in ("pufferlib", "bindings"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ClassDef):
                    homes[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: sorted(files) for name, files in homes.items() if len(files) > 1} == FOR_ONE_AND_FOR_MANY


@pytest.mark.place
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here; in CI this runs outside the image")
def test_no_link_to_a_place_of_one_machine_is_committed():
    done = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True)
    assert not [line for line in done.stdout.splitlines() if line.startswith("120000")]
