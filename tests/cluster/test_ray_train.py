"""Tests of distributed training on a Ray cluster with Ray Train."""

import contextlib
import threading

import pytest

from tests.needs import missing_extra

if reason := missing_extra("rllib"):  # includes the dependencies of Ray Train
    pytest.skip(reason, allow_module_level=True)
pytest.importorskip("torch", reason="the train extra is not installed")

import ray
from ray.cluster_utils import Cluster

import pufferlib
from pufferlib.errors import PufferError
from pufferlib.registry.outside import REGISTERED
from pufferlib.training.distributed.launch import open_ranks, reserve_gpu
from pufferlib.training.distributed.ranks import RankLostError
from pufferlib.training.trainer import Trainer
from tests.training.ranks import AGENTS, Patchy, make_config

pytestmark = [
    pytest.mark.all,
    pytest.mark.timeout(600),
    pytest.mark.filterwarnings("default"),  # Ray warns about itself
]


class Placed(Patchy):
    """Environment that knows whether it runs in an actor of a cluster."""

    def __init__(self, buf=None):
        super().__init__(buf=buf)
        self.is_remote = bool(ray.get_runtime_context().get_actor_id())


class Failing(Placed):
    """Environment that fails in every rank on the cluster, after about three updates."""

    def step(self, actions):
        if self.is_remote and self.age == 50:
            raise ValueError("boom")
        return super().step(actions)


@pytest.fixture(scope="module")
def address():
    """Start two nodes with one CPU and one GPU each, so that each has room for one rank. Yield their address."""
    nodes = Cluster()
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")  # Ray counts this GPU, whether or not it exists
        for _ in range(2):
            nodes.add_node(num_cpus=1, num_gpus=1, object_store_memory=80 << 20, include_dashboard=False)
    yield nodes.address
    ray.shutdown()
    nodes.shutdown()


@pytest.fixture
def config(address, monkeypatch):
    def make(env, steps, **settings):
        monkeypatch.setitem(REGISTERED, "breakout_of_ranks", None)  # monkeypatch removes the name after the test
        pufferlib.register("breakout_of_ranks", env)
        more = {f"train.{name}": value for name, value in settings.items()}
        on_ray = {"train.processes": 3, "train.launcher": "ray", "train.ray_address": address}
        return make_config({**on_ray, "train.total_timesteps": steps, **more}, AGENTS, "breakout_of_ranks")

    return make


@contextlib.contextmanager
def trainer_of(config, folder):
    with open_ranks(config, folder) as ranks, contextlib.closing(Trainer(config, folder, ranks=ranks)) as trainer:
        yield trainer


@pytest.mark.nightly  # starting Ray takes 90 seconds, the full suite trains ranks without Ray
def test_ranks_train_on_cluster_nodes(config, tmp_path):
    with trainer_of(config(Placed, 900), tmp_path) as trainer:
        trainer.train()
    assert trainer.config.train.processes == 3
    assert trainer.agent_steps >= 900
    assert trainer.updates * 3 * AGENTS * 16 > trainer.agent_steps > trainer.updates * 2 * AGENTS * 16


@pytest.mark.nightly  # takes two minutes, the full suite tests lost ranks without Ray
def test_exception_on_node_stops_all_ranks_and_saves(config, tmp_path):
    match = r"train: rank [12] of 3 ended: ValueError: boom; a checkpoint of update 3 was saved$"
    with pytest.raises(RankLostError, match=match), trainer_of(config(Failing, 10**6), tmp_path) as trainer:
        trainer.train()


def test_cluster_without_room_for_all_ranks_raises(config, tmp_path):
    with (
        pytest.raises(PufferError, match=r"3 ranks must meet at .*, 1 came within 3 s, and ranks 1, 2 did not"),
        trainer_of(config(Placed, 900, ray_cpus=2, processes_timeout=3.0), tmp_path),
    ):
        pass
    # Ray would end this process during ray.shutdown if the thread still waited for a cluster with more room.
    assert "ray-train" not in {thread.name for thread in threading.enumerate()}


def test_first_rank_reserves_gpu_that_ray_gives_to_nobody_else(address):
    if not ray.is_initialized():
        ray.init(address, log_to_driver=False)
    here = ray.util.get_node_ip_address()
    with reserve_gpu(ray, here, 60.0) as one, reserve_gpu(ray, here, 60.0) as other:
        assert (one, other) == (0, 0)  # the first GPU of each node
        with pytest.raises(PufferError, match=r"needs a GPU of this machine .* Ray had none free here in 3 s"):
            reserve_gpu(ray, here, 3.0).__enter__()
    with reserve_gpu(ray, here, 60.0) as again:
        assert again == 0
