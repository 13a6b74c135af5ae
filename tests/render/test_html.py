"""What environments show in a notebook."""

import base64
import io
import re
from pathlib import Path

import gymnasium
import numpy as np
import numpy.typing as npt
import pytest

import pufferlib
from pufferlib.emulation import GymnasiumPufferEnv
from pufferlib.render import html


def image_in(page: str) -> npt.NDArray[np.uint8]:
    from PIL import Image

    (data,) = re.findall(r'src="data:image/png;base64,([^"]+)"', page)
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))


def test_an_environment_shows_its_spaces_and_its_frame() -> None:
    with pufferlib.make("breakout", num_envs=3) as env:
        env.reset(seed=1)
        page = env._repr_html_()
        frame = env.render()
    assert "OceanEnv" in page
    assert ">3</td>" in page
    assert "Box(-1.0, 1.0, (118,), float32)" in page
    assert np.array_equal(image_in(page), frame)


def test_many_environments_show_their_spaces() -> None:
    with pufferlib.make("CartPole-v1", num_envs=2) as envs:
        page = envs._repr_html_()
    assert "Serial" in page
    assert "Discrete(2)" in page


class Field(gymnasium.Env[npt.NDArray[np.float32], np.int64]):
    """Environment whose frame is one gray level, once it was reset."""

    observation_space = gymnasium.spaces.Box(-1.0, 1.0, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    render_mode: str | None = None
    level: int | None = None

    def reset(self, *, seed=None, options=None):
        self.level = 200
        return np.zeros(2, np.float32), {}

    def render(self):
        return np.full((60, 4, 3), self.level + 0, np.uint8)  # fails before the first reset


def test_an_environment_that_cannot_be_rendered_yet_shows_its_spaces() -> None:
    env = GymnasiumPufferEnv(Field())
    assert "<img" not in env._repr_html_()
    env.reset()
    frame = image_in(env._repr_html_())
    assert frame.shape == (240, 16, 3), "small frames are enlarged"
    assert (frame == 200).all()


@pytest.mark.parametrize("mode", ["human", "ansi"])
def test_an_environment_with_a_window_or_text_is_not_rendered(mode: str) -> None:
    env = GymnasiumPufferEnv(Field())
    env.reset()
    env.env.render_mode = mode
    assert "<img" not in env._repr_html_()


def test_names_and_values_are_escaped() -> None:
    page = html.facts("<b>", {"a<b": "x & y", "empty": "", "none": None})
    assert "&lt;b&gt;" in page
    assert "a&lt;b" in page
    assert "x &amp; y" in page
    assert "none" not in page
    assert "empty" not in page


def test_files_are_part_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    video = tmp_path / "evaluation.mp4"
    assert html.media(video, "an episode") == "", "there is no file"
    video.write_bytes(b"video")
    page = html.media(video, "an episode")
    assert page.startswith("<video controls")
    assert base64.b64encode(b"video").decode() in page
    monkeypatch.setattr(html, "LARGEST_BYTES", 4)
    assert html.media(video, "an episode") == f"<p>an episode: {video}</p>"
