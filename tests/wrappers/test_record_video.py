"""Videos of episodes: those that were asked for, whole, in each mode."""

import functools

import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from pufferlib.wrappers.vector import RecordVideo
from tests.envs import FunctionEnv, TargetEnv
from tests.wrappers.batches import comes_and_goes, make, play, varied

av = pytest.importorskip("av")


class Drawn(FunctionEnv):
    """Episodes of three steps, drawn in a grey that grows with each step."""

    def __init__(self, render_mode=None):
        super().__init__(length=3)
        self.render_mode = render_mode

    def render(self):
        return np.full((320, 16, 3), 60 * self.count, np.uint8)


DRAWN = varied(Drawn, render_mode="rgb_array")


def shades(path):
    """Number of the step that each frame of a video shows."""
    with av.open(str(path)) as file:
        return [round(frame.to_ndarray(format="rgb24").mean() / 60) for frame in file.decode(video=0)]


@pytest.mark.parametrize(
    ("autoreset", "layout", "expected"),
    [
        ("same_step", "serial", [0, 1, 2]),  # at the end the next episode is shown already
        ("next_step", "workers", [0, 1, 2, 3]),
        ("disabled", "first", [0, 1, 2, 3]),
    ],
)
def test_every_second_episode_is_filmed(tmp_path, autoreset, layout, expected):
    with RecordVideo(make(DRAWN, layout, autoreset), tmp_path / "films", every=2, env_id=3) as vecenv:
        for _ in play(vecenv, 1000):  # workers decide how often environment 3 is among the first
            if vecenv.episode == 3:
                break
        assert vecenv.episode == 3
    first, second, *_ = sorted((tmp_path / "films").iterdir())
    assert (first.name, second.name) == ("episode-0.mp4", "episode-2.mp4")
    assert shades(first) == shades(second) == expected


def test_a_function_chooses_and_a_length_cuts(tmp_path):
    with RecordVideo(make(DRAWN), tmp_path, every=lambda episode: episode == 1, length=2) as vecenv:
        for _ in play(vecenv, 15):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["episode-1.mp4"]
    assert shades(tmp_path / "episode-1.mp4") == [0, 1]


def test_a_native_environment_is_filmed(tmp_path):
    with RecordVideo(pufferlib.make("squared", num_envs=4, size=3), tmp_path, every=1) as vecenv:
        vecenv.reset(1)
        for _ in range(30):
            vecenv.step(vecenv.action_space.sample())
    assert len(list(tmp_path.iterdir())) > 1


def test_an_episode_of_several_agents_ends_with_the_last_of_them(tmp_path):
    creator = functools.partial(comes_and_goes().func, **comes_and_goes().keywords)
    with make(creator, num_envs=1) as vecenv:
        vecenv.driver_env.env.render_mode = vecenv.driver_env.render_mode = "rgb_array"
        vecenv.driver_env.env.render = lambda: np.zeros((32, 32, 3), np.uint8)
        with RecordVideo(vecenv, tmp_path, every=1) as films:
            for _ in play(films, 9):
                pass
            assert films.episode == 2
    assert len(shades(tmp_path / "episode-0.mp4")) == 4


def test_what_cannot_be_filmed_is_refused(tmp_path):
    with (
        make(varied(Drawn)) as vecenv,
        pytest.raises(
            APIUsageError,
            match=r'must be made with render_mode="rgb_array", got render_mode=None; for instance functools',
        ),
    ):
        RecordVideo(vecenv, tmp_path)
    env = TargetEnv()
    with pytest.raises(APIUsageError, match="a native environment must have a render method, got TargetEnv without"):
        RecordVideo(env, tmp_path)
    with make(DRAWN) as vecenv:
        for options, message in (
            ({"env_id": 4}, "env_id must be 0 to 3, got 4"),
            ({"every": 0}, "every must be a number of episodes of at least 1, or a function, got 0"),
            ({"length": -1}, "length must be a number of frames, or 0 for all, got -1"),
        ):
            with pytest.raises(APIUsageError, match=message):
                RecordVideo(vecenv, tmp_path, **options)
