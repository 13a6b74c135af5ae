import warnings

import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.training.episodes import EpisodeMeans, ScoreHint


def test_means_weigh_every_episode_once():
    means = EpisodeMeans()
    means.add([{"score": 10.0, "n": 3}, {"score": 2, "name": "x"}])
    means.add([{"score": 0.0, "perf": np.float32(0.5)}])
    assert means.get("reward", "score") == 32 / 5
    assert means.pop() == {"environment/score": 32 / 5, "environment/perf": 0.5}
    assert means.pop() == {}
    assert means.get("score") is None


def test_means_weigh_every_agent_once():
    means = EpisodeMeans()
    means.add([{"a": {"score": 1.0}, "b": {"score": 2.0}}, {"a": {"score": 6.0}}, {}, {"a": {}}])
    assert means.pop() == {"environment/score": 3.0}


@pytest.mark.parametrize("value", [np.bool_(True), np.array(1.0), np.array([1]), np.array([[True]])], ids=repr)
def test_arrays_of_one_element_are_numbers(value):
    means = EpisodeMeans()
    means.add([{"is_success": value, "trace": np.ones(2), "name": "x"}, {"is_success": 0}])
    assert means.pop() == {"environment/is_success": 0.5}


def test_infos_with_n_0_are_ignored():
    means = EpisodeMeans()
    means.add([{"score": 7.0, "n": 0}, {"score": 3.0, "n": 2}, {"length": 0.0, "n": 0}])
    assert means.pop() == {"environment/score": 3.0}


@pytest.mark.parametrize("info", [None, 1, "won", ["won"]])
def test_info_that_is_not_dict_raises(info):
    with pytest.raises(APIUsageError, match="infos must be dicts, got "):
        EpisodeMeans().add([info])


@pytest.mark.parametrize("score", [float("nan"), float("inf")])
def test_score_that_is_not_finite_raises(score):
    with pytest.raises(APIUsageError, match=f"infos: the score of an episode must be a finite number, got {score}"):
        EpisodeMeans().add([{"a": {"score": score, "n": 2}}])


@pytest.mark.parametrize(
    ("interval", "rollouts", "warns"),
    [
        (1, [(False, False), (True, False)], [False, True]),
        (1, [(True, False), (True, False)], [True, False]),
        (1, [(True, True), (True, False)], [False, False]),
        (17, [(True, False), (False, False), (False, False)], [False, False, True]),  # a rollout has 8 steps
        (17, [(True, False), (False, True), (True, False)], [False, False, False]),
        (9, [(True, False), (False, False), (True, False)], [False, True, False]),
    ],
)
def test_missing_score_warns_once(interval, rollouts, warns):
    hint = ScoreHint(interval, "do so")
    for (ended, reported), warned in zip(rollouts, warns, strict=True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            hint.update({"environment/score": 1.0} if reported else {}, ended, 8)
        assert bool(caught) is warned


@pytest.mark.parametrize(("are_means", "expected"), [(True, {"score": 4.0}), (False, {"score": 3.0, "n": 3.0})])
def test_n_is_plain_metric_if_infos_are_not_means(are_means, expected):
    means = EpisodeMeans(are_means)
    means.add(
        [{"score": 5.0, "n": 6}, {"score": 1.0, "n": 0}] if not are_means else [{"score": 5.0, "n": 3}, {"score": 1.0}]
    )
    assert means.means() == expected


def test_n_of_single_agents_is_plain_metric():
    means = EpisodeMeans()
    means.add([{"a": {"score": 1.0, "n": 0}, "b": {"score": 3.0, "n": 4}}])
    assert means.means() == {"score": 2.0, "n": 2.0}


def test_records_are_kept_only_after_keep_records():
    means = EpisodeMeans()
    means.add([{"score": 1.0}])
    assert means.pop_records() == []
    means.keep_records()
    means.add([{"score": 2, "name": "x"}, {"a": {"score": 3.0}, "b": {"score": 4.0}}])
    means.add([{"score": 5.0, "n": 3}])
    resumed = EpisodeMeans()
    resumed.load_state_dict(means.state_dict())
    expected = [{"n": 1, "score": 2}, {"n": 1, "score": 3}, {"n": 1, "score": 4}, {"n": 3, "score": 5}]
    assert means.pop_records() == resumed.pop_records() == expected
    assert means.pop_records() == []
    assert means.means() == {"score": 25 / 7}
