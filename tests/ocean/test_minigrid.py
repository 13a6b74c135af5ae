"""The levels of minigrid, compared with the package byte by byte. Some tests do not need the package."""

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import envpool, ocean
from pufferlib.bindings import minigrid
from pufferlib.ocean.types import env_types
from pufferlib.registry.twins import twin_of
from pufferlib.seeding import env_seed
from pufferlib.vector import AutoresetMode
from pufferlib.vector.twins import TwinEnvs
from tests.needs import missing_binding
from tests.ocean.helpers import outcomes
from tests.ocean.minigrid_player import DONE, Player
from tests.tiers import once

absent = missing_binding("minigrid")
needs_package = pytest.mark.skipif(bool(absent), reason=absent)

LEVELS = minigrid.LEVELS
every_level = pytest.mark.parametrize("name", LEVELS)
# Levels of BabyAI for the default suite: each kind of clause, sequences, rejected drafts, a start with an object.
BABYAI = {f"BabyAI-{name}-v0" for name in ("GoToRedBlueBall", "OpenDoorsOrderN4Debug", "PickupDist", "KeyInBox")}
BABYAI |= {f"BabyAI-{name}-v0" for name in ("PutNextS5N2Carrying", "SynthS5R2", "MiniBossLevel", "UnblockPickup")}
# And one level of MiniGrid of each kind, such as MiniGrid-Fetch-5x5-N2-v0 for all sizes of Fetch.
KINDS = {re.match("MiniGrid-[A-Za-z]+", name)[0]: name for name in LEVELS if name.startswith("MiniGrid-")}
DEFAULT = {*KINDS.values()} | BABYAI
BOSS = "BabyAI-MiniBossLevel-v0"
PLAYGROUND = "MiniGrid-Playground-v0"  # has no mission
CARRYING = ("Pickup", "DoorKey", "KeyCorridor", "ObstructedMaze", "PutNear", "Playground")
FAILING = ("DistShift", "Obstacles", "Lava", "Fetch", "GoTo", "Memory", "PutNear", "RedBlue")
BABYAI_CARRYING = ("PutNext", "MoveTwoAcross", "Unlock", "KeyInBox", "Synth", "Boss")
RECORDED = Path(__file__).with_name("minigrid_levels.json")


def world_of(name, **options):
    """Return the package's environment without wrappers."""
    return pufferlib.make(f"minigrid/{name}", **options).env.unwrapped


def mission_bytes_of(name):
    return minigrid.MISSION_BYTES[name.partition("-")[0]]


def as_bytes(name, observation):
    direction, image = (np.ascontiguousarray(observation[part]) for part in ("direction", "image"))
    mission = observation["mission"].encode().ljust(mission_bytes_of(name), b"\0")
    row = direction.astype("<i4").tobytes() + image.tobytes() + mission
    return row.ljust(-(-len(row) // 4) * 4, b"\0")


def compare(name, games, steps, **options):
    """Play games of both with the same seeds and actions. Return how often each thing happened."""
    ours = ocean.OceanEnv("minigrid", num_envs=games, level=LEVELS.index(name), mission=True, **options)
    worlds = [world_of(name, **options) for _ in range(games)]
    noises = (0.1, 0.4, 1)  # the last of three players is random
    players = [Player(world, np.random.default_rng(i), noises[i % 3]) for i, world in enumerate(worlds)]
    counts = Counter()
    view, _ = ours.reset(seed=0)
    for game, world in enumerate(worlds):
        assert view[game].tobytes() == as_bytes(name, world.reset(seed=env_seed(0, game))[0]), game
    for step in range(steps):
        actions = [player.act() for player in players]
        view, rewards, terminals, truncations, _ = ours.step(actions)
        for game, world in enumerate(worlds):
            carried = world.carrying
            observation, reward, terminated, truncated, _ = world.step(actions[game])
            over = terminated or truncated
            row = ours.final_observations[game] if over else view[game]
            assert row.tobytes() == as_bytes(name, observation), (game, step)
            seen = (rewards[game], terminals[game], truncations[game])
            assert seen == (np.float32(reward), terminated, truncated and not terminated), (game, step)
            counts["picked up"] += carried is None and world.carrying is not None
            counts["dropped"] += carried is not None and world.carrying is None
            counts["succeeded"] += reward > 0
            counts["failed"] += terminated and reward <= 0
            counts["truncated"] += truncated
            if over:
                assert view[game].tobytes() == as_bytes(name, world.reset()[0]), (game, step)
                players[game].begin()
    ours.close()
    return counts


@needs_package
@pytest.mark.parametrize("name", once(LEVELS, DEFAULT))
def test_same_seeds_and_actions_give_the_bytes_of_the_package(name):
    assert compare(name, games=2, steps=60).total() > 0


@needs_package
@pytest.mark.all
@pytest.mark.timeout(600)
@every_level
def test_long_play_gives_the_bytes_of_the_package(name, nightly):
    counts = compare(name, games=100, steps=1000) if nightly else compare(name, games=4, steps=250)
    assert counts["succeeded"] > 0 or name == PLAYGROUND, counts
    is_babyai = name.startswith("BabyAI-")
    if any(part in name for part in (BABYAI_CARRYING if is_babyai else CARRYING)):
        assert min(counts["picked up"], counts["dropped"]) > 0, counts
    if any(part in name for part in (("Debug",) if is_babyai else FAILING)):
        assert counts["failed"] > 0, counts


@needs_package
@pytest.mark.all
@pytest.mark.parametrize("name", [name for name in LEVELS if name.startswith("BabyAI-")])
def test_many_seeds_give_the_drafts_of_the_package(name, nightly):
    games = 1000 if nightly else 40
    options = {"mission": True, "agent_view_size": 31, "see_through_walls": True}
    ours = ocean.OceanEnv("minigrid", num_envs=games, level=LEVELS.index(name), **options)
    world = world_of(name, agent_view_size=31)
    world.see_through_walls = True  # BabyAI's classes do not have this option
    for game, row in enumerate(ours.reset(seed=0)[0]):
        assert row.tobytes() == as_bytes(name, world.reset(seed=env_seed(0, game))[0]), game
    ours.close()


@needs_package
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("MiniGrid-Empty-8x8-v0", {"agent_view_size": 3}),
        ("MiniGrid-DoorKey-8x8-v0", {"agent_view_size": 5}),
        ("MiniGrid-MultiRoom-N6-v0", {"agent_view_size": 13}),
        ("MiniGrid-Playground-v0", {"agent_view_size": 31}),
        ("MiniGrid-FourRooms-v0", {"see_through_walls": True}),
        ("MiniGrid-LockedRoom-v0", {"see_through_walls": True, "max_steps": 30}),
        ("MiniGrid-KeyCorridorS3R3-v0", {"max_steps": 7}),
        ("BabyAI-MiniBossLevel-v0", {"max_steps": 9, "agent_view_size": 5}),
    ],
    ids=str,
)
def test_options_have_the_effect_of_the_packages(name, options):
    assert compare(name, games=2, steps=80, **options).total() > 0


