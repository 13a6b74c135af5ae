"""Skip these tests if Optuna is not installed."""

from pathlib import Path

import pytest

from tests.needs import missing_extra
from tests.trials import done

__all__ = ["done"]


def pytest_collection_modifyitems(items):
    if reason := missing_extra("sweep"):
        for item in items:
            if Path(__file__).parent in item.path.parents:
                item.add_marker(pytest.mark.skip(reason=reason))
