"""Tests of ``log_episodes``, which gives loggers a record of every episode."""

import warnings

import pytest

from pufferlib import vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.training import Config, Trainer, load_config, train
from pufferlib.wrappers import EpisodeStats
from tests.envs import counting_env
from tests.loggers import ListLogger
from tests.training.ranks import AGENTS, Patchy, in_threads, make_config, make_trainer, updates_of

SETTINGS = {
    "train.horizon": 16,
    "train.minibatch_size": 64,
    "train.device": "cpu",
    "train.num_threads": 1,
    "policy.hidden_size": 8,
}


class EpisodeLogger(ListLogger):
    """Logger that keeps metrics and episodes."""

    def __init__(self) -> None:
        super().__init__()
        self.episodes: list[dict[str, float]] = []

    def log_episodes(self, episodes: list[dict[str, float]]) -> None:
        self.episodes += episodes


def python_trainer(tmp_path, loggers, steps=64):
    def make(buf=None, seed=0):
        return GymnasiumPufferEnv(EpisodeStats(counting_env(length=5)), buf=buf, seed=seed)

    envs = vector.make(make, num_envs=2, backend="Serial", autoreset="same_step")
    settings = {**SETTINGS, "train.minibatch_size": 32, "train.total_timesteps": steps}
    return Trainer(load_config("counting", settings), tmp_path, loggers, vecenv=envs)


def native_config(**settings) -> Config:
    return load_config("squared", {**SETTINGS, "env.num_envs": 8, "env.size": 3, **settings})


def test_log_episodes_gets_one_record_per_episode_of_a_python_environment(tmp_path):
    logger = EpisodeLogger()
    python_trainer(tmp_path, [logger, ListLogger()]).train()
    record = {"n": 1, "score": 5, "episode_return": 5, "episode_length": 5}
    assert logger.episodes == [{"agent_steps": 32, **record}] * 6 + [{"agent_steps": 64, **record}] * 6
    assert len(logger) == 2


def test_log_episodes_gets_means_of_n_episodes_of_a_c_environment(tmp_path):
    logger = EpisodeLogger()
    trainer = Trainer(native_config(**{"env.log_interval": 8, "train.total_timesteps": 256}), tmp_path, [logger])
    trainer.train()
    assert sum(record["n"] for record in logger.episodes) > len(logger.episodes) > 1
    for update in logger:
        steps = update["agent_steps"]
        mine = [record for record in logger.episodes if record["agent_steps"] == steps]
        score = sum(record["score"] * record["n"] for record in mine) / sum(record["n"] for record in mine)
        assert update["environment/score"] == pytest.approx(score)


def test_no_records_are_kept_if_no_logger_has_log_episodes(tmp_path):
    trainer = python_trainer(tmp_path, [ListLogger()])
    trainer.step()
    assert trainer.episodes.records is None
    trainer.close()


def test_log_episodes_that_fails_is_reported_once_and_training_continues(tmp_path):
    class Failing(EpisodeLogger):
        def log_episodes(self, episodes):
            raise OSError("the disk is gone")

    failing, logger = Failing(), EpisodeLogger()
    with pytest.warns(
        UserWarning, match="the logger Failing failed in log_episodes: OSError: the disk is gone"
    ) as warned:
        python_trainer(tmp_path, [failing, logger]).train()
    assert len(warned) == 1
    assert (len(logger.episodes), len(failing)) == (12, 2)


def test_log_episodes_of_a_tracker_class_is_called(tmp_path):
    (tmp_path / "mine.py").write_text(
        "class Mine:\n"
        "    def __init__(self, run): self.file = open(run.folder / 'episodes.txt', 'w')\n"
        "    def log(self, metrics): pass\n"
        "    def log_episodes(self, episodes): print(len(episodes), file=self.file)\n"
        "    def close(self): self.file.close()\n"
    )
    settings = {**SETTINGS, "env.num_envs": 8, "train.total_timesteps": 1024, "eval.episodes": 1}
    done = train("squared", settings, runs=tmp_path / "runs", track=f"{tmp_path}/mine.py:Mine")
    assert (done.run.folder / "episodes.txt").read_text().splitlines()[-1] == "1"


def test_rank_0_gets_the_episodes_of_all_ranks(tmp_path):
    def train_rank(ranks):
        logger = EpisodeLogger()
        trainer = make_trainer(make_config({}, AGENTS), tmp_path, ranks, Patchy())
        trainer.loggers = [logger] if ranks.is_first else []
        updates_of(trainer, 2)
        trainer.close()
        return logger.episodes

    of_first, of_second = in_threads(train_rank)
    assert of_second == []
    in_an_update = [AGENTS] * 3  # from each rank
    assert [record["n"] for record in of_first] == 2 * 2 * in_an_update
    assert len({record["agent_steps"] for record in of_first}) == 2


@pytest.mark.parametrize(
    "vec",
    [
        {},
        {"vec.backend": "Multiprocessing", "vec.num_envs": 2, "vec.num_workers": 2},
        {"vec.backend": "Multiprocessing", "vec.num_envs": 4, "vec.num_workers": 2, "vec.batch_size": 2},
    ],
    ids=["native", "workers", "partial batches"],
)
def test_short_run_reports_its_episodes_in_last_update(tmp_path, vec):
    agents = 8 * vec.get("vec.num_envs", 1)
    settings = {"env.log_interval": 100_000, "train.total_timesteps": agents * 48, **vec}
    logger = ListLogger()
    Trainer(native_config(**settings), tmp_path, [logger]).train()
    scores = ["environment/score" in metrics for metrics in logger]
    assert scores == [False, False, True]


def test_env_that_reports_each_episode_is_not_asked_for_reports(tmp_path):
    logger = ListLogger()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        python_trainer(tmp_path, [logger]).train()
    assert [metrics["environment/score"] for metrics in logger] == [5, 5]
