import functools

import pytest
import torch

from pufferlib.errors import PufferError
from pufferlib.models import distributions
from pufferlib.training.collector import Collector
from pufferlib.training.gpu_collector import GpuCollector
from tests.training import test_collector
from tests.training.tape import TapeRecorder
from tests.training.test_collector import Scripted, Sum, collected


def scripted(autoreset="same_step"):
    return Scripted(3, terminal={(0, 2)}, truncated={(1, 2), (2, 3)}, absent={(2, 1)}, autoreset=autoreset)


@pytest.mark.parametrize("autoreset", ["same_step", "next_step"])
@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("is_recorded", [False, True])
def test_gpu_collector_matches_cpu_collector(monkeypatch, is_recorded, recurrent, autoreset):
    """Three rollouts have terminated and truncated episodes and absent agents."""
    monkeypatch.setattr(distributions, "is_plain", lambda params: False)  # a tape cannot record C kernels
    recorder = TapeRecorder()
    for_gpu = functools.partial(GpuCollector, recorder=recorder if is_recorded else None)
    rollouts, collectors = [], []
    for make in (Collector, for_gpu):
        rollout, collector = collected(scripted(autoreset), rollouts=3, recurrent=recurrent, make=make)
        rollouts.append(rollout.state_dict())
        collectors.append(collector.state_dict())
        assert collector.episodes.pop() == {"environment/score": 1.0}
    for name in rollouts[0]:
        torch.testing.assert_close(rollouts[1][name], rollouts[0][name], msg=name)
    for name in collectors[0]:
        torch.testing.assert_close(collectors[1][name], collectors[0][name], msg=name)
    assert len(recorder.tapes) == is_recorded


def test_nan_raises_in_its_step(monkeypatch):
    class Breaks(Sum):
        def forward_eval(self, observations, state=None):
            params, values = super().forward_eval(observations, state)
            return params + torch.where(observations[:1, 1:] == 2, torch.nan, 0.0), values

    monkeypatch.setattr(test_collector, "Sum", Breaks)
    rollout, collector = collected(Scripted(2), rollouts=0, make=functools.partial(GpuCollector, recorder=None))
    with pytest.raises(PufferError, match="the policy's outputs must be finite"):
        collector.collect()
    assert rollout.observations[:, 0, 1].tolist() == [0, 1, 2]


def test_step_does_not_synchronize_with_gpu(monkeypatch):
    """A tape raises if an operation synchronizes, like the recording of a CUDA graph."""
    monkeypatch.setattr(distributions, "is_plain", lambda params: False)
    recorder = TapeRecorder()
    collected(scripted(), rollouts=2, recurrent=True, make=functools.partial(GpuCollector, recorder=recorder))
    assert recorder.replays == 2 * 3 - 2
