"""Pictures of any environment, and of those that draw none."""

import gymnasium
import numpy as np
import pytest

from pufferlib.render.picture import picture_of

PICTURE = np.zeros((2, 3, 3), np.uint8)


class Draws:
    """Environment whose ``render`` returns or raises what it is given."""

    def __init__(self, outcome: object) -> None:
        self.outcome = outcome

    def render(self) -> object:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome


def test_a_picture_is_an_array_of_colours() -> None:
    assert picture_of(Draws(PICTURE)) is PICTURE
    for outcome in (None, "text", [PICTURE], PICTURE[0], NotImplementedError()):
        assert picture_of(Draws(outcome)) is None
    assert picture_of(object()) is None


def test_one_made_without_render_mode_draws_none_without_a_word() -> None:
    env = gymnasium.make("CartPole-v1")
    env.reset()
    assert picture_of(env) is None


def test_what_it_draws_with_is_named_once_where_it_is_missing() -> None:
    env = Draws(gymnasium.error.DependencyNotInstalled("pygame is not installed"))
    with pytest.warns(UserWarning, match="^Draws draws no pictures: pygame is not installed") as told:
        assert (picture_of(env), picture_of(env)) == (None, None)
    assert len(told) == 1
