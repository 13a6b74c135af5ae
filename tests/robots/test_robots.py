"""Robots stepped in C, compared byte by byte with Gymnasium's."""

import subprocess
import sys
from pathlib import Path

import gymnasium
import numpy as np
import pytest
import torch

import pufferlib
from pufferlib.buffers import allocate
from pufferlib.errors import APIUsageError, BindingMissing
from pufferlib.registry.twins import twin_of
from pufferlib.settings.config import load_config
from pufferlib.training.trainer import Trainer
from pufferlib.vector.twins import TwinEnvs
from tests.needs import missing_binding
from tests.tiers import once
from tests.twins import both, compare, compare_batches, outcome_of

mujoco = pytest.importorskip("mujoco")
from pufferlib.robots import task  # noqa: E402
from pufferlib.robots.task import engine  # noqa: E402

absent = missing_binding("mujoco")
pytestmark = pytest.mark.skipif(bool(absent), reason=absent)

ROBOTS = (
    "Ant",
    "HalfCheetah",
    "Hopper",
    "Humanoid",
    "HumanoidStandup",
    "InvertedDoublePendulum",
    "InvertedPendulum",
    "Pusher",
    "Reacher",
    "Swimmer",
    "Walker2d",
)
WEIGHTS = {"forward_reward_weight": 1.7, "ctrl_cost_weight": 0.3, "reset_noise_scale": 0.07}
VARIED = [
    ("Ant", {**WEIGHTS, "healthy_z_range": (0.3, 0.9), "contact_force_range": (-0.2, 0.5), "main_body": "aux_1"}),
    ("Ant", {"include_cfrc_ext_in_observation": False, "contact_cost_weight": 0.01, "frame_skip": 2}),
    ("Ant", {"exclude_current_positions_from_observation": False, "terminate_when_unhealthy": False}),
    ("HalfCheetah", {**WEIGHTS, "clip_action": True, "exclude_current_positions_from_observation": False}),
    ("HalfCheetah", {"ctrl_cost_weight": 1, "max_episode_steps": np.int64(7)}),
    ("Hopper", {**WEIGHTS, "healthy_state_range": (-2.5, 2.5), "healthy_angle_range": (-0.1, 0.2)}),
    ("Hopper", {"terminate_when_unhealthy": False, "healthy_reward": 0.3, "frame_skip": 2}),
    ("Humanoid", {**WEIGHTS, "contact_cost_weight": 1e-4, "contact_cost_range": (0.5, 2.0), "clip_action": True}),
    ("Humanoid", {"include_cinert_in_observation": False, "include_qfrc_actuator_in_observation": False}),
    ("Humanoid", {"include_cvel_in_observation": False, "terminate_when_unhealthy": False, "healthy_reward": 2}),
    ("HumanoidStandup", {"impact_cost_weight": 1e-4, "impact_cost_range": (-1.0, 0.5), "reset_noise_scale": 0.1}),
    ("InvertedDoublePendulum", {"healthy_reward": 3.5, "frame_skip": 3, "max_episode_steps": 5}),
    ("InvertedPendulum", {"reset_noise_scale": 0.1, "clip_action": True}),
    ("Pusher", {"reward_near_weight": 0.7, "reward_dist_weight": 1.3, "reward_control_weight": 0.2}),
    ("Reacher", {"reward_dist_weight": 1.3, "reward_control_weight": 0.7, "frame_skip": 3}),
    ("Swimmer", {**WEIGHTS, "exclude_current_positions_from_observation": False}),
    ("Walker2d", {**WEIGHTS, "healthy_z_range": (1.0, 1.4), "healthy_angle_range": (-0.3, 0.4)}),
]


@pytest.mark.parametrize("robot", ROBOTS)
def test_same_seeds_and_actions_give_the_bytes_of_gymnasium(robot):
    assert compare(f"mujoco/{robot}-v5", copies=2, steps=60, max_episode_steps=50) > 0


