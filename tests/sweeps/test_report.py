"""Report of a search."""

import re

import matplotlib
import pytest

from pufferlib.settings.config import load_config
from pufferlib.sweeps import SweepResult, write_report
from pufferlib.sweeps.spaces import load_search
from pufferlib.sweeps.study import TrialQueue, create_study
from tests.tiers import as_all
from tests.trials import SPACES


@pytest.fixture(scope="module")
def written(done):
    """Report as text, and two settings of pyplot before and after it was written."""
    settings = [(matplotlib.rcParams.copy()["backend"], matplotlib.rcParams["figure.figsize"])]
    page = write_report(done).read_text("utf-8")
    settings.append((matplotlib.rcParams.copy()["backend"], matplotlib.rcParams["figure.figsize"]))
    return page, settings


def test_report_is_one_page_without_network(done, written):
    page, _ = written
    links = re.findall(r'(?:href|src)="([^"#][^"]*)"', page)
    assert links
    assert not [link for link in links if "//" in link and "www.w3.org" not in link]
    assert page.count("<svg") == 4 + len(SPACES)
    for trial in done.trials:
        assert f'<tr id="trial-{trial.number}"' in page


def test_report_keeps_backend_and_style_of_pyplot(written):
    _, (before, after) = written
    assert after == before


@pytest.mark.parametrize(
    ("options", "trials", "plots"), [({"objective": "score,cost"}, 5, 7), as_all(({"direction": "minimize"}, 1, 6))]
)
def test_report_of_other_objectives(options, trials, plots, tmp_path):
    spaces = {"only": "train.gamma,train.horizon,train.optimizer", "train.optimizer.choices": ["adam", "muon"]}
    search = load_search(load_config("squared"), {}, [], {"trials": trials, **spaces, **options})
    study = create_study(tmp_path, "squared", search)
    queue = TrialQueue(study, search, tmp_path, print)
    for score in range(trials):
        trial = queue.claim()
        queue.report(trial, 1, score / 2)
        queue.finish(trial, score, seconds=1.0, steps=100)
    page = write_report(SweepResult(tmp_path, study)).read_text("utf-8")
    assert page.count("<svg") == plots
    assert ("Too few trials have finished" in page) == (trials == 1)
