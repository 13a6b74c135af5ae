"""Requirements of every binding, tested with the environments listed in its binding.toml under ``conformance``.

A binding whose package is not installed is skipped, except in the image that has all of them.
"""

import contextlib
import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.registry.facts import Facts, all_facts
from pufferlib.testing import ContractError, check_env
from tests.conformance.checkers import run_peer_checkers
from tests.conformance.test_vector_backends import LAYOUTS, NUM_ENVS, OTHERS, Trajectory, first_difference, play
from tests.needs import OWN_PROCESS, missing_binding

CASES = [
    pytest.param(facts, f"{facts.name}/{name}", id=f"{facts.name}/{name}")
    for facts in all_facts().values()
    if facts.name not in OWN_PROCESS
    for name in facts.conformance
]
STEPS = 60
COMPARED = 1000  # steps that must give the same bytes on every backend
LONG_RUN = 10_000  # agent-steps of each binding, divided among its environments
# Share of both without --nightly. It is smaller for slow environments. Comments give the CPU time of a step.
DAY = 0.15
SHARE = {
    "butterfly/pistonball_v6": 0.06,  # 10 ms
    "nmmo/small": 0.06,  # 9 ms
    "retro/Airstriker-Genesis-v0": 0.1,  # 2.5 ms, because environments take turns in one emulator
    "textworld/tw-coin_collector-level2": 0.1,  # 1.5 ms
    "crafter/CrafterReward-v1": 0.1,  # 1.4 ms
    "crafter/CrafterNoReward-v1": 0.1,
}
RESETS = 20
GROWTH_BYTES = 32 << 20  # limit of RESETS resets, 1.6 MiB each

played_before: set[str] = set()  # environments that this process has made, stepped and closed

pytestmark = pytest.mark.timeout(600)
each_case = pytest.mark.parametrize(("facts", "name"), CASES)
# Isolated environments compile for up to a minute in each process.
each_case_with_isolated_ones_at_night = pytest.mark.parametrize(
    ("facts", "name"),
    [
        pytest.param(*case.values, id=case.id, marks=[pytest.mark.nightly] * bool(case.values[0].isolated))
        for case in CASES
    ],
)


@pytest.fixture(autouse=True)
def _installed(facts: Facts) -> None:
    if reason := missing_binding(facts.name):
        pytest.skip(reason)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def num_copies(facts: Facts) -> int:
    """Return the number of environments of a batch. It is 1 for isolated ones, which compile for long."""
    return 1 if facts.isolated else 2


@contextmanager
def make(name: str, num_envs: int, backend: str = "Serial", **options: Any) -> Iterator[Any]:
    creator = pufferlib.env_creator(name)
    with pufferlib.vector.make(creator, num_envs=num_envs, backend=backend, seed=3, **options) as envs:
        yield envs
    if backend == "Serial":
        played_before.add(name)


@each_case
def test_environment_meets_the_contract(facts: Facts, name: str, folder: Path, nightly: bool) -> None:
    creator = pufferlib.env_creator(name)
    # Isolated environments take long to make, and copies of them share only files.
    with contextlib.closing(creator()) if facts.isolated and not nightly else contextlib.nullcontext(creator) as env:
        try:
            check_env(env, steps=STEPS, continuing=True)  # most episodes are longer, and some resets take minutes
        except ContractError as error:
            if not facts.seeding or "the same seed must give" not in str(error):
                raise
    assert contents(folder) == set()


