"""``pixels``: rendered images as observations."""

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
from tests.ocean.helpers import every_env, some_envs
from tests.tiers import as_all, once

every_env_in_python = pytest.mark.parametrize("name", ocean.python_names())

# All environments with several agents. Multiagent draws eight at once, and snake draws large maps differently.
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
several_agents = pytest.mark.parametrize(
    ("name", "keywords"), [case if case[0] in ("connect4", "multiagent", "rware") else as_all(case) for case in SEVERAL]
)

OUTCOME = ("observations", "final_observations", "rewards", "terminals", "truncations", "masks")


def weights(large, small):
    """Return the share of each of ``large`` pixels in each of ``small`` pixels, shape ``(small, large)``."""
    edges = np.arange(small + 1) * large / small
    pixels = np.arange(large)
    overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
    return np.maximum(overlap, 0) * small / large


def area_means(image, height, width):
    """Return ``image`` in another size, as floats."""
    rows, columns = weights(image.shape[0], height), weights(image.shape[1], width)
    return np.einsum("yi,xj,ijc->yxc", rows, columns, image.astype(float), optimize=True)


def scaled(image, height, width):
    small = np.empty((height, width, 3), np.uint8)
    scale_picture(image, small)
    return small


def as_observation(image, height, width):
    """Scale ``image`` to an observation."""
    return scaled(image, height, width).transpose(2, 0, 1)


def actions_of(env, steps):
    env.action_space.seed(0)
    return [env.action_space.sample() for _ in range(steps)]


def outcomes(env, steps):
    """Return the bytes of all arrays after each of ``steps`` steps."""
    actions = actions_of(env, steps)
    env.reset()
    seen = []
    for action in actions:
        env.step(action)
        seen.append(b"".join(getattr(env, name).tobytes() for name in OUTCOME))
    return seen


# ---- Scaling ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(60, 80), (30, 40), (84, 84), (7, 11), (1, 1), (61, 79), (200, 300), (4, 1000)])
def test_pixels_are_means_of_the_areas_that_they_cover(size):
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    np.testing.assert_allclose(scaled(image, *size), area_means(image, *size), atol=2.5)


def test_image_in_its_own_size_is_not_changed():
    image = np.random.default_rng(0).integers(0, 256, (33, 50, 3), np.uint8)
    np.testing.assert_array_equal(scaled(image, 33, 50), image)


@pytest.mark.parametrize("size", [(1, 1), (13, 7), (84, 84), (300, 500)])
def test_image_of_one_colour_keeps_it(size):
    image = np.full((211, 160, 3), [0, 97, 255], np.uint8)
    np.testing.assert_array_equal(scaled(image, *size), np.broadcast_to(image[0, 0], (*size, 3)))


def test_wrong_image_shapes_are_refused():
    image = np.zeros((4, 4, 3), np.uint8)
    for wrong in (np.zeros((4, 4, 4), np.uint8), np.zeros((0, 4, 3), np.uint8)):
        for pair in ((image, wrong), (wrong, image)):
            with pytest.raises(pufferlib.APIUsageError, match="both pictures must have the shape"):
                scale_picture(*pair)


# ---- Observations -----------------------------------------------------------------------------------


def all_differ(images):
    return all(not np.array_equal(one, other) for one, other in combinations(images, 2))


@some_envs
def test_observation_equals_rendered_image_of_the_agent(name):
    env = ocean.OceanEnv(name, num_envs=3, seed=5, pixels=(40, 30))
    assert env.single_observation_space == Box(0, 255, (3, 40, 30), np.uint8)
    observations, _ = env.reset()
    for action in [None, *actions_of(env, 8)]:
        if action is not None:
            observations, *_ = env.step(action)
        shown = observations.reshape(3, -1, 3, 40, 30)
        for game in range(3):
            for agent, seen in enumerate(shown[game]):
                np.testing.assert_array_equal(seen, as_observation(env.render(game, agent=agent), 40, 30))