@pytest.mark.nightly
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("robot", ROBOTS)
def test_long_play_gives_the_bytes_of_gymnasium(robot):
    assert compare(f"{robot}-v5", copies=100, steps=1000) > 0


@pytest.mark.parametrize(("robot", "keywords"), VARIED, ids=str)
def test_keywords_have_the_effect_of_gymnasiums(robot, keywords):
    compare(f"mujoco/{robot}", copies=2, steps=40, **keywords)


@pytest.mark.parametrize(("name", "kind"), [("mujoco/HalfCheetah", str), ("HalfCheetah-v5", Path)])
def test_custom_model_has_the_results_of_gymnasium(tmp_path, name, kind):
    path = kind(model_file(tmp_path, 'gravity="0 0 -9.81"', 'gravity="0 0 -5"'))
    compare(name, copies=2, steps=20, xml_file=path, max_episode_steps=np.int64(9))


def model_file(folder, text, other):
    """Write the model of HalfCheetah with a change, and return its path."""
    model = (Path(gymnasium.__file__).parent / "envs/mujoco/assets/half_cheetah.xml").read_text()
    assert text in model
    path = folder / "robot.xml"
    path.write_text(model.replace(text, other))
    return str(path)


@pytest.mark.parametrize("autoreset", ["next_step", "same_step"])
@pytest.mark.parametrize("name", ["mujoco/Humanoid", "Hopper-v5"])
def test_batches_equal_those_of_the_python_environments(name, autoreset):
    compare_batches(name, autoreset=autoreset, max_episode_steps=12, steps=30)


@pytest.mark.parametrize("robot", once(ROBOTS, {"Ant", "Hopper", "Pusher", "Swimmer"}))
def test_saved_states_continue_with_the_same_results(robot):
    twins, others = (both(f"mujoco/{robot}", seed=seed, max_episode_steps=15)[0] for seed in (1, 2))
    twins.reset()
    others.reset()
    twins.single_action_space.seed(0)
    actions = [[twins.single_action_space.sample() for _ in range(3)] for _ in range(30)]
    for action in actions[:8]:
        twins.step(action)
    assert others.load_state(twins.save_state()).tobytes() == twins.observations.tobytes()
    for action in actions[8:]:
        assert outcome_of(twins, twins.step(action)) == outcome_of(others, others.step(action))
    (other, _) = both(f"mujoco/{robot}", max_episode_steps=16)
    other.reset()
    with pytest.raises(APIUsageError, match="make the environment with the keywords that it was saved with"):
        other.load_state(twins.save_state())


def test_training_in_c_and_in_python_gives_the_same_weights_and_metrics(tmp_path):
    weights, episodes = [], []
    for native in (True, False):
        settings = {"vec.backend": "Serial", "vec.num_envs": 4, "train.total_timesteps": 1024, "train.horizon": 128}
        settings |= {"env.native": native, "env.max_episode_steps": 60, "train.device": "cpu", "train.update_epochs": 1}
        trainer = Trainer(load_config("mujoco/HalfCheetah-v5", settings), tmp_path)
        assert isinstance(trainer.vecenv, TwinEnvs) == native
        metrics = [trainer.step() for _ in range(2)]
        episodes.append([{name: each[name] for name in each if name.startswith("environment/")} for each in metrics])
        weights.append(trainer.policy.state_dict())
        trainer.close()
    assert episodes[0] == episodes[1]
    assert episodes[0][-1].keys() >= {"environment/episode_return", "environment/x_position", "environment/reward_ctrl"}
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