@needs_package
@pytest.mark.parametrize("name", once(LEVELS, {"MiniGrid-DoorKey-5x5-v0", "MiniGrid-Dynamic-Obstacles-5x5-v0", BOSS}))
@pytest.mark.parametrize("mission", [False, True], ids=["image", "mission"])
def test_spaces_and_bytes_are_those_of_the_emulated_package(name, mission):
    ours = ocean.OceanEnv("minigrid", level=LEVELS.index(name), mission=mission)
    theirs = pufferlib.make(f"minigrid/{name}", **({"mission_bytes": mission_bytes_of(name)} if mission else {}))
    assert ours.single_action_space == theirs.single_action_space
    assert ours.single_observation_space == theirs.single_observation_space
    assert ours.reset(seed=5)[0][0].tobytes() == theirs.reset(seed=5)[0].tobytes()
    theirs.close()


@needs_package
@pytest.mark.parametrize("name", ["BabyAI-GoToObj-v0", BOSS])
@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
def test_success_in_the_last_step_has_both_flags_behind_pythons_interfaces(name, autoreset):
    world = world_of(name)
    world.reset(seed=env_seed(0, 0))
    player, actions, is_over = Player(world, np.random.default_rng(0), noise=0), [], False
    player.is_wrong = False
    while not is_over:
        actions.append(player.act())
        is_over = world.step(actions[-1])[2]
    actions = [DONE] * (world.max_steps - len(actions)) + actions
    twins = TwinEnvs(twin_of(f"minigrid/{name}", {}), 1, 0, AutoresetMode(autoreset))
    pool = envpool.make_gymnasium(name, num_envs=1, seed=[env_seed(0, 0)], autoreset=autoreset)
    ours = ocean.OceanEnv("minigrid", level=LEVELS.index(name))
    twins.reset(seed=0)
    pool.reset()
    ours.reset(seed=0)
    for action in actions:
        flags = [tuple(env.step(np.array([action]))[2:4]) for env in (twins, pool, ours)]
    assert np.ravel(flags).tolist() == [True, True, True, True, True, False]
    for env in (twins, pool, ours):
        env.close()


def test_levels_are_those_of_the_binding():
    table = (Path(ocean.__file__).parent / "minigrid" / "levels.h").read_text()
    assert re.findall(r'^    \{"([^"]*)"', table, re.MULTILINE) == list(LEVELS)
    assert env_types()["minigrid"].parameters[0].high == len(LEVELS) - 1


@every_level
def test_level_equals_the_recorded_one(name):
    """The recorded bytes are those of the package, as long as the tests that need it pass."""
    recorded = json.loads(RECORDED.read_text())
    env = ocean.OceanEnv("minigrid", num_envs=8, level=LEVELS.index(name), mission=True)
    env.reset(seed=1234)
    digest = outcomes(env, 300, seed=1)[:16]
    assert digest == recorded.get(name), f"{name} has changed; if it should, record {digest}"


def test_even_view_is_refused():
    with pytest.raises(ValueError, match="agent_view_size must be odd"):
        ocean.OceanEnv("minigrid", agent_view_size=4)