@every_env
def test_list_of_multiagent_environments_is_complete(name):
    abouts = [parameter.about for parameter in env_types()[name].parameters]
    is_several = ocean.OceanEnv(name).num_agents > 1 or any("agents of a game" in about for about in abouts)
    assert is_several == (name in dict(SEVERAL))


@several_agents
def test_images_of_agents_differ(name, keywords):
    env = ocean.OceanEnv(name, seed=2, pixels=(84, 84), **keywords)
    assert env.num_agents > 1
    observations, _ = env.reset()
    assert all_differ(observations)
    for action in actions_of(env, 20):
        observations, *_ = env.step(action)
        assert all_differ(observations)


@pytest.mark.parametrize("name", [*ocean.names(), *ocean.python_names()])
def test_seed_reproduces_the_image(name):
    creator = pufferlib.env_creator(name)
    with pufferlib.vector.make(creator, env_kwargs={"pixels": (20, 20)}, num_envs=1, backend="Serial") as vecenv:
        first = vecenv.reset(seed=3)[0].copy()
        for action in actions_of(vecenv, 12):
            vecenv.step(action)
        np.testing.assert_array_equal(vecenv.reset(seed=3)[0], first)


@some_envs
def test_pixels_do_not_change_the_trajectory(name):
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
def test_final_observations_have_the_last_image(name):
    """With autoreset disabled, ``observations`` has the last image, with same-step autoreset ``final_observations``."""
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


def test_final_image_of_agents_whose_environment_continues():
    env = ocean.Snake(num_envs=2, num_snakes=8, width=16, height=16, num_food=9, seed=1, pixels=(24, 24))
    assert env.agents_end
    ended = 0
    actions = actions_of(env, 100)
    env.reset()
    for action in actions:
        env.step(action)
        rows = env.terminals | env.truncations
        ended += rows.sum()
        np.testing.assert_array_equal(env.final_observations[rows], env.observations[rows])
    assert ended > 20


@pytest.mark.parametrize("name", once(["breakout", "multiagent", "squared"], ["breakout"]))
def test_threads_give_the_same_images(name, monkeypatch):
    monkeypatch.setattr("pufferlib.ocean.arguments.usable_cpus", lambda: 8)
    monkeypatch.setattr(ocean_env, "OceanBatch", functools.partial(ocean_env.OceanBatch, helper_ns=0))
    one, *others = (ocean.OceanEnv(name, num_envs=21, num_threads=n, pixels=(20, 20)) for n in (1, 2, 5))
    expected = outcomes(one, 40)
    for other in others:
        assert outcomes(other, 40) == expected


@pytest.mark.parametrize("backend", ["native", "Serial", "Multiprocessing"])
def test_backends_give_the_same_images(backend):
    options = {"num_workers": 1} if backend == "Multiprocessing" else {}
    creator, keywords = pufferlib.env_creator("squared"), {"num_envs": 5, "pixels": (9, 9)}
    vecenv = pufferlib.vector.make(creator, env_kwargs=keywords, backend=backend, seed=4, **options)
    try:
        assert vecenv.single_observation_space.shape == (3, 9, 9)
        assert outcomes(vecenv, 60) == outcomes(ocean.Squared(seed=4, **keywords), 60)
    finally:
        vecenv.close()


def test_nature_cnn_accepts_pixels():
    torch = pytest.importorskip("torch", reason="the train extra is not installed")
    from pufferlib.models import make_policy

    env = ocean.Squared(num_envs=2, pixels=(84, 84))
    policy = make_policy(env, "NatureCNN", hidden_size=16)
    params, values = policy.forward_eval(torch.from_numpy(env.reset()[0]))
    assert (params.shape, values.shape) == ((2, 9), (2,))


# ---- Python environments ----------------------------------------------------------------------------------


