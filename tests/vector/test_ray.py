"""Parts of the Ray backend that need no Ray. Tests that need it are in tests/cluster."""

import os
import pickle
import socket
import subprocess
import sys
import types

import cloudpickle
import gymnasium
import numpy as np
import pytest

import pufferlib
import pufferlib.vector
from pufferlib.errors import APIUsageError
from pufferlib.machine import commands
from pufferlib.machine.pickling import pickle_by_value
from pufferlib.vector.failures import Failed
from pufferlib.vector.ray import cluster
from pufferlib.vector.ray.actor import EnvActor, actor_class, shipped_layout
from pufferlib.vector.ray.workers import ActorChannel
from pufferlib.vector.specs import EnvSpec


class Counter(pufferlib.PufferEnv):
    """Environment with two agents, which observe their number of steps. Its episodes have three steps."""

    def __init__(self, buf=None):
        self.single_observation_space = gymnasium.spaces.Box(low=0, high=9, shape=(3,), dtype=np.uint8)
        self.single_action_space = gymnasium.spaces.Discrete(5)
        self.num_agents = 2
        super().__init__(buf)

    def reset(self, seed=None):
        self.observations[:] = 0
        return self.observations, []

    def step(self, actions):
        self.observations += 1
        self.rewards[:] = actions
        self.terminals[:] = self.observations[:, 0] == 3
        if self.terminals.all():
            self.final_observations[:] = self.observations
            self.observations[:] = 0
            return self.observations, self.rewards, self.terminals, self.truncations, [{"n": 1}]
        return self.observations, self.rewards, self.terminals, self.truncations, []

    def close(self):
        pass


def make_actor(num_envs):
    actor = EnvActor()
    plans = tuple(EnvSpec(i, Counter, (), {}, i) for i in range(num_envs))
    ready = pickle.loads(actor.build(pickle_by_value((plans, None, None))))
    return actor, shipped_layout(ready.row_spec, num_envs)


def test_missing_ray_names_the_install_command(monkeypatch):
    monkeypatch.setattr(commands, "in_image", lambda: False)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(pufferlib.BindingMissing, match="needs Ray; run: puffer install ray, or use the image tank"):
        pufferlib.vector.make(Counter, num_envs=2, num_workers=2, backend=pufferlib.vector.Ray)


def test_ray_is_imported_only_when_used():
    code = "import sys, pufferlib.vector; pufferlib.vector.Ray; print('ray' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize("num_envs", [1, 64])
def test_step_sends_one_array_for_any_number_of_environments(num_envs):
    actor, layout = make_actor(num_envs)
    sizes = []
    for outcome in (actor.reset(np.zeros(num_envs, np.int64)), actor.step(np.ones(2 * num_envs, np.int32))):
        arrays = []
        rest = pickle.dumps(outcome, protocol=5, buffer_callback=arrays.append)
        assert len(arrays) == 1
        sizes.append(len(rest))
    rows = layout.arrays(outcome[0].data)
    assert rows["observations"].shape == (2 * num_envs, 3)
    assert (rows["rewards"] == 1).all()
    assert max(sizes) < 500


def test_final_observations_are_sent_only_when_an_episode_ended():
    actor, layout = make_actor(2)
    actor.reset(np.array([-1, 5]))
    shipped = [actor.step(np.zeros(4, np.int32)) for _ in range(2)]
    assert all("final_observations" not in layout.arrays(memory.data) for memory, _ in shipped)
    memory, infos = actor.step(np.zeros(4, np.int32))
    assert (layout.arrays(memory.data)["final_observations"] == 3).all()
    assert layout.arrays(memory.data)["terminals"].all()
    assert pickle.loads(infos) == ([{"n": 1}, {"n": 1}], [0, 2])


def test_infos_with_classes_of_the_script_are_pickled_by_name(monkeypatch):
    script = types.ModuleType("script")
    exec("class Event: ...", script.__dict__)
    actor, _ = make_actor(1)
    actor.reset(np.zeros(1, np.int64))
    env = actor._runner.envs[0]
    step = env.step
    env.step = lambda actions: (*step(actions)[:4], [{"event": script.Event()}])
    _, infos = actor.step(np.zeros(2, np.int32))  # no module named script exists here
    monkeypatch.setitem(sys.modules, "script", script)
    assert type(pickle.loads(infos)[0][0]["event"]) is script.Event


