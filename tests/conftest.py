"""Worker processes unpickle the environments of tests by name, so they must find the package ``tests`` as well."""

import random
import re
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

NIGHT = 20  # times as long may a test take that plays as long as a night allows

# What depends on where and how pufferlib was installed. CI runs these in the image, in the dev container and outside;
# all others would find the same in each place, and run in the image alone.
PLACES = (
    "tests/image/",
    "tests/installation/",
    "tests/static/",
    "tests/docs/test_examples.py",
    "tests/ocean/test_ocean.py",
    "tests/registry/test_registry.py",
    "tests/vector/test_make.py",
    "tests/vector/test_multiprocessing.py",
)

# Last, so that it never hides an installed package.
sys.path.append(str(Path(__file__).parents[1]))


def pytest_addoption(parser):
    parser.addoption(
        "--nightly", action="store_true", help="play longer, and in more ways; run the tests marked nightly too"
    )


@pytest.fixture(scope="session")
def nightly(request):
    """True if tests may play for as long as a night allows."""
    return request.config.getoption("--nightly")


@pytest.fixture(autouse=True)
def seeds():
    """Give every test the same random numbers, whatever ran before it in the same process."""
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


def pytest_configure():
    # A shell starts its background jobs with Ctrl-C ignored, which every process that a test starts would inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config, items):
    for item in items:
        if item.nodeid.startswith(PLACES):
            item.add_marker(pytest.mark.place)
    if config.getoption("--nightly"):
        for item in items:
            if limit := item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(limit.args[0] * NIGHT), append=False)
        return
    left_out = [item for item in items if item.get_closest_marker("nightly")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """With ``-n``, give tests that share what is slow to load to one worker."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return shared_load(nodeid)

    return Scheduling(config, log)


def shared_load(nodeid):
    """Name the load that a test shares with others: the Ray cluster, or the packages of a binding."""
    if nodeid.startswith("tests/cluster/"):
        return "cluster"
    for pattern in (r"tests/\w+/test_bindings\.py::.*\[(\w+)/", r"tests/bindings/test_(\w+)\.py::"):
        if binding := re.match(pattern, nodeid):
            return f"binding {binding[1]}"
    return nodeid
