"""Pictures as observations: what a game draws, brought to any size, whoever steps it."""

import functools
from itertools import combinations

import numpy as np
import pytest
from gymnasium.spaces import Box

import pufferlib
import pufferlib.vector
from pufferlib import ocean
from pufferlib.native._pictures import scale_picture
from pufferlib.ocean import env as ocean_env
from pufferlib.ocean.pymultiagent import PyMultiagent
from pufferlib.ocean.spaces import Spaces
from pufferlib.ocean.types import env_types

every_env = pytest.mark.parametrize("name", ocean.names())
every_env_in_python = pytest.mark.parametrize("name", ocean.python_names())

# Every type that has games of several agents. Multiagent draws eight at once, snake draws large maps in another way.
SEVERAL = [
    ("connect4", {"players": 2}),
    ("go", {"players": 2}),
    ("moba", {"script_opponents": False}),
    ("multiagent", {"players": 20}),
    ("nmmo3", {"num_players": 12}),
    ("rware", {"num_agents": 6}),
    ("snake", {"num_snakes": 12}),
    ("snake", {"num_snakes": 12, "width": 500, "height": 400}),
    ("tactical", {"players": 2}),
    ("trash_pickup", {"num_agents": 6}),
    ("tripletriad", {"players": 2}),
]
several_agents = pytest.mark.parametrize(("name", "keywords"), SEVERAL)

OUTCOME = ("observations", "final_observations", "rewards", "terminals", "truncations", "masks")


def weights(large, small):
    """The share that each of ``large`` pixels has in each of ``small`` ones: ``(small, large)``."""
    edges = np.arange(small + 1) * large / small
    pixels = np.arange(large)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.maximum(overlap, 0) * small / large


def mean_of_areas(picture, height, width):
    """``picture`` in another size, as real numbers."""
    rows, columns = weights(picture.shape[0], height), weights(picture.shape[1], width)
    return np.einsum("yi,xj,ijc->yxc", rows, columns, picture.astype(float), optimize=True)


def scaled(picture, height, width):
    small = np.empty((height, width, 3), np.uint8)
    scale_picture(picture, small)
    return small


def as_seen(picture, height, width):
    """Reduce ``picture`` to an agent's observation."""
    return scaled(picture, height, width).transpose(2, 0, 1)


def actions_of(env, steps):
    env.action_space.seed(0)
    return [env.action_space.sample() for _ in range(steps)]


def outcomes(env, steps):
    """The bytes of all that a reset and ``steps`` steps return."""
    actions = actions_of(env, steps)
    env.reset()
    seen = []
    for action in actions:
        env.step(action)
        seen.append(b"".join(getattr(env, name).tobytes() for name in OUTCOME))
    return seen


# ---- Scaling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(60, 80), (30, 40), (84, 84), (7, 11), (1, 1), (61, 79), (200, 300), (4, 1000)])
def test_a_pixel_is_the_mean_of_the_area_that_it_covers(size):
    picture = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    np.testing.assert_allclose(scaled(picture, *size), mean_of_areas(picture, *size), atol=2.5)


def test_a_picture_in_its_own_size_stays_as_it_is():
    picture = np.random.default_rng(0).integers(0, 256, (33, 50, 3), np.uint8)
    np.testing.assert_array_equal(scaled(picture, 33, 50), picture)


@pytest.mark.parametrize("size", [(1, 1), (13, 7), (84, 84), (300, 500)])
def test_one_colour_stays_itself(size):
    picture = np.full((211, 160, 3), [0, 97, 255], np.uint8)
    np.testing.assert_array_equal(scaled(picture, *size), np.broadcast_to(picture[0, 0], (*size, 3)))


def test_pictures_of_other_shapes_are_refused():
    picture = np.zeros((4, 4, 3), np.uint8)
    for wrong in (np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)):
        for pair in ((picture, wrong), (wrong, picture)):
            with pytest.raises(pufferlib.APIUsageError, match="both pictures must have the shape"):
                scale_picture(*pair)


# ---- Observations -----------------------------------------------------------------------------------


def all_differ(pictures):
    return all(not np.array_equal(one, other) for one, other in combinations(pictures, 2))


@every_env
def test_an_agent_sees_what_render_draws_for_it(name):
    env = ocean.OceanEnv(name, num_envs=3, seed=5, pixels=(40, 30))
    assert env.single_observation_space == Box(0, 255, (3, 40, 30), np.uint8)
    observations, _ = env.reset()
    for action in [None, *actions_of(env, 8)]:
        if action is not None:
            observations, *_ = env.step(action)
        shown = observations.reshape(3, -1, 3, 40, 30)
        for game in range(3):
            for agent, seen in enumerate(shown[game]):
                np.testing.assert_array_equal(seen, as_seen(env.render(game, agent=agent), 40, 30))


