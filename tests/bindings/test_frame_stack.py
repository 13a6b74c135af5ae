"""The compiled shrinking of screens gives the bytes of cv2, which is what everybody compares with."""

import numpy as np
import pytest

from pufferlib.native._pictures import FrameStack
from tests.needs import missing_binding

if reason := missing_binding("atari"):
    pytest.skip(reason, allow_module_level=True)

import cv2

SIZES = [(210, 160, 84, 84), (105, 80, 42, 50), (84, 84, 63, 70), (20, 10, 13, 4), (30, 60, 20, 60)]


def screens(kind, shape, rng):
    """Two screens: noise, few shades (many exact halves), or areas of one shade."""
    if kind == "noise":
        return rng.integers(0, 256, (2, *shape), np.uint8)
    if kind == "shades":
        return rng.choice(np.array([0, 45, 50, 142, 255], np.uint8), (2, *shape))
    return np.kron(rng.integers(0, 256, (2, 5, 5), np.uint8), np.ones((1, 99, 99), np.uint8))[:, : shape[0], : shape[1]]


@pytest.mark.parametrize("kind", ["noise", "shades", "areas"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_a_frame_is_what_cv2_makes_of_the_lighter_screen(size, kind):
    height, width, small_height, small_width = size
    rng = np.random.default_rng(0)
    frames = np.zeros((3, small_height, small_width), np.uint8)
    newer, older = np.zeros((2, height, width), np.uint8)
    stack = FrameStack(newer, older, frames)
    expected = []
    for both in (False, True, False, True):
        newer[:], older[:] = screens(kind, (height, width), rng)
        stack.push(both)
        screen = np.maximum(newer, older) if both else newer
        expected.append(cv2.resize(screen, (small_width, small_height), interpolation=cv2.INTER_AREA))
    assert np.array_equal(frames, expected[1:]), "the last three, oldest first"


@pytest.mark.parametrize(
    "size",
    [(210, 160, 83, 84), (210, 160, 42, 40), (84, 84, 85, 84), (250, 160, 84, 84), (600, 600, 400, 400)],
    ids=["odd weights", "whole multiples", "larger", "sums that do not fit", "too large"],
)
def test_sizes_that_only_cv2_can_do_are_refused(size):
    height, width, *small = size
    with pytest.raises(ValueError, match=r"cannot shrink .* use cv2\.resize"):
        FrameStack(*np.zeros((2, height, width), np.uint8), np.zeros((2, *small), np.uint8))


def test_screens_must_be_alike_and_frames_writable():
    frames = np.zeros((2, 84, 84), np.uint8)
    with pytest.raises(ValueError, match="two screens of one shape"):
        FrameStack(np.zeros((210, 160), np.uint8), np.zeros((210, 150), np.uint8), frames)
    with pytest.raises(ValueError, match="cannot shrink"):
        FrameStack(*np.zeros((2, 210, 160), np.uint8), frames[:0])
    frames.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        FrameStack(*np.zeros((2, 210, 160), np.uint8), frames)