def play(name, backend="Serial", autoreset="same_step", **keywords):
    """Return the observations and final observations after each of three steps."""
    keywords = {"pixels": (40, 30), **keywords}
    options = {"num_workers": 1} if backend == "Multiprocessing" else {}
    creator = pufferlib.env_creator(name)
    with pufferlib.vector.make(
        creator, env_kwargs=keywords, num_envs=2, seed=4, backend=backend, autoreset=autoreset, **options
    ) as vecenv:
        vecenv.reset()
        return [(vecenv.step(action)[0].copy(), vecenv.final_observations.copy()) for action in actions_of(vecenv, 3)]


def test_observation_of_spaces_equals_rendered_image():
    env = Spaces(pixels=(40, 30))
    assert env.observation_space == Box(0, 255, (3, 40, 30), np.uint8)
    for call in (lambda: env.reset(seed=1), lambda: env.step({"image": 0, "flat": 1})):
        seen, *_ = call()
        np.testing.assert_array_equal(seen, as_observation(env.render(), 40, 30))


def test_observations_of_pymultiagent_equal_rendered_images():
    env = PyMultiagent(pixels=(40, 30))
    assert env.observation_space(1) == Box(0, 255, (3, 40, 30), np.uint8)
    for call in (lambda: env.reset(seed=1), lambda: env.step({1: 0, 2: 0})):
        seen, *_ = call()
        for agent in (1, 2):
            np.testing.assert_array_equal(seen[agent], as_observation(env.render(agent), 40, 30))
        assert not np.array_equal(seen[1], seen[2])
        assert not np.array_equal(env.render(), env.render(1))


@pytest.mark.parametrize("nested", [False, True])
def test_image_of_spaces_shows_the_answer(nested):
    """The columns at the right are orange just above their middles if the sum is above 0."""
    env, plain = (pufferlib.make("spaces", nested=nested, pixels=pixels) for pixels in ((100, 160), None))
    for seed in range(200):
        red, _, blue = env.reset(seed=seed)[0].astype(int)
        plain.reset(seed=seed)
        answers = [red[above, 140] > blue[above, 140] for above in (35, 81)]
        flat = plain.observations.view(plain.obs_dtype).ravel()[0]
        image, flat = (flat["parts"]["f0"]["image"], flat["parts"]["f1"]) if nested else (flat["image"], flat["flat"])
        assert answers == [image.sum() > 0, flat.sum() > 0]


@every_env_in_python
def test_images_do_not_depend_on_render_mode_and_backend(name):
    expected = play(name)
    others = [{"render_mode": "ansi"}, {"pixels": [40, 30]}, {"backend": "Multiprocessing"}]
    for options in others:
        np.testing.assert_array_equal(play(name, **options), expected)


@every_env_in_python
def test_final_observations_of_python_environments_have_the_last_image(name):
    (_, final), (still, _) = play(name)[0], play(name, autoreset="disabled")[0]
    np.testing.assert_array_equal(final, still)
    assert all_differ(final)


# ---- Argument ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pixels", [(0, 84), (84,), (84, 84, 3), (84, 4097), 84, "84", (84.0, 84), (True, 84), {84, 85}]
)
def test_wrong_pixels_are_refused(pixels):
    for name, class_name in (("pong", "Pong"), ("spaces", "Spaces"), ("pymultiagent", "PyMultiagent")):
        problem = f"^{class_name}: pixels must be a height and a width, two ints from 1 to 4096, got .*(84, 84)"
        with pytest.raises(pufferlib.APIUsageError, match=problem):
            pufferlib.make(name, pixels=pixels)


def test_pixels_can_be_any_pair_of_ints():
    for pixels in ((5, 4), [5, 4], np.array([5, 4])):
        for name in ("pong", *ocean.python_names()):
            assert pufferlib.make(name, pixels=pixels).single_observation_space.shape == (3, 5, 4)


def test_environment_with_pixels_can_be_closed_at_any_time():
    env = ocean.Squared(pixels=(8, 8))
    env.close()
    env = ocean.Squared(pixels=(8, 8))
    env.reset()
    observations = env.observations
    env.close()
    env.close()
    assert observations.any()
