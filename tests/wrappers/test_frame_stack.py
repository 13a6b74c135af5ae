"""FrameStack: the last observations of each agent's episode, on every backend and in each autoreset mode."""

from collections import deque

import numpy as np
import pytest
from gymnasium.spaces import Box

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.wrappers.vector import FrameStack
from tests.envs import NESTED
from tests.wrappers.batches import MATRIX, Spy, make, play, varied


@pytest.mark.parametrize(("layout", "autoreset"), MATRIX)
def test_stack_has_the_last_observations_of_one_episode(layout, autoreset):
    spy = Spy(make(layout=layout, autoreset=autoreset))
    shown, finals = [], []
    with FrameStack(spy, 3) as vecenv:
        assert vecenv.single_observation_space == Box(-5, 5, (3, 3))
        vecenv.reset = record_resets(vecenv, shown, finals)
        for observations, _, terminals, *_ in play(vecenv, 30):
            shown += list(observations.copy())
            finals += [final for final, ended in zip(vecenv.final_observations.copy(), terminals, strict=True) if ended]
    stacks, expected_finals = {}, []
    for row, stack in zip(spy.rows, shown, strict=False):
        frames = stacks.setdefault(row["agent"], deque(maxlen=3))
        if row["ended"] and autoreset == "same_step":
            expected_finals.append([*frames, row["final"]][-3:])
        if row["begins"]:
            frames.extend([row["observation"]] * 3)
        else:
            frames.append(row["observation"])
        assert np.array_equal(stack, frames)
    if autoreset == "same_step":
        assert np.array_equal(expected_finals, finals)
        assert len(finals) > 10


def record_resets(vecenv, shown, finals):
    reset = vecenv.reset

    def recorded(**options):
        outcome = reset(**options)
        shown.extend(vecenv.observations[np.isin(vecenv.agent_ids, options["env_ids"])].copy())
        return outcome

    return recorded


def test_images_are_stacked_along_their_channels():
    space = Box(0, 255, (4, 5, 2), np.uint8)
    spy = Spy(make(varied(observation_space=space)))
    with FrameStack(spy, 3, axis="last") as vecenv:
        assert vecenv.single_observation_space == Box(0, 255, (4, 5, 6), np.uint8)
        frames = {}
        for observations, _, terminals, *_ in play(vecenv, 20):
            for row, terminal in enumerate(terminals):
                last = spy.rows[row - 4]
                old = frames.get(row)
                if terminal:
                    expected = np.concatenate([*old, last["final"]][-3:], -1)
                    assert np.array_equal(vecenv.final_observations[row], expected)
                frames[row] = [last["observation"]] * 3 if last["begins"] else [*old, last["observation"]][-3:]
                assert np.array_equal(observations[row], np.concatenate(frames[row], -1))
        assert pufferlib.vector.to_gymnasium(vecenv).single_observation_space == vecenv.single_observation_space


def test_policy_accepts_stacked_observations():
    torch = pytest.importorskip("torch")
    from pufferlib.models import make_policy

    with FrameStack(make(), 4) as vecenv:
        vecenv.reset()
        policy = make_policy(vecenv.driver_env, "Default", 16)
        _, values = policy.forward_eval(torch.from_numpy(vecenv.observations), policy.initial_state(4))
        assert len(values) == 4


def test_action_mask_points_to_the_newest_frame():
    env = pufferlib.make("tripletriad", num_envs=4)
    with FrameStack(env, 3) as vecenv:
        mask = vecenv.driver_env.action_mask
        for _ in range(4):
            observations, _ = vecenv.reset()
            assert np.array_equal(
                observations.reshape(4, -1)[:, mask], env.observations.reshape(4, -1)[:, env.action_mask]
            )
            vecenv.step(vecenv.action_space.sample())


def test_wrong_arguments_are_refused():
    with (
        make(varied(observation_space=NESTED)) as vecenv,
        pytest.raises(APIUsageError, match="got a Dict or Tuple; stack"),
    ):
        FrameStack(vecenv, 4)
    with make() as vecenv:
        with pytest.raises(APIUsageError, match="frames must be an int of at least 1, got 0"):
            FrameStack(vecenv, 0)
        with pytest.raises(UnknownNameError, match="did you mean 'last'"):
            FrameStack(vecenv, 2, axis="lst")