@every_env
def test_no_type_with_games_of_several_agents_is_left_out(name):
    abouts = [parameter.about for parameter in env_types()[name].parameters]
    is_several = ocean.OceanEnv(name).num_agents > 1 or any("agents of a game" in about for about in abouts)
    assert is_several == (name in dict(SEVERAL))


@several_agents
def test_an_agent_can_tell_which_one_it_is(name, keywords):
    env = ocean.OceanEnv(name, seed=2, pixels=(84, 84), **keywords)
    assert env.num_agents > 1
    observations, _ = env.reset()
    assert all_differ(observations)
    for action in actions_of(env, 20):
        observations, *_ = env.step(action)
        assert all_differ(observations)


@pytest.mark.parametrize("name", [*ocean.names(), *ocean.python_names()])
def test_a_seed_gives_the_same_pictures_whatever_came_before(name):
    creator = pufferlib.env_creator(name)
    with pufferlib.vector.make(creator, env_kwargs={"pixels": (20, 20)}, num_envs=1, backend="Serial") as vecenv:
        first = vecenv.reset(seed=3)[0].copy()
        for action in actions_of(vecenv, 12):
            vecenv.step(action)
        np.testing.assert_array_equal(vecenv.reset(seed=3)[0], first)


@every_env
def test_pictures_change_nothing_in_the_game(name):
    plain, drawn = (ocean.OceanEnv(name, num_envs=2, seed=2, pixels=pixels) for pixels in (None, (8, 8)))
    actions = actions_of(plain, 30)
    plain.reset()
    drawn.reset()
    for action in actions:
        plain.step(action)
        drawn.step(action)
        for array in ("rewards", "terminals", "truncations", "masks"):
            np.testing.assert_array_equal(getattr(plain, array), getattr(drawn, array))


