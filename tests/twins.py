"""Comparison of environments in C with those of Gymnasium, byte by byte."""

import numpy as np

import pufferlib
from pufferlib import vector
from pufferlib.buffers import allocate
from pufferlib.registry.twins import twin_of
from pufferlib.vector.twins import TwinEnvs

__all__ = ["both", "compare", "compare_batches", "outcome_of"]


def as_bytes(outcome):
    """Return the outcome of a step of Gymnasium as bytes by name."""
    observation, reward, terminated, truncated, infos = outcome
    values = {"observation": observation, "reward": reward, "terminated": terminated, "truncated": truncated, **infos}
    return {name: np.float64(value).tobytes() for name, value in values.items()}


def compare(name, copies, steps, **keywords):
    """Step copies in C and environments of Gymnasium with the same seeds and actions. Return the number of ends."""
    twin = twin_of(name, keywords)
    rows = allocate(twin.observation_space, twin.action_space, copies)
    games = twin.games(copies, "same_step", 2)
    games.bind(**rows)
    originals = [pufferlib.make(name, **keywords).env.env for _ in range(copies)]  # below EpisodeStats
    games.reset(range(copies))
    for index, original in enumerate(originals):
        assert rows["observations"][index].tobytes() == original.reset(seed=index)[0].tobytes()
    ends = 0
    rng = np.random.default_rng(0)
    for step in range(steps):
        games.step(np.array([twin.draw_action(rng) for _ in range(copies)]))
        for index, original in enumerate(originals):
            outcome = original.step(rows["actions"][index])
            over = outcome[2] or outcome[3]
            row = rows["final_observations" if over else "observations"][index]
            flags = rows["terminals"][index], rows["truncations"][index]
            infos = games.last_infos(index) if over else games.infos_of(index)
            assert as_bytes((row, games.exact_rewards[index], *flags, infos)) == as_bytes(outcome), (step, index)
            assert rows["rewards"][index] == np.float32(outcome[1])
            ends += over
            if over:
                assert rows["observations"][index].tobytes() == original.reset()[0].tobytes(), (step, index)
    games.close()
    return ends


def both(name, num_envs=3, seed=3, autoreset="same_step", **keywords):
    """Return a batch in C and one of Python environments."""
    twins = TwinEnvs(twin_of(name, keywords), num_envs, seed, vector.AutoresetMode(autoreset))
    creator = pufferlib.env_creator(name)
    originals = vector.make(
        creator, env_kwargs=keywords, num_envs=num_envs, seed=seed, backend="Serial", autoreset=autoreset
    )
    return twins, originals


def compare_batches(name, autoreset, steps, **keywords):
    """Compare a batch in C with one of Python environments, through resets, steps and the reset of one environment."""
    twins, originals = both(name, autoreset=autoreset, **keywords)
    for attribute in ("single_observation_space", "single_action_space", "emulated", "num_agents", "autoreset"):
        assert getattr(twins, attribute) == getattr(originals, attribute), attribute
    twins.single_action_space.seed(0)
    for seed in (None, 7):
        assert twins.reset(seed)[0].tobytes() == originals.reset(seed)[0].tobytes()
        for _ in range(steps):
            actions = [twins.single_action_space.sample() for _ in range(3)]
            ours, theirs = (outcome_of(each, each.step(actions)) for each in (twins, originals))
            assert ours == theirs
    for each in (twins, originals):
        each.reset(env_ids=[1], seed=[5])
    assert twins.observations.tobytes() == originals.observations.tobytes()
    twins.close()
    originals.close()


def outcome_of(vecenv, received):
    """Return the outcome of a step of a batch as bytes."""
    *rows, infos = received
    ends = rows[2] | rows[3]
    finals = vecenv.final_observations[ends].tobytes() if vecenv.autoreset == "same_step" else None
    infos = [{name: np.float64(value).tobytes() for name, value in info.items()} for info in infos]
    return [row.tobytes() for row in rows], finals, infos, vecenv.info_sources
