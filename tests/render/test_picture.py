"""Tests of picture_of, which returns the rendered image of any environment."""

import gymnasium
import numpy as np
import pytest

from pufferlib.render.picture import picture_of

PICTURE = np.zeros((2, 3, 3), np.uint8)


class Draws:
    """Environment whose ``render`` returns or raises ``outcome``."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    def render(self) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_picture_of_returns_only_rgb_arrays() -> None:
    assert picture_of(Draws(PICTURE)) is PICTURE
    for outcome in (None, "text", ["text"], [], PICTURE[0, 0], PICTURE[..., :2], NotImplementedError()):
        assert picture_of(Draws(outcome)) is None
    assert picture_of(object()) is None


RGB = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
GREY = np.repeat(RGB[..., :1], 3, axis=2)


@pytest.mark.parametrize(
    ("outcome", "shown"),
    [
        (np.dstack([RGB, RGB[..., 0]]), RGB),
        (RGB[..., 0], GREY),
        (RGB[..., :1], GREY),
        (RGB / 255, RGB),
        (RGB.astype(np.float32), RGB),
        (RGB.astype(np.int64) * 100 - 50, np.clip(RGB.astype(int) * 100 - 50, 0, 255)),
        (RGB > 50, (RGB > 50) * 255),
        (RGB.transpose(2, 0, 1), RGB),
        (RGB[::-1], RGB[::-1]),
        (RGB.tolist(), RGB),
        ([RGB * 0, RGB], RGB),
        ([RGB[..., 0] * 0, RGB[..., 0]], GREY),
        (np.where(RGB > 50, np.nan, RGB / 255), np.where(RGB > 50, 0, RGB)),
    ],
    ids=[
        "rgba",
        "grey",
        "one channel",
        "to 1",
        "real",
        "wide",
        "bool",
        "channels",
        "strides",
        "list",
        "two",
        "greys",
        "nan",
    ],
)
def test_other_image_formats_are_converted(outcome: object, shown: np.ndarray) -> None:
    found = picture_of(Draws(outcome))
    assert found is not None
    assert found.dtype == np.uint8
    np.testing.assert_array_equal(found, shown)


def test_env_without_render_mode_has_no_picture_and_no_warning() -> None:
    env = gymnasium.make("CartPole-v1")
    env.reset()
    assert picture_of(env) is None


def test_missing_render_dependency_warns_once() -> None:
    env = Draws(gymnasium.error.DependencyNotInstalled("pygame is not installed"))
    with pytest.warns(UserWarning, match="^Draws cannot be rendered: pygame is not installed") as warned:
        assert (picture_of(env), picture_of(env)) == (None, None)
    assert len(warned) == 1
