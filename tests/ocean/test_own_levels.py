"""Levels of MiniGrid in a C file of one's own."""

import shutil

import numpy as np
import pytest

import pufferlib
from pufferlib.errors import APIUsageError
from pufferlib.ocean.files import write_template
from tests.tiers import as_all

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")

FAULTY = """
static void fill(MiniGrid *env, const MiniGridLevel *level) {
    (void)level;
    minigrid_fill(env, minigrid_everywhere(env), minigrid_wall);
    minigrid_place_agent(env, minigrid_everywhere(env));
}
static void forget(MiniGrid *env, const MiniGridLevel *level) { (void)env, (void)level; }
static const MiniGridWorld full = {fill, MINIGRID_REACH, "", false};
static const MiniGridWorld absent = {forget, MINIGRID_REACH, "", false};
static const MiniGridWorld unjudged = {ball_room_generate, MINIGRID_OWN, "", false};
static const MiniGridLevel ball_room_levels[] = {
    {"full", &full, 7, 5, .max_steps = 9},
    {"absent", &absent, 7, 5, .max_steps = 9},
    {"unjudged", &unjudged, 7, 5, .max_steps = 9},
    {"high", &ball_room_world, 7, 9, .max_steps = 9, .judge = ball_room_judge},
    {"endless", &ball_room_world, 7, 5, .max_steps = 0, .judge = ball_room_judge},
};
"""
FAULTS = (
    "the level has no free place for what its function places at random",
    "the function of the level must place the agent",
    "the level has the task MINIGRID_OWN, so it needs a function judge",
    "the level must be at least 3 cells high, not higher than wide",
    "max_steps of the level must be at least 1",
)


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    return write_template("ball_room", tmp_path, "minigrid")[0]


@pytest.mark.parametrize(("level", "width", "height"), [(0, 7, 5), as_all((1, 13, 9))])
def test_template_of_a_level_is_a_game(source, level, width, height):
    rng = np.random.default_rng(0)
    with pufferlib.make(str(source), num_envs=256, seed=1, level=level, mission=True) as env:
        observations, _ = env.reset()
        mission = observations[0, 4 + 3 * 7 * 7 :].tobytes().decode().strip("\0")
        assert mission.startswith("carry the ")
        assert mission.endswith(" ball to the green goal")
        cell = 512 // width
        assert env.render().shape == (height * cell + 104, 512, 3)
        rewards = np.concatenate([env.step(rng.integers(7, size=256))[1].copy() for _ in range(500)])
    if level == 0:  # small enough for random play
        assert 0 < (rewards > 0).sum() < 2000
    assert rewards.min() == 0
    assert rewards.max() < 1


@pytest.mark.all
def test_faulty_level_is_reported_before_it_is_played(source):
    text = source.read_text()
    table = text[text.index("static const MiniGridLevel ") : text.index("#define MINIGRID_OWN_LEVELS")]
    source.write_text(text.replace(table, FAULTY))
    for level, fault in enumerate(FAULTS):
        with pytest.raises(APIUsageError, match=fault):
            pufferlib.make(str(source), level=level)
