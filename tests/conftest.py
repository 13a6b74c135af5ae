"""Options, tiers and fixtures of all tests."""

import gc
import itertools
import os
import random
import re
import shutil
import signal
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from pufferlib.machine.cpus import usable_cpus
from pufferlib.registry.facts import all_facts
from pufferlib.registry.outside import REGISTERED

NIGHT = 20  # factor for the timeouts of nightly tests

# Marks that run in each tier, besides unmarked tests. The tier "once" is the default suite. Tests that are named on the
# command line are "chosen" and run whatever their marks.
TIERS = {"once": set(), "all": {"all"}, "nightly": {"all", "nightly"}, "chosen": {"all", "nightly"}}

BINDINGS = set(all_facts())
BROWSER = "chromium-headless-shell"
DEFAULT_BINDING = "atari"  # tested in the default suite, the others need --all

# Files whose tests share something slow: the Ray cluster, a sweep, trained agents, compiled kernels, the parsed
# package, all findings of the doctor, a release, the wheels.
SHARED = (
    "tests/cluster/",
    "tests/sweeps/",
    "tests/selfplay/",
    "tests/models/test_gpu_kernels.py",
    "tests/static/test_layers.py",
    "tests/installation/test_doctor.py",
    "tests/installation/test_release.py",
    "tests/installation/test_wheels.py",
)

# Tests that depend on how pufferlib was installed. CI runs them in the image, in the dev container and outside of
# containers. All other tests run in the image only.
PLACES = (
    "tests/image/",
    "tests/installation/",
    "tests/docs/test_reference.py",
    "tests/static/test_entrypoint.py",
    "tests/static/test_exports.py",
    "tests/static/test_script",  # prefix of several files
    "tests/ocean/test_ocean.py",
    "tests/registry/test_registry.py",
    "tests/vector/test_make.py",
    "tests/vector/test_multiprocessing.py",
)

os.environ["PUFFER_REPLAYS"] = ""  # expected failures save no bundles, except in tests of bundles

# Tests train small networks, which more threads than free cores slow down a hundredfold. Processes of tests inherit it.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Worker processes unpickle environments of tests by name, so they must find the package ``tests``. The folder comes
# last, so that it never hides an installed package.
sys.path.append(str(Path(__file__).parents[1]))


def pytest_addoption(parser):
    tier = {"dest": "tier", "action": "store_const"}
    parser.addoption("--default", const="once", help="run the default suite, also for folders and files", **tier)
    parser.addoption(
        "--all", const="all", help="also run every binding, worker layout, learning bar and sanitizer", **tier
    )
    parser.addoption(
        "--nightly", const="nightly", help="--all, plus tests of several minutes, and much longer random play", **tier
    )
    parser.addoption(
        "--without-bindings",
        default="",
        metavar="NAMES",
        help="skip what --all adds for these bindings, for example nle,procgen",
    )
    parser.addoption(
        "--with-bindings", default=[], action="append", metavar="NAME", help="run what --all adds for this binding too"
    )


@pytest.fixture(scope="session")
def nightly(request):
    """Return whether the tier is nightly, in which tests play much longer."""
    return request.config.option.tier == "nightly"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Return the current folder, which is empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def blank_curves(monkeypatch):
    """Leave learning curves of runs empty, because drawing one takes half of the time of a tiny training."""
    from pufferlib.runs import report

    draw = report.plot_learning_curve
    monkeypatch.setattr(report, "plot_learning_curve", lambda path, *args: path.write_bytes(b""))
    return draw


@pytest.fixture
def drawn_curves(blank_curves, monkeypatch):
    """Draw learning curves, also in a file that uses ``blank_curves``."""
    monkeypatch.setattr("pufferlib.runs.report.plot_learning_curve", blank_curves)


@pytest.fixture(autouse=True)
def _same_start(monkeypatch):
    """Start every test with the same random numbers and one thread of torch, independent of earlier tests.

    Spaces without a seed get distinct fixed seeds. Spaces in other processes stay random.
    """
    seed, unasked = gymnasium.Space.seed, itertools.count()
    monkeypatch.setattr(
        gymnasium.Space, "seed", lambda space, given=None: seed(space, next(unasked) if given is None else given)
    )
    random.seed(0)
    np.random.seed(0)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(0)  # torch.manual_seed also seeds GPUs, in milliseconds
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(autouse=True)
def _restore_registrations():
    before = dict(REGISTERED)
    yield
    REGISTERED.clear()
    REGISTERED.update(before)


def pytest_configure(config):
    # Set the tier here, because the workers of pytest-xdist get the option but not the command line.
    config.option.tier = config.option.tier or unflagged_tier(config)
    # A shell starts background jobs with SIGINT ignored, and nohup ignores SIGHUP. Child processes would inherit this.
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


def unflagged_tier(config):
    """Return the tier of a run without --all and --nightly.

    Named tests and files run completely. A folder runs all but the nightly tests.
    """
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
    if hasattr(config, "workerinput"):  # longest timeouts first, so that no core is idle at the end
        run.sort(key=lambda item: -max([0, *(mark.args[0] for mark in item.iter_markers("timeout"))]))
    items[:] = run
    config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish():
    freeze_objects()


@pytest.hookimpl(trylast=True)  # after the teardown of fixtures
def pytest_runtest_teardown(item, nextitem):
    """Freeze again between test files, if the last ones have imported large packages such as torch."""
    if nextitem is not None and nextitem.path != item.path and len(sys.modules) > frozen_modules + 200:
        freeze_objects()


def freeze_objects():
    """Exclude all objects from garbage collection. Most are modules and tests, which stay until the end."""
    global frozen_modules
    gc.collect()
    gc.freeze()
    frozen_modules = len(sys.modules)


def add_marks(item):
    """Add the marks that depend on the file of a test."""
    if item.nodeid.startswith(PLACES):
        item.add_marker(pytest.mark.place)
    if binding_of(item.nodeid) not in (None, DEFAULT_BINDING):
        item.add_marker(pytest.mark.all)
    if item.get_closest_marker("browser") and not shutil.which(BROWSER):
        item.add_marker(pytest.mark.skip(reason=f"needs a browser (Debian: apt-get install {BROWSER})"))


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_auto_num_workers():
    return usable_cpus() + 1  # one more than cores, because many tests wait for processes


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """With ``-n``, run tests that share something slow to load in the same worker."""
    if config.getvalue("dist") != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Scheduling(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return shared_load(nodeid)

        def remove_node(self, node):
            """Return a crashed worker's tests to the queue, without units that it has finished.

            Without this, pytest-xdist sends the finished units to other workers as empty lists. A worker starts its
            last test only when it gets more tests, so it would wait for ever.
            """
            assigned = self.assigned_work[node]
            self.assigned_work[node] = {name: unit for name, unit in assigned.items() if not all(unit.values())}
            return super().remove_node(node)

    return Scheduling(config, log)


def shared_load(nodeid):
    """Return the name of what a test shares with others: a slow fixture, or the packages of a binding."""
    for load in SHARED:
        if nodeid.startswith(load):
            return load
    return f"binding {binding}" if (binding := binding_of(nodeid)) else nodeid


def binding_of(nodeid):
    """Return the name of the binding that a test plays, or None for none or several."""
    for pattern in (r"tests/\w+/test_bindings\.py::.*\[(\w+)/", r"tests/bindings/test_(\w+)\.py::"):
        if (found := re.match(pattern, nodeid)) and found[1] in BINDINGS:
            return found[1]
    return None