def test_failure_is_sent_as_failed():
    actor, _ = make_actor(3)
    actor.reset(np.zeros(3, np.int64))
    for position in (1, 2):
        actor._runner.envs[position].observations = None
    report = actor.step(np.zeros(6, np.int32))
    assert isinstance(report, Failed)
    assert (report.phase, report.position) == ("step", 1)


@pytest.mark.parametrize(("place", "expected"), [(None, []), (0, [0]), (1, [1])])
def test_actor_has_working_directory_in_sys_path_where_caller_has(tmp_path, monkeypatch, place, expected):
    folder, path = str(tmp_path), [entry for entry in sys.path if entry]
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", path if place is None else [*path[:place], "", *path[place:]])
    code = f"""if True:
        import pickle, sys
        actor_class = pickle.load(sys.stdin.buffer)
        assert "pufferlib" not in sys.modules
        sys.path.insert(0, {folder!r})  # as Ray does
        actor = actor_class().actor
        places = [i for i, entry in enumerate(sys.path) if entry == {folder!r}]
        print(type(actor).__name__, places)
        """
    data = cloudpickle.dumps(actor_class())
    done = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, cwd="/")
    assert (done.stdout.decode(), done.stderr) == (f"EnvActor {expected}\n", b"")


@pytest.mark.parametrize("machine", ["the caller's", "another"])
def test_other_machines_keep_their_environment_variables(tmp_path, monkeypatch, machine):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OURS", "ours")
    monkeypatch.setenv("BOTH", "ours")
    monkeypatch.setenv("RAY_OF", "ours")
    kind = actor_class()
    monkeypatch.setenv("BOTH", "theirs")
    monkeypatch.setenv("RAY_OF", "theirs")
    monkeypatch.delenv("OURS")
    monkeypatch.chdir("/")
    if machine == "another":
        monkeypatch.setattr(socket, "gethostname", lambda: "elsewhere")
    kind()
    expected = "ours" if machine == "the caller's" else "theirs"
    assert [os.environ[name] for name in ("OURS", "BOTH", "RAY_OF")] == ["ours", expected, "theirs"]
    assert os.getcwd() == str(tmp_path)


def test_ray_temp_dir_is_short_enough_for_sockets(monkeypatch):
    monkeypatch.delenv("RAY_TMPDIR", raising=False)
    for folder, expected in (("/tmp", None), ("/" + "long" * 25, "/tmp/ray")):
        monkeypatch.setenv("TMPDIR", folder)
        assert cluster._temp_dir() == expected


def test_unreachable_ray_address_is_named(monkeypatch):
    class Ray:
        is_initialized = staticmethod(lambda: False)

    monkeypatch.setitem(sys.modules, "ray", Ray)  # the real one would try for many minutes
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(APIUsageError) as caught:
        pufferlib.vector.make(Counter, num_envs=2, num_workers=2, backend="Ray")
    assert f"a Ray cluster must answer at RAY_ADDRESS={address}, got ConnectionRefusedError" in str(caught.value)
    assert "or unset RAY_ADDRESS to use this machine alone" in str(caught.value)


def fake_ray(address):
    """Return a module like ``ray`` that is connected to the cluster at ``address``, or to none."""
    context = types.SimpleNamespace(gcs_address=address, get_job_id=lambda: "01000000")
    return {"is_initialized": lambda: address is not None, "get_runtime_context": lambda: context}


@pytest.mark.parametrize("address", [None, "127.0.0.1:6380"])
def test_actors_of_ended_ray_session_are_not_used(address):
    waits = []
    ray = types.SimpleNamespace(wait=waits.append, **fake_ray("127.0.0.1:6379"))
    channel = ActorChannel(ray, 1, lambda worker, operation: None)
    channel.check_connection()
    vars(ray).update(fake_ray(address))  # ray.shutdown, and perhaps ray.init
    assert not channel.is_connected
    with pytest.raises(APIUsageError, match=r"ray\.shutdown was called after they were made"):
        channel.wait_for([0])
    assert waits == []
