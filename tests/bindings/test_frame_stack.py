"""FrameStack: shrinks screens to the same bytes as cv2."""

import numpy as np
import pytest

from pufferlib.native._pictures import FrameStack
from tests.needs import missing_binding

if reason := missing_binding("atari"):
    pytest.skip(reason, allow_module_level=True)

import cv2

SIZES = [(210, 160, 84, 84), (105, 80, 42, 50), (84, 84, 63, 70), (20, 10, 13, 4), (30, 60, 20, 60)]


def screens(kind, shape, rng):
    """Return two screens of noise, of few shades (with many exact halves), or of areas of one shade."""
    if kind == "noise":
        return rng.integers(0, 256, (2, *shape), np.uint8)
    if kind == "shades":
        return rng.choice(np.array([0, 45, 50, 142, 255], np.uint8), (2, *shape))
    return np.kron(rng.integers(0, 256, (2, 5, 5), np.uint8), np.ones((1, 99, 99), np.uint8))[:, : shape[0], : shape[1]]


@pytest.mark.parametrize("kind", ["noise", "shades", "areas"])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_frames_match_cv2_resize_of_the_maximum(size, kind):
    height, width, small_height, small_width = size
    rng = np.random.default_rng(0)
    grey_of = rng.permutation(256).astype(np.uint8)
    frames = np.zeros((3, small_height, small_width), np.uint8)
    colors = np.zeros((2, height, width), np.uint8)
    stack = FrameStack(colors, frames)
    expected = []
    for both in (False, True, False, True, True, True):
        fresh = screens(kind, (height, width), rng)
        changed = rng.random(height) < rng.choice([0.02, 0.5, 1])  # few rows, some, or all
        colors[:, changed] = fresh[:, changed]
        for which in (1, 0):
            if not stack.take(which):
                stack.learn(which, grey_of[colors[which]])
        stack.push(both)
        greys = grey_of[colors]
        screen = np.maximum(*greys) if both else greys[0]
        expected.append(cv2.resize(screen, (small_width, small_height), interpolation=cv2.INTER_AREA))
        assert np.array_equal(frames[-1], expected[-1])
    assert np.array_equal(frames, expected[-3:]), "the last three frames must be in order, oldest first"


def test_take_is_false_for_new_colors_only():
    colors = np.full((2, 210, 160), 7, np.uint8)
    stack = FrameStack(colors, np.zeros((1, 84, 84), np.uint8))
    assert not stack.take(0)
    stack.learn(0, np.full((210, 160), 70, np.uint8))
    assert stack.take(0)
    assert stack.take(1)
    colors[1, 100, 10] = 8
    assert not stack.take(1)


def test_forget_recomputes_overwritten_frames():
    colors = np.random.default_rng(0).integers(0, 256, (2, 210, 160), np.uint8)
    frames = np.zeros((1, 84, 84), np.uint8)
    stack = FrameStack(colors, frames)
    stack.take(0)
    stack.learn(0, colors[0])
    stack.push(False)
    expected = frames.copy()
    frames[:] = 0
    stack.forget()
    stack.push(False)
    assert np.array_equal(frames, expected)


@pytest.mark.parametrize(
    "size",
    [(210, 160, 83, 84), (210, 160, 42, 40), (84, 84, 85, 84), (250, 160, 84, 84), (600, 600, 400, 400)],
    ids=["odd weights", "whole multiples", "larger", "sums that do not fit", "too large"],
)
def test_unsupported_sizes_are_refused(size):
    height, width, *small = size
    with pytest.raises(ValueError, match=r"cannot shrink .* use cv2\.resize"):
        FrameStack(np.zeros((2, height, width), np.uint8), np.zeros((2, *small), np.uint8))


def test_wrong_arrays_are_refused():
    frames = np.zeros((2, 84, 84), np.uint8)
    with pytest.raises(ValueError, match="two screens of one shape"):
        FrameStack(np.zeros((3, 210, 160), np.uint8), frames)
    with pytest.raises(ValueError, match="cannot shrink"):
        FrameStack(np.zeros((2, 210, 160), np.uint8), frames[:0])
    stack = FrameStack(np.zeros((2, 210, 160), np.uint8), frames)
    with pytest.raises(ValueError, match="screen 0 or 1, got 2"):
        stack.take(2)
    with pytest.raises(ValueError, match=r"greys of the shape \(210, 160\), got \(210, 161\)"):
        stack.learn(0, np.zeros((210, 161), np.uint8))
    frames.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        FrameStack(np.zeros((2, 210, 160), np.uint8), frames)
