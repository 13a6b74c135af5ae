"""Fixtures for tests of runs."""

import pytest

from tests.envs import TargetEnv
from tests.threads import one_thread  # noqa: F401


@pytest.fixture
def target_env() -> type[TargetEnv]:
    return TargetEnv
