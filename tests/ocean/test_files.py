"""Environments from C files outside of the package: compilation, cache, errors and use."""

import os
import pickle
import re
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

import pufferlib
from pufferlib import ocean, registry, vector
from pufferlib.native.compiler import HEADERS
from pufferlib.ocean.files import settings_of_file, write_template
from pufferlib.play.session import Session
from pufferlib.settings.config import load_config
from tests.ocean.helpers import outcomes
from tests.tiers import once

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler on PATH; install gcc")


@pytest.fixture
def corridor(tmp_path, monkeypatch):
    """Path of the template as ``corridor.c`` in a new folder, with an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CC", raising=False)
    source, _ = write_template("corridor", tmp_path)
    return source


def edit(source, old, new):
    """Replace ``old`` in a file, which must contain it."""
    text = source.read_text()
    assert old in text
    source.write_text(text.replace(old, new))


def libraries(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache/pufferlib/native").glob("*.so"))


def test_make_accepts_a_c_file(corridor):
    env = pufferlib.make(corridor, num_envs=3, length=20, max_steps=30)
    env.reset(seed=1)
    infos = [info for _ in range(128) for info in env.step([2, 2, 2])[4]]
    assert set(infos[0]) == {"score", "perf", "episode_return", "episode_length", "n"}
    assert env.render().shape == (64, 320, 3)
    assert env.single_action_space.n == 3
    with pytest.raises(pufferlib.UnknownNameError, match="unexpected keyword argument 'lenth'; did you mean 'length'"):
        pufferlib.make(str(corridor), lenth=3)


def test_file_of_an_ocean_environment_gives_the_same_results(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    source = Path(ocean.__file__).parent / "pong" / "pong.c"
    built, loaded = (pufferlib.make(name, num_envs=16, seed=3) for name in ("pong", str(source)))
    for env in (built, loaded):
        env.reset()
    assert outcomes(built, 500) == outcomes(loaded, 500)
    assert np.array_equal(built.render(5), loaded.render(5))
    assert settings_of_file(str(source)) == source.with_name("train.toml")


def test_default_num_envs_without_a_settings_file(corridor):
    corridor.with_suffix(".toml").unlink()
    assert load_config(str(corridor)).env == {"num_envs": 64}
    assert load_config(str(corridor), {"env.num_envs": 2}).env == {"num_envs": 2}


def test_backends_and_threads_give_the_same_observations(corridor):
    creator = registry.env_creator(str(corridor))
    rows = []
    for backend, envs, kwargs in (("Serial", 4, {}), ("Multiprocessing", 4, {"num_workers": 2}), ("native", 1, {})):
        env_kwargs = {"num_envs": 2} if envs == 4 else {"num_envs": 2, "num_threads": 2}
        vecenv = vector.make(creator, env_kwargs=env_kwargs, backend=backend, num_envs=envs, seed=5, **kwargs)
        observations, _ = vecenv.reset(seed=5)
        right = np.full(vecenv.num_agents, 2)
        rows.append([observations[:2].copy(), *(vecenv.step(right)[0][:2].copy() for _ in range(20))])
        vecenv.close()
    assert np.array_equal(rows[0], rows[1])
    assert np.array_equal(rows[0], rows[2])


def test_edits_of_the_file_or_a_header_are_recompiled(corridor, tmp_path):
    header = tmp_path / "doors.h"
    header.write_text("#define DOORS 1\n")
    edit(corridor, '#include "puffer_draw.h"', '#include "doors.h"\n#include "puffer_draw.h"')
    edit(corridor, ".action_sizes = {3}", ".action_sizes = {3 + DOORS}")
    assert pufferlib.make(str(corridor)).single_action_space.n == 4
    assert pufferlib.make(str(corridor)).single_action_space.n == 4
    assert len(libraries(tmp_path)) == 1
    header.write_text("#define DOORS 2\n")
    started = time.perf_counter()
    assert pufferlib.make(str(corridor)).single_action_space.n == 5
    assert time.perf_counter() - started < 20  # less than a second on an idle machine
    edit(corridor, "{3 + DOORS}", "{3}")
    assert pufferlib.make(str(corridor)).single_action_space.n == 3
    assert len(libraries(tmp_path)) == 3
    header.write_text("#define DOORS 1\n")
    assert len(libraries(tmp_path)) == 3


def test_libraries_unused_for_a_month_are_removed(corridor, tmp_path):
    pufferlib.make(corridor)
    used = libraries(tmp_path)
    month_ago = time.time() - 31 * 24 * 3600
    for path in (tmp_path / "cache/pufferlib/native").iterdir():
        os.utime(path, (month_ago, month_ago))
    registry.env_creator(corridor)  # uses the library
    for name in ("old.so", "old.json"):
        (tmp_path / "cache/pufferlib/native" / name).write_text("")
        os.utime(tmp_path / "cache/pufferlib/native" / name, (month_ago, month_ago))
    edit(corridor, ".action_sizes = {3}", ".action_sizes = {7}")
    pufferlib.make(corridor)
    assert len(libraries(tmp_path)) == 2
    assert set(used) < set(libraries(tmp_path))


def test_creator_uses_the_compiled_version_after_edits(corridor):
    creator = pickle.loads(pickle.dumps(registry.env_creator(str(corridor))))
    edit(corridor, ".action_sizes = {3}", ".action_sizes = {7}")
    assert creator().single_action_space.n == 3
    assert registry.env_creator(str(corridor))().single_action_space.n == 7


def test_creator_recompiles_an_unchanged_file_without_cache(corridor, tmp_path, monkeypatch):
    creator = registry.env_creator(str(corridor))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    shutil.rmtree(tmp_path / "cache")
    ocean.files.load_type.cache_clear()
    creator().close()
    edit(corridor, ".action_sizes = {3}", ".action_sizes = {7}")
    shutil.rmtree(tmp_path / "another")
    ocean.files.load_type.cache_clear()
    with pytest.raises(pufferlib.APIUsageError, match=r"corridor\.c: it differs from the version that was compiled"):
        creator()


def test_compiler_errors_name_file_and_line(corridor):
    edit(corridor, "env->position = puffer_random_below", "env->positoin = puffer_random_below")
    number = next(i for i, line in enumerate(corridor.read_text().splitlines(), 1) if "positoin" in line)
    with pytest.raises(pufferlib.APIUsageError, match=re.escape(f"{corridor}:{number}:")) as caught:
        pufferlib.make(str(corridor))
    assert "did you mean ‘position’" in str(caught.value) or "did you mean 'position'" in str(caught.value)


WRONG = [
    ("puffer_random_below(", "puffer_random_bellow(", "puffer_random_bellow"),
    ("PUFFER_ENV(", "const void *unused = &corridor_keys; // PUFFER_ENV(", r"PUFFER_ENV\(Corridor, corridor\)"),
    ("length, 10, 2", "length, 1, 2", "the default of parameter length must be an int from 2 to 1000, got 1"),
    (
        "PUFFER_ENV(Corridor, corridor",
        "static const PufferInfo many[17]; PUFFER_ENV(Corridor, corridor, PUFFER_INFOS(many)",
        "many infos",
    ),
    ("Corridor, max_steps, 100", "Corridor, length, 100", "the names of each parameter must differ, got length twice"),
    ("Corridor, perf, ", "Corridor, position, ", "_Generic"),
    (".agents = 1", ".agents = 0", "Corridor: spec: agents must be at least 1$"),
    (".observation_shape = {2}", ".observation_shape = {0}", "spec: observation_shape must have at least one"),
    (".observation_type = PUFFER_FLOAT32", ".observation_type = PUFFER_BOOL", "spec: observation_type must be"),
    (".observation_high = 1", ".observation_high = -1", "spec: observation_low and observation_high must be in"),
    (".action_sizes = {3}", ".action_sizes = {0}", "spec: .* action_sizes have at least one size"),
    (".agents = 1", ".action_mask = {0, 3}, .agents = 1", "spec: action_mask must lie in the observation"),
    (".picture_width = 320", ".picture_width = 0", "spec: picture_width and picture_height must be at least 1"),
    (".frames_per_second = 10", ".frames_per_second = 0", "spec: frames_per_second must be above 0"),
]


# Wrong specifications are found in one function, so two of them are enough for the default suite.
@pytest.mark.parametrize(
    ("old", "new", "message"),
    once(WRONG, [case for case in WRONG if "spec: " not in case[2] or case[0] == ".agents = 1"]),
)
@pytest.mark.filterwarnings("ignore:.*defined but not used")
def test_wrong_declarations_are_named(corridor, old, new, message):
    edit(corridor, old, new)
    with pytest.raises(pufferlib.APIUsageError, match=message):
        pufferlib.make(str(corridor))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("max_steps", "num_threads", "parameter 1 must .* got num_threads"),
        ("perf", "n", "metric 1 must .* got n, which"),
    ],
)
def test_names_that_every_environment_has_are_refused(corridor, old, new, message):
    corridor.write_text(re.sub(rf"\b{old}\b", new, corridor.read_text()))
    with pytest.raises(pufferlib.APIUsageError, match=message):
        pufferlib.make(str(corridor))


def test_state_is_valid_after_the_file_was_renamed(corridor):
    env = pufferlib.make(str(corridor), num_envs=2)
    env.reset(seed=1)
    renamed = pufferlib.make(str(corridor.rename(corridor.with_name("hall.c"))), num_envs=2)
    assert np.array_equal(renamed.load_state(env.save_state()), env.observations)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    PufferRng rng;", "    int64_t heat;\n    PufferRng rng;"),  # another size of the struct
        ("    {1, sizeof(PufferEnvType)", "    {0, sizeof(PufferEnvType)"),  # another version of the struct
    ],
)
def test_other_versions_of_puffer_env_h_are_refused(corridor, tmp_path, old, new):
    for header in HEADERS.glob("*.h"):
        shutil.copy(header, tmp_path)
    edit(tmp_path / "puffer_env.h", old, new)
    with pytest.raises(pufferlib.APIUsageError, match=r"compiled against another version of puffer_env\.h"):
        pufferlib.make(str(corridor))


def test_compiler_warnings_are_python_warnings_with_file_and_line(corridor):
    edit(corridor, "env->length - 1;\n    env", "env->length - 1,\n idle = 0;\n    env")
    with pytest.warns(UserWarning, match=r"unused variable .idle.") as caught:
        pufferlib.make(str(corridor))
    (warning,) = caught
    assert warning.filename == str(corridor)
    assert corridor.read_text().splitlines()[warning.lineno - 1] == " idle = 0;"
    pufferlib.make(str(corridor))


def test_play_session_uses_the_declared_keys(corridor):
    session = Session(str(corridor), {})
    assert session.has_arrows
    assert not session.key_map.types
    assert session.fps == 10
    session.close()


def test_type_made_by_returns_the_type_of_c_environments(corridor):
    assert ocean.type_made_by(registry.env_creator(str(corridor))).class_name == "Corridor"
    assert ocean.type_made_by(registry.env_creator("pong")).class_name == "Pong"
    assert ocean.type_made_by(registry.env_creator("spaces")) is None


def test_missing_file_suggests_another(corridor, tmp_path):
    with pytest.raises(pufferlib.UnknownNameError, match=r"there is no file .*corridr\.c; did you mean .*/corridor\.c"):
        pufferlib.make(str(tmp_path / "corridr.c"))
    with pytest.raises(pufferlib.UnknownNameError, match=r"moved, give its new path .* template: .* new maze"):
        pufferlib.make(str(tmp_path / "nowhere" / "maze.c"))


def test_unwritable_cache_is_explained(corridor, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(pufferlib.PufferError, match=r"cannot be stored in .*; set XDG_CACHE_HOME to a writable folder"):
        pufferlib.make(str(corridor))


def test_paths_can_have_special_characters(corridor, tmp_path):
    folder = tmp_path / "my games #1"
    folder.mkdir()
    moved = corridor.rename(folder / "the $corridor.c")
    assert pufferlib.make(str(moved)).single_action_space.n == 3
    edit(moved, ".action_sizes = {3}", ".action_sizes = {4}")
    assert pufferlib.make(str(moved)).single_action_space.n == 4
