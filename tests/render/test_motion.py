"""Tests of frames between two steps."""

import pytest

import pufferlib
from pufferlib.render.motion import Motion


def test_motion_renders_frames_between_steps():
    for name, frameskip, per_step, fps in (("pong", 8, 4, 30), ("pong", 3, 3, 60), ("breakout", 1, 1, 60)):
        env = pufferlib.make(name, frameskip=frameskip)
        env.reset(seed=0)
        motion = Motion(env)
        assert (motion.pictures_per_step, motion.fps) == (per_step, pytest.approx(fps))
        assert len(list(motion.between([1]))) == per_step - 1
        env.close()
    assert Motion(object()).fps == 30
