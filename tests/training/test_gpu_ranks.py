import torch

from pufferlib.training.distributed.place import place_of_this_process
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


def test_local_rank_is_read_from_slurm_variables():
    meeting = {"RANK": "5", "WORLD_SIZE": "8", "MASTER_ADDR": "here", "MASTER_PORT": "1234"}
    place = place_of_this_process({**meeting, "SLURM_LOCALID": "1", "SLURM_NTASKS_PER_NODE": "4"})
    assert (place.local_rank, place.local_size) == (1, 4)
    place = place_of_this_process({**meeting, "LOCAL_RANK": "3", "LOCAL_WORLD_SIZE": "4", "SLURM_LOCALID": "1"})
    assert (place.local_rank, place.local_size) == (3, 4)
    place = place_of_this_process(meeting)
    assert (place.local_rank, place.local_size) == (0, 1)
