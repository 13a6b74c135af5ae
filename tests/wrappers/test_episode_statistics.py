"""EpisodeStatistics: returns and lengths of episodes in infos and queues."""

import functools

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.vector.specs import InfoSource
from pufferlib.wrappers.vector import EpisodeStatistics
from tests.envs import VariedEnv
from tests.wrappers.batches import MATRIX, Spy, comes_and_goes, make, play, varied


@pytest.mark.parametrize(("layout", "autoreset"), MATRIX)
def test_every_episode_is_counted_once(layout, autoreset):
    spy = Spy(make(layout=layout, autoreset=autoreset))
    found = []
    with EpisodeStatistics(spy) as vecenv:
        for *_, infos, _, _ in play(vecenv, 40):
            assert len(vecenv.info_sources) == len(infos)
            found += [(source.env_id, info) for source, info in zip(vecenv.info_sources, infos, strict=True)]
        returns, lengths = vecenv.return_queue, vecenv.length_queue
        assert vecenv.episode_count == len(returns)
    running, expected = {agent: [0, 0] for agent in range(4)}, []
    for row in spy.rows:
        agent = row["agent"]
        if row["acted"]:
            running[agent] = [running[agent][0] + row["reward"], running[agent][1] + 1]
        if row["ended"]:
            expected.append((agent, *running[agent]))
        if row["ended"] or row["begins"]:
            running[agent] = [0, 0]
    assert len(expected) > 10
    assert [each[1:] for each in expected] == list(zip(returns, lengths, strict=True))
    stats = [(env_id, info["episode_return"], info["episode_length"]) for env_id, info in found]
    assert sorted(stats) == sorted(expected[: len(stats)])
    assert all(info["score"] == info["episode_return"] for _, info in found)


def test_statistics_are_merged_into_infos_of_the_last_step():
    creator = varied(functools.partial(VariedEnv, info=_info))
    with EpisodeStatistics(make(creator, num_envs=2)) as vecenv:
        vecenv.reset(options={"level": 7})
        for _ in range(8):
            _, _, terminals, _, infos = vecenv.step([0, 0])
            assert [source.env_id for source in vecenv.info_sources] == [0, 1]
            for terminal, info in zip(terminals, infos, strict=True):
                assert ("episode_length" in info) == terminal
                assert info["score"] == 0.5
                if terminal:
                    assert info["step"] == info["episode_length"]


def _info(env):
    return {"score": 0.5, "step": env.count}


def test_statistics_reported_by_the_environment_are_kept():
    creator = functools.partial(GymnasiumPufferEnv, env_creator=lambda: pufferlib.EpisodeStats(VariedEnv(info=_info)))
    with EpisodeStatistics(make(creator, num_envs=2)) as vecenv:
        for *_, infos, _, _ in play(vecenv, 10):
            assert all((info["score"], info["step"]) == (0.5, info["episode_length"]) for info in infos)
        assert vecenv.episode_count


def test_each_agent_of_an_environment_has_an_info():
    with EpisodeStatistics(make(comes_and_goes(), num_envs=1)) as vecenv:
        found = []
        for *_, infos, _, _ in play(vecenv, 6):
            found += infos
            assert vecenv.info_sources == [InfoSource(0, "step")] * len(infos)
    assert [(info["episode_return"], info["episode_length"]) for info in found] == [(1 + 2, 2), (1 + 2 + 3 + 4, 4)]


def test_statistics_reported_for_agents_are_not_repeated():
    def creator(buf=None):
        env = pufferlib.MultiagentEpisodeStats(
            comes_and_goes().keywords["env_creator"](*comes_and_goes().keywords["env_args"])
        )
        return pufferlib.emulation.PettingZooPufferEnv(env=env, buf=buf)

    with EpisodeStatistics(make(creator, num_envs=1)) as vecenv:
        found = [info for *_, infos, _, _ in play(vecenv, 6) for info in infos]
    assert [{agent: info["episode_return"] for agent, info in each.items()} for each in found] == [{"a": 3}, {"b": 10}]


def test_native_environments_that_report_means_get_no_infos():
    env = pufferlib.make("squared", num_envs=16, seed=1, log_interval=8)
    with EpisodeStatistics(env) as vecenv:
        infos = [info for *_, infos, _, _ in play_native(vecenv) for info in infos]
        assert vecenv.episode_count > 100
        assert len(vecenv.return_queue) == 100
        assert all("n" in info for info in infos)
    with EpisodeStatistics(pufferlib.make("squared", num_envs=16), infos=True) as vecenv:
        assert any("episode_length" in info for *_, infos, _, _ in play_native(vecenv) for info in infos)


def play_native(vecenv):
    vecenv.async_reset(3)
    for _ in range(200):
        yield vecenv.recv()
        vecenv.send(vecenv.action_space.sample())


def test_queues_keep_the_last_episodes():
    whole, short = (EpisodeStatistics(make(), buffer_length=size) for size in (100, 3))
    with whole, short:
        for vecenv in (whole, short):
            for _ in play(vecenv, 15):
                pass
        assert np.array_equal(whole.return_queue[-3:], short.return_queue)
        assert np.array_equal(whole.length_queue[-3:], short.length_queue)
