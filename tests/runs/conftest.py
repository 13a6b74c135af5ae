"""Fixtures of the tests of run folders."""

from pathlib import Path

import pytest

from tests.envs import TargetEnv
from tests.threads import one_thread  # noqa: F401


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def target_env() -> type[TargetEnv]:
    return TargetEnv
