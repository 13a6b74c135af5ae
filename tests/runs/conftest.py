"""Fixtures for tests of runs."""

import pytest

from tests.envs import TargetEnv


@pytest.fixture
def target_env() -> type[TargetEnv]:
    return TargetEnv
