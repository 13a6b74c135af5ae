"""Worker processes unpickle the environments of tests by name, so they must find the package ``tests`` as well."""

import itertools
import os
import random
import re
import signal
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from pufferlib.machine.cpus import usable_cpus
from pufferlib.registry.facts import all_facts
from pufferlib.registry.outside import REGISTERED

NIGHT = 20  # times as long may a test take that plays as long as a night allows

# The marks of what runs besides the rest. Without a flag each promise is seen once, and tests that are chosen by name
# run whatever their mark.
TIERS = {"once": set(), "all": {"all"}, "nightly": {"all", "nightly"}, "chosen": {"all", "nightly"}}

BINDINGS = set(all_facts())
IN_THE_DAY = "atari"  # the binding that is played in every run; the others are for --all

# Files whose tests share what takes long to make: the Ray cluster, a sweep, all findings of the doctor.
SHARED = ("tests/cluster/", "tests/sweeps/", "tests/installation/test_doctor.py")

# What depends on where and how pufferlib was installed. CI runs these in the image, in the dev container and outside;
# all others would find the same in each place, and run in the image alone.
PLACES = (
    "tests/image/",
    "tests/installation/",
    "tests/static/test_entrypoint.py",
    "tests/static/test_script",  # and their faults
    "tests/ocean/test_ocean.py",
    "tests/registry/test_registry.py",
    "tests/vector/test_make.py",
    "tests/vector/test_multiprocessing.py",
)

os.environ["PUFFER_REPLAYS"] = ""  # failures on purpose leave no bundles, but in tests of these

# Last, so that it never hides an installed package.
sys.path.append(str(Path(__file__).parents[1]))


def pytest_addoption(parser):
    tier = {"dest": "tier", "action": "store_const"}
    parser.addoption("--default", const="once", help="the default tests, also of folders and files", **tier)
    parser.addoption("--all", const="all", help="every binding, layout of workers and learning bar; sanitizers", **tier)
    parser.addoption(
        "--nightly", const="nightly", help="--all, what takes minutes each, and play as long as a night allows", **tier
    )
    parser.addoption(
        "--without-bindings", default="", metavar="NAMES", help="leave out what --all adds for these, as in nle,procgen"
    )
    parser.addoption(
        "--with-bindings", default=[], action="append", metavar="NAME", help="run what --all adds for this binding too"
    )


@pytest.fixture(scope="session")
def nightly(request):
    """True if tests may play for as long as a night allows."""
    return request.config.option.tier == "nightly"


@pytest.fixture(autouse=True)
def seeds(monkeypatch):
    """Give every test the same random numbers, whatever ran before it in the same process.

    Spaces that no seed was given to sample the same too, each its own; those of other processes take their chance.
    """
    seed, unasked = gymnasium.Space.seed, itertools.count()
    monkeypatch.setattr(
        gymnasium.Space, "seed", lambda space, given=None: seed(space, next(unasked) if given is None else given)
    )
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def _forget_what_a_test_registers():
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def pytest_configure(config):
    # Here and not in the workers of pytest-xdist, which get the option, but no longer know what the user wrote.
    config.option.tier = config.option.tier or unflagged_tier(config)
    # A shell starts its background jobs with Ctrl-C ignored, which every process that a test starts would inherit.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def unflagged_tier(config):
    """Tier of a run without --all and --nightly: tests that are named all run; a folder means all but the nightly."""
    if config.args_source is not config.ArgsSource.ARGS:
        return "chosen" if config.option.keyword else "once"
    named = config.option.keyword or all(re.search(r"\.py$|::", argument) for argument in config.args)
    return "chosen" if named else "all"


def pytest_collection_modifyitems(config, items):
    without = {name for name in config.option.without_bindings.split(",") if name}
    if unknown := without - BINDINGS:
        raise pytest.UsageError(f"--without-bindings: there is no binding {', '.join(sorted(unknown))}")
    run, left_out = [], []
    for item in items:
        add_marks(item)
        tiers = {mark.name for mark in item.iter_markers()} & TIERS["nightly"]
        binding = binding_of(item.nodeid)
        is_chosen = item.nodeid in config.args or (binding in config.option.with_bindings and tiers == {"all"})
        leave_out = (not tiers <= TIERS[config.option.tier] and not is_chosen) or (tiers and binding in without)
        (left_out if leave_out else run).append(item)
        if config.option.tier == "nightly" and (limit := item.get_closest_marker("timeout")):
            item.add_marker(pytest.mark.timeout(limit.args[0] * NIGHT), append=False)
    if hasattr(config, "workerinput"):  # what may take longest comes first, so that no core is left idle at the end
        run.sort(key=lambda item: -max([0, *(mark.args[0] for mark in item.iter_markers("timeout"))]))
    items[:] = run
    config.hook.pytest_deselected(items=left_out)


def add_marks(item):
    """Add the marks that follow from where a test is."""
    if item.nodeid.startswith(PLACES):
        item.add_marker(pytest.mark.place)
    if binding_of(item.nodeid) not in (None, IN_THE_DAY):
        item.add_marker(pytest.mark.all)


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    return usable_cpus() + 1  # many tests wait for processes, so that one more than the cores has something to do


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
    """Name the load that a test shares with others: a slow fixture, or the packages of a binding."""
    for load in SHARED:
        if nodeid.startswith(load):
            return load
    return f"binding {binding}" if (binding := binding_of(nodeid)) else nodeid


def binding_of(nodeid):
    """Name the binding that a test plays; None where it plays none, or many."""
    for pattern in (r"tests/\w+/test_bindings\.py::.*\[(\w+)/", r"tests/bindings/test_(\w+)\.py::"):
        if (found := re.match(pattern, nodeid)) and found[1] in BINDINGS:
            return found[1]
    return None
