"""Replacements of the parts of torch that need a real GPU. See ``fake_gpu``."""

import contextlib
import functools
import gc
from concurrent.futures import ThreadPoolExecutor

import torch
from torch.utils._python_dispatch import _disable_current_modes

from pufferlib.models import gpu_code
from tests.training.tape import Tape

CPU = torch.device("cpu")
REAL_GENERATOR, REAL_AUTOCAST = torch.Generator, torch.autocast
REAL_GROUPS = torch._C._group_tensors_by_device_and_dtype


def install(gpu, monkeypatch):
    """Replace functions and classes of torch by those of ``gpu``."""
    generator = generator_class(gpu)
    cuda = FakeCuda(gpu)
    names = [name for name in vars(FakeCuda) if not name.startswith("_")]
    for name in names:
        monkeypatch.setattr(torch.cuda, name, getattr(cuda, name))
    generators = [generator(torch.device("cuda", index)) for index in range(gpu.count)]
    monkeypatch.setattr(torch.cuda, "default_generators", generators)
    monkeypatch.setattr(torch, "Generator", generator)
    monkeypatch.setattr(torch, "autocast", lambda device, *rest, **more: REAL_AUTOCAST("cpu", *rest, **more))
    monkeypatch.setattr(torch._C, "_group_tensors_by_device_and_dtype", functools.partial(groups, gpu))
    monkeypatch.setattr(gpu_code, "can_compile", lambda device: False)
    for module in ("pufferlib.training.sources", "tests.training.ranks"):
        monkeypatch.setattr(f"{module}.ThreadPoolExecutor", functools.partial(Executor, gpu))


class FakeCuda:
    """Functions and classes of ``torch.cuda``."""

    def __init__(self, gpu):
        self._gpu = gpu

    def is_available(self):
        return True

    def device_count(self):
        return self._gpu.count

    def current_device(self):
        return self._gpu.current

    def set_device(self, device):
        self._gpu.current = torch.device(device).index  # a failure shows at the first kernel

    def init(self):
        pass

    def synchronize(self, device=None):
        self._gpu.wait()

    def get_device_capability(self, device=None):
        return self._gpu.capability

    def get_device_name(self, device=None):
        self._gpu.check(torch.device("cuda"))
        return "Fake GPU"

    def mem_get_info(self, device=None):
        """Return free and total bytes. GPU 0 has 1 GiB, GPU 1 has 2 GiB."""
        index = None if device is None else torch.device(device).index
        return 0, (1 + (self._gpu.current if index is None else index)) << 30

    @contextlib.contextmanager
    def device(self, device):
        before, self._gpu.current = self._gpu.current, torch.device(device).index or 0
        try:
            yield
        finally:
            self._gpu.current = before

    def stream(self, stream):
        return contextlib.nullcontext()

    def Stream(self, device=None, priority=0):  # noqa: N802
        return Stream(self._gpu, device, priority)

    def current_stream(self, device=None):
        return Stream(self._gpu, device, 0)

    def CUDAGraph(self):  # noqa: N802
        return Graph(self._gpu)

    @contextlib.contextmanager
    def graph(self, graph, stream, capture_error_mode):
        assert stream.device.index == self._gpu.current, "the graph of another device stays empty"
        assert not gc.isenabled(), "garbage may be collected when the recording begins"
        self._gpu.is_recording = True
        try:
            with graph.tape:
                yield
        finally:
            self._gpu.is_recording = False

    def cudart(self):
        return Runtime(self._gpu)


class Stream:
    """CUDA stream. Everything runs at once, and waits for other streams are only noted."""

    def __init__(self, gpu, device, priority):
        self.device = torch.device("cuda", gpu.current) if device is None else torch.device(device)
        self.priority, self._gpu = priority, gpu

    def wait_stream(self, other):
        assert other.device == self.device
        self._gpu.stream_waits.append((self.priority, other.priority))

    def synchronize(self):
        self._gpu.wait()


class Graph:
    """CUDA graph. Recording has computed the results already, so the first replay does nothing."""

    def __init__(self, gpu):
        self.tape, self._gpu, self._is_first = Tape(), gpu, True
        gpu.graphs += 1

    def replay(self):
        self._gpu.replays += 1
        if not self._is_first:
            with _disable_current_modes(), torch._C.DisableTorchFunction():
                self.tape.replay()
        self._is_first = False


class Runtime:
    """Functions of the CUDA runtime."""

    def __init__(self, gpu):
        self._gpu = gpu

    def cudaHostRegister(self, address, size, flags):  # noqa: N802
        self._gpu.locked[address] = size
        return 0

    def cudaHostUnregister(self, address):  # noqa: N802
        return 0 if self._gpu.locked.pop(address, None) else 1


def generator_class(gpu):
    """Return a class of random number generators. On the GPU their state has another length than on the CPU."""

    class Generator(REAL_GENERATOR):
        device = None  # writable, unlike the attribute of the base class

        def __new__(cls, device="cpu"):
            gpu.check(torch.device(device))
            return super().__new__(cls)

        def __init__(self, device="cpu"):
            device = torch.device(device)
            self.device = torch.device("cuda", gpu.current) if str(device) == "cuda" else device

        def get_state(self):
            state = super().get_state()
            return state if self.device == CPU else torch.cat([state, torch.zeros(1, dtype=torch.uint8)])

        def set_state(self, state):
            assert len(state) == len(self.get_state())
            return super().set_state(state if self.device == CPU else state[:-1].clone())

    return Generator


def groups(gpu, tensors, with_indices=False):
    """Group tensors as torch does for optimizers and clipping, by their devices on the fake GPU."""
    found = {}
    for (_, dtype), (lists, indices) in REAL_GROUPS(tensors, with_indices).items():
        first = next(each for part in lists for each in part if each is not None)
        found[gpu.device_of(first), dtype] = lists, indices
    return found


class Executor(ThreadPoolExecutor):
    """Executor whose threads know the GPU, and have the current device of the calling thread."""

    def __init__(self, gpu, *args):
        super().__init__(*args)
        self._gpu = gpu

    def submit(self, function, *args):
        device = self._gpu.current

        def run():
            self._gpu.current = device
            with self._gpu.modes():
                return function(*args)

        return super().submit(run)