@pytest.mark.all  # test_vector_backends.py does the same with environments of every interface
@each_case_with_isolated_ones_at_night
def test_seed_reproduces_trajectory_on_every_backend(facts: Facts, name: str, folder: Path, nightly: bool) -> None:
    steps = share_of(COMPARED, name, nightly)
    with make(name, NUM_ENVS) as envs:
        other, first = (
            play(envs, max(STEPS, steps // 4), 6),
            play(envs, steps, 5),
        )  # an earlier trajectory must not matter
    assert is_same(first, other, STEPS) == (name.partition("/")[2] in facts.deterministic), (
        "trajectories of different seeds must differ"
    )
    for layout in OTHERS if nightly else ["2 workers, one per batch"]:
        with make(name, NUM_ENVS, **LAYOUTS[layout], overwork=True, timeout_s=300) as envs:
            elsewhere = play(envs, steps, 5)
        if not facts.seeding:
            assert first_difference(first, elsewhere) is None, (
                f"{layout} must give the same bytes as Serial, which was used before"
            )
    assert contents(folder) == set()


def is_same(one: Trajectory, other: Trajectory, steps: int) -> bool:
    return all(np.array_equal(one.digests[name][:steps], other.digests[name][:steps]) for name in one.digests)


@each_case
def test_observations_fit_spaces_and_peer_checkers_pass(facts: Facts, name: str, folder: Path) -> None:
    reason = "check_env has already checked the spaces of native environments"
    if facts.isolated:  # always a native environment, and slow to make
        pytest.skip(reason)
    env = pufferlib.make(name, seed=1)
    try:
        inner = getattr(env, "env", None) if env.emulated else None
        if inner is None:
            pytest.skip(reason)
        check = check_gymnasium if isinstance(inner, gymnasium.Env) else check_pettingzoo
        check(inner)
        if not facts.seeding:
            run_peer_checkers(env, lambda: pufferlib.make(name, seed=1))
    finally:
        env.close()


def check_gymnasium(env: Any) -> None:
    env.action_space.seed(1)
    observation, info = env.reset(seed=1)
    for _ in range(STEPS):
        assert env.observation_space.contains(observation), f"{observation} is not in {env.observation_space}"
        assert isinstance(info, dict)
        observation, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert np.isfinite(float(reward))
        if terminated or truncated:
            observation, info = env.reset()


def check_pettingzoo(env: Any) -> None:
    observations, _ = env.reset(seed=1)
    for agent in env.possible_agents:
        env.action_space(agent).seed(1)
    for _ in range(STEPS):
        for agent, observation in observations.items():
            space = env.observation_space(agent)
            assert space.contains(observation), f"{agent}: {observation} is not in {space}"
        observations, rewards, *_ = env.step({agent: env.action_space(agent).sample() for agent in env.agents})
        assert all(np.isfinite(float(reward)) for reward in rewards.values())
        if not env.agents:
            observations, _ = env.reset()


@each_case
def test_render_returns_an_image(facts: Facts, name: str, folder: Path) -> None:
    if not facts.isolated:  # the processes of isolated environments can render, and are slow to start
        env = pufferlib.make(name)
        modes = (getattr(env, "metadata", None) or {}).get("render_modes", ())
        env.close()
        if "rgb_array" not in modes:
            pytest.skip("its metadata has no rgb_array render mode")
    env = pufferlib.make(name, render_mode="rgb_array")
    try:
        env.reset(seed=0)  # type: ignore[attr-defined]
        image = env.render()  # type: ignore[attr-defined]
    finally:
        env.close()
    assert image.dtype == np.uint8
    assert image.ndim == 3
    assert image.shape[2] == 3
    assert image.any()
    assert contents(folder) == set()


@pytest.mark.all
@each_case_with_isolated_ones_at_night
def test_long_run_leaks_nothing(facts: Facts, name: str, folder: Path, nightly: bool) -> None:
    if not facts.isolated or name not in played_before:  # imports and caches are loaded first
        with make(name, num_copies(facts)) as envs:
            envs.reset(seed=1)
            envs.step(envs.action_space.sample())
    before = processes(), open_files()
    with make(name, num_copies(facts)) as envs:
        space = envs.single_observation_space
        long_run = share_of(LONG_RUN, name, nightly) // len(facts.conformance)
        for index, (observations, rewards, masks) in enumerate(steps(envs, long_run)):
            assert np.isfinite(rewards).all()
            if index % 50 == 0:
                shown = observations[masks]
                assert ((shown >= space.low) & (shown <= space.high)).all()
        check_memory(envs)
    gc.collect()
    assert processes() <= before[0], "close must stop the processes that it started"
    assert open_files() <= before[1], "close must close its files"
    assert contents(folder) == set(), "the working folder must stay empty"


def share_of(steps: int, name: str, nightly: bool) -> int:
    return steps if nightly else int(steps * SHARE.get(name, DAY))


def steps(envs: Any, agent_steps: int) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the results of random steps, with four resets in between."""
    envs.action_space.seed(2)
    count = -(-agent_steps // envs.num_agents)
    for index in range(count):
        if index % max(count // 4, 1) == 0:
            envs.reset(seed=index)
        observations, rewards, *_ = envs.step(envs.action_space.sample())
        yield observations, rewards, envs.masks


def check_memory(envs: Any) -> None:
    """Check that resident memory does not grow with resets, after the first five have filled caches."""
    sizes = []
    for resets in (5, RESETS):
        for index in range(resets):
            envs.reset(seed=index)
            for _ in range(5):
                envs.step(envs.action_space.sample())
        gc.collect()
        sizes.append(resident_bytes())
    assert sizes[1] - sizes[0] < GROWTH_BYTES, f"{RESETS} resets took {(sizes[1] - sizes[0]) >> 20} MiB"


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def processes() -> set[int]:
    """Return the ids of the child processes."""
    return {int(pid) for file in Path("/proc/self/task").glob("*/children") for pid in file.read_text().split()}


def open_files() -> set[tuple[str, str]]:
    found = set()
    for entry in os.listdir("/proc/self/fd"):
        try:
            found.add((entry, os.readlink(f"/proc/self/fd/{entry}")))
        except OSError:  # the file of the listing itself
            continue
    return found


def contents(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}
