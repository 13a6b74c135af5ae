"""RecordVideo: which episodes and frames it records, in each autoreset mode."""

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


class RenderedEnv(FunctionEnv):
    """Environment with episodes of three steps, whose frames are grey and become brighter with each step."""

    def __init__(self, render_mode=None):
        super().__init__(length=3)
        self.render_mode = render_mode

    def render(self):
        return np.full((320, 16, 3), 60 * self.count, np.uint8)


RENDERED = varied(RenderedEnv, render_mode="rgb_array")


def steps_of_frames(path):
    """Return the number of the step shown by each frame of a video."""
    with av.open(str(path)) as file:
        return [round(frame.to_ndarray(format="rgb24").mean() / 60) for frame in file.decode(video=0)]


@pytest.mark.parametrize(
    ("autoreset", "layout", "expected"),
    [
        ("same_step", "serial", [0, 1, 2]),  # the observation of the last step is the first one of the next episode
        ("next_step", "workers", [0, 1, 2, 3]),
        ("disabled", "first", [0, 1, 2, 3]),
    ],
)
def test_every_second_episode_is_recorded(tmp_path, autoreset, layout, expected):
    with RecordVideo(make(RENDERED, layout, autoreset), tmp_path / "films", every=2, env_id=3) as vecenv:
        for _ in play(vecenv, 1000):  # timing decides how often environment 3 is in a batch
            if vecenv.episode == 3:
                break
        assert vecenv.episode == 3
    first, second, *_ = sorted((tmp_path / "films").iterdir())
    assert (first.name, second.name) == ("episode-0.mp4", "episode-2.mp4")
    assert steps_of_frames(first) == steps_of_frames(second) == expected


def test_every_can_be_a_function_and_length_limits_frames(tmp_path):
    with RecordVideo(make(RENDERED), tmp_path, every=lambda episode: episode == 1, length=2) as vecenv:
        for _ in play(vecenv, 15):
            pass
    assert [path.name for path in tmp_path.iterdir()] == ["episode-1.mp4"]
    assert steps_of_frames(tmp_path / "episode-1.mp4") == [0, 1]


def test_folder_does_not_follow_the_working_directory(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with RecordVideo(make(RENDERED), "films", every=1) as vecenv:
        monkeypatch.chdir("elsewhere")  # as an environment may do
        for _ in play(vecenv, 5):
            pass
    assert (tmp_path / "films" / "episode-0.mp4").is_file()


def test_native_environment_is_recorded(tmp_path):
    with RecordVideo(pufferlib.make("squared", num_envs=4, size=3), tmp_path, every=1) as vecenv:
        vecenv.reset(1)
        for _ in range(30):
            vecenv.step(vecenv.action_space.sample())
    assert len(list(tmp_path.iterdir())) > 1


def test_multiagent_episode_ends_with_its_last_agent(tmp_path):
    creator = functools.partial(comes_and_goes().func, **comes_and_goes().keywords)
    with make(creator, num_envs=1) as vecenv:
        vecenv.driver_env.env.render_mode = vecenv.driver_env.render_mode = "rgb_array"
        vecenv.driver_env.env.render = lambda: np.zeros((32, 32, 3), np.uint8)
        with RecordVideo(vecenv, tmp_path, every=1) as recorder:
            for _ in play(recorder, 9):
                pass
            assert recorder.episode == 2
    assert len(steps_of_frames(tmp_path / "episode-0.mp4")) == 4


def test_wrong_arguments_are_refused(tmp_path):
    with (
        make(varied(RenderedEnv)) as vecenv,
        pytest.raises(
            APIUsageError,
            match=r'must be made with render_mode="rgb_array", got render_mode=None; for instance functools',
        ),
    ):
        RecordVideo(vecenv, tmp_path)
    env = TargetEnv()
    with pytest.raises(APIUsageError, match="a native environment must have a render method, got TargetEnv without"):
        RecordVideo(env, tmp_path)
    with make(RENDERED) as vecenv:
        for options, message in (
            ({"env_id": 4}, "env_id must be 0 to 3, got 4"),
            ({"every": 0}, "every must be a number of episodes of at least 1, or a function, got 0"),
            ({"length": -1}, "length must be a number of frames, or 0 for all, got -1"),
        ):
            with pytest.raises(APIUsageError, match=message):
                RecordVideo(vecenv, tmp_path, **options)
