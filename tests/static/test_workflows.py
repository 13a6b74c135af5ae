"""Rules for the workflows of GitHub Actions. scripts/lint checks their schema."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
each_workflow = pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)


def jobs(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load(path.read_text())["jobs"].values())


def steps(path: Path) -> list[dict[str, Any]]:
    return [step for job in jobs(path) for step in job["steps"]]


@each_workflow
def test_actions_are_pinned_to_a_commit(path: Path) -> None:
    for action in re.findall(r"(?m)^\s*(?:- )?uses: (.+)$", path.read_text()):
        assert re.fullmatch(r"actions/[a-z-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_workflows_use_the_same_version_of_an_action() -> None:
    used = {step["uses"] for path in WORKFLOWS for step in steps(path) if "uses" in step}
    assert len(used) == len({action.partition("@")[0] for action in used})


@each_workflow
def test_jobs_read_the_repository_only(path: Path) -> None:
    assert yaml.safe_load(path.read_text())["permissions"] == {"contents": "read"}
    own = [job["permissions"] for job in jobs(path) if "permissions" in job]
    assert own == ([{"contents": "write", "packages": "write"}] if path.stem == "release" else [])


@each_workflow
def test_jobs_have_a_time_limit(path: Path) -> None:
    assert all("timeout-minutes" in job for job in jobs(path))


@each_workflow
def test_checkouts_keep_no_credentials(path: Path) -> None:
    checkouts = [step for step in steps(path) if step.get("uses", "").startswith("actions/checkout@")]
    assert all(step["with"]["persist-credentials"] is False for step in checkouts)


@each_workflow
def test_commands_are_valid_shell_without_expressions(path: Path) -> None:
    for command in (step["run"] for step in steps(path) if "run" in step):
        assert "${{" not in command, "pass the value in `env`, so that it is never read as shell code"
        done = subprocess.run(["bash", "-n"], input=command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        for name in re.findall(r"(?m)(?:^|\s)((?:scripts|\.ci|tests)/\S+)", command):
            assert (ROOT / name).exists(), name
