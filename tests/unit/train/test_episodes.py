import numpy as np
import pytest

from pufferlib.errors import APIUsageError
from pufferlib.train.episodes import EpisodeMeans


def test_every_episode_counts_once():
    means = EpisodeMeans()
    means.add([{"score": 10.0, "n": 3}, {"score": 2, "name": "x"}])
    means.add([{"score": 0.0, "perf": np.float32(0.5)}])
    assert means.get("reward", "score") == 32 / 5
    assert means.pop() == {"environment/score": 32 / 5, "environment/perf": 0.5}
    assert means.pop() == {}
    assert means.get("score") is None


def test_every_agent_of_an_environment_counts_once():
    means = EpisodeMeans()
    means.add([{"a": {"score": 1.0}, "b": {"score": 2.0}}, {"a": {"score": 6.0}}, {}, {"a": {}}])
    assert means.pop() == {"environment/score": 3.0}


def test_figures_of_no_episode_do_not_count():
    means = EpisodeMeans()
    means.add([{"score": 7.0, "n": 0}, {"score": 3.0, "n": 2}, {"length": 0.0, "n": 0}])
    assert means.pop() == {"environment/score": 3.0}


@pytest.mark.parametrize("info", [None, 1, "won", ["won"]])
def test_an_info_that_is_no_dict_is_told(info):
    with pytest.raises(APIUsageError, match="infos must be dicts, got "):
        EpisodeMeans().add([info])