@pytest.mark.parametrize("name", ["breakout", "cartpole", "multiagent", "squared"])
def test_the_last_picture_of_an_episode_is_kept(name):
    """A game that stands still after its end shows what ``final_observations`` kept where the next one begins."""
    same, still = (
        ocean.OceanEnv(name, num_envs=8, seed=3, pixels=(12, 16), autoreset=mode) for mode in ("same_step", "disabled")
    )
    actions = actions_of(same, 3000)
    same.reset()
    still.reset()
    for action in actions:
        same.step(action)
        still.step(action)
        over = (same.terminals | same.truncations).reshape(8, -1).all(axis=1)
        if over.any():
            rows = np.repeat(over, same.num_agents // 8)
            np.testing.assert_array_equal(same.final_observations[rows], still.observations[rows])
            assert same.final_observations[rows].any()
            assert all_differ(same.final_observations[rows][: same.num_agents // 8])
            return
    pytest.fail("3000 random steps finish no episode")


def test_agents_that_end_while_their_game_goes_on_keep_the_picture_after_the_step():
    env = ocean.Snake(num_envs=2, seed=1, pixels=(24, 24))
    assert env.agents_end
    ended = 0
    actions = actions_of(env, 100)
    env.reset()
    for action in actions:
        env.step(action)
        rows = env.terminals | env.truncations
        ended += rows.sum()
        np.testing.assert_array_equal(env.final_observations[rows], env.observations[rows])
    assert ended


@pytest.mark.parametrize("name", ["breakout", "multiagent", "squared"])
def test_any_number_of_threads_draws_the_same(name, monkeypatch):
    monkeypatch.setattr("pufferlib.ocean.arguments.usable_cpus", lambda: 8)
    monkeypatch.setattr(ocean_env, "OceanBatch", functools.partial(ocean_env.OceanBatch, helper_ns=0))
    one, *others = (ocean.OceanEnv(name, num_envs=21, num_threads=n, pixels=(20, 20)) for n in (1, 2, 5))
    expected = outcomes(one, 100)
    for other in others:
        assert outcomes(other, 100) == expected


@pytest.mark.parametrize("backend", ["native", "Serial", "Multiprocessing"])
def test_every_backend_draws_the_same(backend):
    options = {"num_workers": 1} if backend == "Multiprocessing" else {}
    creator, keywords = pufferlib.env_creator("squared"), {"num_envs": 5, "pixels": (9, 9)}
    vecenv = pufferlib.vector.make(creator, env_kwargs=keywords, backend=backend, seed=4, **options)
    try:
        assert vecenv.single_observation_space.shape == (3, 9, 9)
        assert outcomes(vecenv, 60) == outcomes(ocean.Squared(seed=4, **keywords), 60)
    finally:
        vecenv.close()


def test_a_network_for_pictures_takes_them():
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.models import make_policy

    env = ocean.Squared(num_envs=2, pixels=(84, 84))
    policy = make_policy(env, "NatureCNN", hidden_size=16)
    params, values = policy.forward_eval(torch.from_numpy(env.reset()[0]))
    assert (params.shape, values.shape) == ((2, 9), (2,))


# ---- In Python --------------------------------------------------------------------------------------------


def played(name, backend="Serial", autoreset="same_step", **keywords):
    """The observations and final observations after each of three steps."""
    keywords = {"pixels": (40, 30), **keywords}
    options = {"num_workers": 1} if backend == "Multiprocessing" else {}
    creator = pufferlib.env_creator(name)
    with pufferlib.vector.make(
        creator, env_kwargs=keywords, num_envs=2, seed=4, backend=backend, autoreset=autoreset, **options
    ) as vecenv:
        vecenv.reset()
        return [(vecenv.step(action)[0].copy(), vecenv.final_observations.copy()) for action in actions_of(vecenv, 3)]


def test_an_agent_of_spaces_sees_what_render_draws():
    env = Spaces(pixels=(40, 30))
    assert env.observation_space == Box(0, 255, (3, 40, 30), np.uint8)
    for play in (lambda: env.reset(seed=1), lambda: env.step({"image": 0, "flat": 1})):
        seen, *_ = play()
        np.testing.assert_array_equal(seen, as_seen(env.render(), 40, 30))


def test_each_agent_of_pymultiagent_sees_what_render_draws_for_it():
    env = PyMultiagent(pixels=(40, 30))
    assert env.observation_space(1) == Box(0, 255, (3, 40, 30), np.uint8)
    for play in (lambda: env.reset(seed=1), lambda: env.step({1: 0, 2: 0})):
        seen, *_ = play()
        for agent in (1, 2):
            np.testing.assert_array_equal(seen[agent], as_seen(env.render(agent), 40, 30))
        assert not np.array_equal(seen[1], seen[2])
        assert not np.array_equal(env.render(), env.render(1))


@pytest.mark.parametrize("nested", [False, True])
def test_the_picture_of_spaces_tells_the_answer(nested):
    """Each column at the right end is orange just above its middle if the sum is above 0."""
    env, plain = (pufferlib.make("spaces", nested=nested, pixels=pixels) for pixels in ((100, 160), None))
    for seed in range(200):
        red, _, blue = env.reset(seed=seed)[0].astype(int)
        plain.reset(seed=seed)
        answers = [red[above, 140] > blue[above, 140] for above in (35, 81)]
        flat = plain.observations.view(plain.obs_dtype).ravel()[0]
        image, flat = (flat["parts"]["f0"]["image"], flat["parts"]["f1"]) if nested else (flat["image"], flat["flat"])
        assert answers == [image.sum() > 0, flat.sum() > 0]


@every_env_in_python
def test_the_pictures_of_environments_in_python_do_not_depend_on_the_rest(name):
    expected = played(name)
    others = [{"render_mode": "ansi"}, {"pixels": [40, 30]}, {"backend": "Multiprocessing"}]
    for options in others:
        np.testing.assert_array_equal(played(name, **options), expected)


@every_env_in_python
def test_the_last_picture_of_environments_in_python_is_kept(name):
    (_, final), (still, _) = played(name)[0], played(name, autoreset="disabled")[0]
    np.testing.assert_array_equal(final, still)
    assert all_differ(final)


# ---- The keyword -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pixels", [(0, 84), (84,), (84, 84, 3), (84, 4097), 84, "84", (84.0, 84), (True, 84), {84, 85}]
)
def test_sizes_that_no_picture_has_are_refused(pixels):
    for name, class_name in (("pong", "Pong"), ("spaces", "Spaces"), ("pymultiagent", "PyMultiagent")):
        problem = f"^{class_name}: pixels must be a height and a width, two ints from 1 to 4096, got .*(84, 84)"
        with pytest.raises(pufferlib.APIUsageError, match=problem):
            pufferlib.make(name, pixels=pixels)


def test_sizes_may_be_any_pair_of_ints():
    for pixels in ((5, 4), [5, 4], np.array([5, 4])):
        for name in ("pong", *ocean.python_names()):
            assert pufferlib.make(name, pixels=pixels).single_observation_space.shape == (3, 5, 4)


def test_it_can_be_closed_and_freed_at_any_time():
    env = ocean.Squared(pixels=(8, 8))
    env.close()
    env = ocean.Squared(pixels=(8, 8))
    env.reset()
    observations = env.observations
    env.close()
    env.close()
    assert observations.any()