@pytest.mark.parametrize(
    ("name", "keywords"),
    [
        ("mujoco/HalfCheetah-v5", {"native": False}),
        ("mujoco/HalfCheetah-v4", {}),
        ("HalfCheetah-v4", {}),
        ("HalfCheetah-v5", {"render_mode": "rgb_array"}),
        ("mujoco/HalfCheetah-v5", {"ctrl_cost_weight": np.float32(0.1)}),
        ("mujoco/HalfCheetah-v5", {"no_such_option": 1}),
        ("HalfCheetah-v5", {"reset_noise_scale": -1}),  # its reset fails
        ("HalfCheetah-v5", {"frame_skip": 2.0}),  # its step fails
        ("mujoco/Ant-v5", {"main_body": "no such body"}),
    ],
    ids=str,
)
def test_options_that_c_lacks_run_in_python(name, keywords):
    assert twin_of(name, keywords) is None


def test_model_with_an_error_gets_the_message_of_mujoco(tmp_path):
    broken = model_file(tmp_path, "<worldbody>", "<worldbodi>")
    assert twin_of("mujoco/HalfCheetah", {"xml_file": broken}) is None
    with pytest.raises(APIUsageError, match="XML"):
        pufferlib.make("mujoco/HalfCheetah", num_envs=2, native=True, xml_file=broken)


@pytest.mark.parametrize("keywords", [{"frame_skip": 0}, {"xml_file": 5}], ids=str)
@pytest.mark.parametrize("name", ["Hopper-v5", "mujoco/Hopper"])
def test_values_that_gymnasium_fails_with_are_named(name, keywords):
    with pytest.raises(APIUsageError, match=rf"Hopper-v5: cannot be made with {keywords}: "):
        pufferlib.make(name, num_envs=2, **keywords)


@pytest.mark.parametrize("name", ["Hopper-v5", "mujoco/Hopper"])
def test_missing_model_is_named(name):
    words = r"cannot be made with \{'xml_file': 'mine.xml'\}: .*; the path of your own file must be absolute"
    with pytest.raises(APIUsageError, match=words):
        pufferlib.make(name, xml_file="mine.xml", num_envs=2)


def test_model_without_the_expected_joints_runs_in_python(tmp_path):
    assert twin_of("mujoco/Pusher", {"xml_file": model_file(tmp_path, "<worldbody>", "<worldbody>")}) is None


PENDULUM = """<mujoco><worldbody><body name="torso"><joint name="a" axis="0 1 0"/><geom size=".1"/></body></worldbody>
<actuator><motor joint="a"/></actuator></mujoco>"""


def test_model_with_few_joints_warns_and_runs_in_python(tmp_path):
    (tmp_path / "one.xml").write_text(PENDULUM)
    keywords = {"xml_file": str(tmp_path / "one.xml"), "num_envs": 2}
    words = "expected a model with at least 3 positions .* found 1 positions, 1 velocities, 0 sites and 2 bodies"
    for name in ("HalfCheetah-v5", "mujoco/HalfCheetah"):
        with pytest.warns(UserWarning, match=words):
            envs = pufferlib.make(name, **keywords)
        assert isinstance(envs, pufferlib.vector.Serial)
        envs.reset()
        envs.step(np.zeros((2, 1), np.float32))
        envs.close()


@pytest.mark.parametrize("name", ["Ant-v5", "mujoco/Ant-v5"])
def test_model_that_the_robot_cannot_read_is_refused(name, tmp_path):
    (tmp_path / "one.xml").write_text(PENDULUM)
    words = r"Ant-v5: expected a model with the joints and bodies of AntEnv, but .*one\.xml has 1 joints"
    with pytest.raises(APIUsageError, match=words):
        pufferlib.make(name, xml_file=str(tmp_path / "one.xml"))


