import pytest
import torch
from torch import distributed

from pufferlib.training.distributed.local import join
from pufferlib.training.distributed.place import Place, place_of_this_process
from pufferlib.training.distributed.ranks import on_cpu


def test_on_cpu_copies_nested_tensors_to_cpu():

    class OfGpu(torch.Tensor):
        def cpu(self):
            return torch.ones(2)

    tensor = torch.zeros(2).as_subclass(OfGpu)
    sent = on_cpu({"memory": {"h": tensor}, "others": [tensor, ("words", tensor)], "count": 3})
    tensors = [sent["memory"]["h"], sent["others"][0], sent["others"][1][1]]
    assert all(torch.equal(each, torch.ones(2)) for each in tensors)
    assert (sent["others"][1][0], sent["count"]) == ("words", 3)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"SLURM_LOCALID": "1", "SLURM_NTASKS_PER_NODE": "4"}, (1, 4)),
        ({"LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "SLURM_LOCALID": "1"}, (3, 4)),
        ({}, (0, 1)),
    ],
    ids=["slurm", "torchrun", "unset"],
)
def test_local_rank_is_read_from_torchrun_or_slurm_variables(variables, expected):
    common = {"RANK": "5", "WORLD_SIZE": "8", "MASTER_ADDR": "here", "MASTER_PORT": "1234"}
    place = place_of_this_process({**common, **variables})
    assert (place.local_rank, place.local_size) == expected


def test_ranks_communicate_by_gloo_with_gpus(monkeypatch):
    """NCCL would hang after the loss of a rank, and refuses two ranks on one GPU."""
    backends = []
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 8)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(distributed, "init_process_group", lambda backend, **others: backends.append(backend))
    for name in ("barrier", "destroy_process_group"):
        monkeypatch.setattr(distributed, name, lambda: None)
    with join(Place(0, 1, 0, 1, "127.0.0.1", 1), 5.0, distributed.HashStore()):
        pass
    assert backends == ["gloo"]