def test_window_without_a_display_is_refused(monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(APIUsageError, match=r'Ant-v5: render_mode="human" needs a display, .*; use "rgb_array"'):
        pufferlib.make("Ant-v5", render_mode="human")


def test_robots_of_gymnasium_write_no_log_file(tmp_path):
    code = "import pufferlib; pufferlib.make('HalfCheetah-v5', num_envs=2).close()"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert (done.stderr, list(tmp_path.iterdir())) == ("", [])


def test_error_of_mujoco_in_a_step_is_raised(tmp_path, monkeypatch):
    small = model_file(tmp_path, "<worldbody>", '<size memory="1K"/><worldbody>')
    assert twin_of("mujoco/HalfCheetah", {"xml_file": small}) is None  # Gymnasium's first reset fails
    monkeypatch.setattr("pufferlib.registry.games.check_equal", lambda *_: None)
    twins = TwinEnvs(twin_of("mujoco/HalfCheetah", {"xml_file": small, "reset_noise_scale": 0.0}), 4, num_threads=2)
    twins.reset()
    actions = np.ones((4, 6), np.float32)
    with pytest.raises(APIUsageError, match="mj_stackAlloc: out of memory"):
        [twins.step(actions) for _ in range(50)]
    twins.reset()
    twins.close()


@pytest.fixture
def warned():
    """Return the list to which MuJoCo's warnings are added. A handler that was set before is restored."""
    found, before = [], mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(found.append)
    yield found
    mujoco.set_mju_user_warning(before)


def test_warnings_of_mujoco_reach_its_handler(warned):
    twin = twin_of("mujoco/HalfCheetah", {})
    rows = allocate(twin.observation_space, twin.action_space, 2)
    games = twin.games(2, "disabled", 2)
    games.bind(**rows)
    games.reset([0, 1])
    for data in games.data:
        data.qvel[:] = 1e9
    games.step(rows["actions"])
    assert sum("The simulation is unstable" in message for message in warned) == 2
    games.close()


def test_steps_do_not_read_the_clock_of_mujoco_and_leave_it_set():
    twin, readings = twin_of("mujoco/HalfCheetah", {}), []
    rows = allocate(twin.observation_space, twin.action_space, 2)
    games = twin.games(2, "disabled", 2)
    games.bind(**rows)
    games.reset([0, 1])
    before = mujoco.get_mjcb_time()

    def clock():
        readings.append(0)
        return 0.0

    mujoco.set_mjcb_time(clock)
    try:
        games.step(rows["actions"])
        assert (readings, mujoco.get_mjcb_time()) == ([], clock)
        mujoco.mj_forward(twin.create().unwrapped.model, games.data[0])
        assert readings
    finally:
        mujoco.set_mjcb_time(before)
    games.close()


def test_missing_library_runs_in_python_with_a_warning(tmp_path, monkeypatch):
    engine.cache_clear()
    monkeypatch.setattr(mujoco, "__file__", str(tmp_path / "__init__.py"))
    with pytest.warns(UserWarning, match=rf"expected libmujoco.so in {tmp_path} of mujoco {mujoco.__version__}"):
        assert twin_of("mujoco/Reacher", {}) is None


def test_missing_package_is_reported_by_the_original(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)  # import fails
    for name in ("mujoco/Reacher", "Reacher-v5"):
        assert twin_of(name, {}) is None


def test_different_results_run_in_python_with_a_warning(monkeypatch):
    monkeypatch.setitem(task.NUMBERS, "control", ())
    with pytest.warns(UserWarning, match=f"expected the reward of Gymnasium {gymnasium.__version__} in step 0"):
        assert twin_of("mujoco/Reacher", {}) is None


@pytest.mark.parametrize("name", once(["mujoco/Hopper-v5", "dmcontrol/reacher-easy"], ["mujoco/Hopper-v5"]))
def test_render_draws_the_image_of_the_package(name):
    if reason := missing_binding(name.partition("/")[0]):
        pytest.skip(reason)
    try:
        original = pufferlib.make(name, render_mode="rgb_array")
    except BindingMissing as error:
        pytest.skip(str(error))
    with TwinEnvs(twin_of(name, {}), num_envs=2) as twins:
        twins.reset(seed=[4, 5])
        original.reset(seed=5)
        for _ in range(3):
            actions = np.zeros((2, *twins.single_action_space.shape), np.float32) + 0.5
            twins.step(actions)
            original.step(actions[:1])
        assert twins.render(1).tobytes() == original.render().tobytes()
    original.close()
