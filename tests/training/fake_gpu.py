"""GPU for tests on a machine without one. Its tensors are in CPU memory, but torch reports that they are on a GPU.

Operations compute real results on the CPU. Like torch on a real GPU, they raise if their tensors are on different
devices, and anything that makes the CPU wait for the GPU is counted, and raises while a CUDA graph is recorded.
"""

import contextlib
import os
import sys
import threading

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

CPU = torch.device("cpu")
COPY = torch.ops.aten.copy_.default
INDEXING = {
    torch.ops.aten.index.Tensor,
    torch.ops.aten.index_put.default,
    torch.ops.aten.index_put_.default,
    torch.ops.aten._index_put_impl_.default,
}
WAITING = {  # the shape or the Python value of the result depends on the data
    torch.ops.aten._local_scalar_dense.default,
    torch.ops.aten.nonzero.default,
    torch.ops.aten.masked_select.default,
    torch.ops.aten.equal.default,
}
Tensor = torch.Tensor


class FakeGpu:
    """One or several fake GPUs.

    Attributes:
        waits: File and line of each time that the CPU waited for a GPU.
        stream_waits: Priorities of two streams each time that the first one waited for the second one.
        replays: Number of replayed CUDA graphs.
        current: Index of the current device of the calling thread.
        failure: Error that every use of a GPU raises, or None.
    """

    def __init__(self, count=1, capability=(9, 0)):
        self.count, self.capability = count, capability
        self.waits, self.stream_waits, self.replays, self.graphs = [], [], 0, 0
        self._thread = threading.local()
        self._marks, self._pinned = {}, {}
        self.locked = {}  # sizes of memory with locked pages, by address
        self.failure = None

    @property
    def current(self):
        return getattr(self._thread, "device", 0)

    @current.setter
    def current(self, index):
        self._thread.device = index

    @property
    def is_recording(self):
        """Whether the calling thread records a CUDA graph."""
        return getattr(self._thread, "is_recording", False)

    @is_recording.setter
    def is_recording(self, value):
        self._thread.is_recording = value

    def device_of(self, tensor):
        mark = self._marks.get(tensor.untyped_storage()._cdata)
        return CPU if mark is None else mark[1]

    def mark(self, tensor, device):
        """Set the device of a tensor. The weak reference keeps the address of its storage from being used again."""
        storage = tensor.untyped_storage()
        if device.type == "cpu":
            self._marks.pop(storage._cdata, None)
            return tensor
        if len(self._marks) > 20_000:
            self._marks = {key: mark for key, mark in self._marks.items() if not mark[0].expired()}
        index = self.current if device.index is None else device.index
        self._marks[storage._cdata] = StorageWeakRef(storage), torch.device("cuda", index)
        return tensor

    def pin(self, tensor):
        storage = tensor.untyped_storage()
        self._pinned[storage._cdata] = StorageWeakRef(storage)
        return tensor

    def is_pinned(self, tensor):
        address = tensor.data_ptr()
        is_locked = any(start <= address < start + size for start, size in self.locked.items())
        return is_locked or tensor.untyped_storage()._cdata in self._pinned

    def wait(self):
        """Count a wait of the CPU for the GPU."""
        if self.is_recording:
            raise RuntimeError("CUDA error: operation not permitted when stream is capturing")
        frame = sys._getframe(1)
        while f"pufferlib{os.sep}" not in frame.f_code.co_filename and frame.f_back is not None:
            frame = frame.f_back
        self.waits.append(f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}")

    def move(self, tensor, device, non_blocking=False):
        """Return a copy of ``tensor`` on ``device``."""
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", self.current)
        self.check(device)
        before = self.device_of(tensor)
        if device == before:
            return tensor
        if not (non_blocking and before == CPU):
            self.wait()
        with torch.no_grad() if not tensor.requires_grad else contextlib.nullcontext():
            return self.mark(tensor.clone(), device)

    def check(self, device):
        if device.type == "cuda" and (device.index or 0) >= self.count:
            raise RuntimeError("CUDA error: invalid device ordinal")
        if device.type == "cuda" and self.failure is not None:
            raise self.failure

    @contextlib.contextmanager
    def modes(self):
        """Return a context, for one thread, in which tensors can be on this GPU."""
        with _Operations(self), _Functions(self):
            yield


class _Operations(TorchDispatchMode):
    """Devices of the results of operations, including those of autograd."""

    def __init__(self, gpu):
        super().__init__()
        self._gpu = gpu

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        gpu, kwargs = self._gpu, kwargs or {}
        with self:  # in inference mode an operation such as item() comes as a whole
            outputs = func.decompose(*args, **kwargs)
        if outputs is not NotImplemented:
            return outputs
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        devices = [gpu.device_of(each) for each in tensors]
        found = {device for each, device in zip(tensors, devices, strict=True) if each.ndim or device != CPU}
        if func is COPY:
            self._copy(args, kwargs, *devices)
        elif func in INDEXING:
            self._index(args, devices)
        elif len(found) > 1:
            raise RuntimeError(f"{func}: expected all tensors to be on the same device, got {sorted(map(str, found))}")
        on_gpu = [device for device in devices if device != CPU]
        if on_gpu and func in WAITING:
            gpu.wait()
        outputs = func(*args, **kwargs)
        if on_gpu:
            held = {each.untyped_storage()._cdata for each in tensors}
            for each in tree_leaves(outputs):
                if isinstance(each, Tensor) and each.untyped_storage()._cdata not in held:
                    gpu.mark(each, on_gpu[0])
        return outputs

    def _copy(self, args, kwargs, target, source):
        if target == source:
            return
        non_blocking = kwargs.get("non_blocking", args[2] if len(args) > 2 else False)
        host = args[1] if source == CPU else args[0]
        if not non_blocking or (not self._gpu.is_pinned(host) and (target == CPU or self._gpu.is_recording)):
            self._gpu.wait()

    def _index(self, args, devices):
        indices = [each for each in args[1] if each is not None]
        own = devices[0]
        for index in indices:
            device = self._gpu.device_of(index)
            if device not in (CPU, own):
                raise RuntimeError(f"indices should be on the CPU or on {own}, got {device}")
            if own != CPU and (device == CPU or index.dtype in (torch.bool, torch.uint8)):
                self._gpu.wait()
        if len(args) > 2 and args[2].ndim and self._gpu.device_of(args[2]) != own:
            raise RuntimeError(f"index_put_: expected values on {own}, got {self._gpu.device_of(args[2])}")


class _Functions(TorchFunctionMode):
    """Attributes of tensors, and functions with a device."""

    def __init__(self, gpu):
        super().__init__()
        self._gpu = gpu

    def __torch_function__(self, func, types, args=(), kwargs=None):
        gpu, kwargs = self._gpu, dict(kwargs or {})
        first = args[0] if args and isinstance(args[0], Tensor) else None
        if first is not None:
            if func == Tensor.device.__get__:
                return gpu.device_of(first)
            if func == Tensor.is_cuda.__get__:
                return gpu.device_of(first) != CPU
            if func == Tensor.is_cpu.__get__:
                return gpu.device_of(first) == CPU
            if func == Tensor.is_pinned:
                return gpu.is_pinned(first)
            if func == Tensor.numpy:
                return self._numpy(first, **kwargs)
            if func == Tensor.tolist and gpu.device_of(first) != CPU:
                gpu.wait()
            if func in (Tensor.to, Tensor.cpu, Tensor.cuda):
                return self._to(func, first, args[1:], kwargs)
        return self._call(func, args, kwargs, first)

    def _call(self, func, args, kwargs, first):
        gpu = self._gpu
        device = kwargs.get("device")
        if device is not None:
            device = torch.device(device)
            gpu.check(device)
            kwargs["device"] = CPU
        is_pinned = kwargs.pop("pin_memory", False)
        found = func(*args, **kwargs)
        if device is not None and device != CPU:
            for each in tree_leaves(found):
                if isinstance(each, Tensor):
                    gpu.mark(each, device)
        elif isinstance(found, Tensor) and first is not None and func in (Tensor.__deepcopy__, Tensor.new_tensor):
            gpu.mark(found, gpu.device_of(first))
        if is_pinned:
            gpu.pin(found)
        return found

    def _numpy(self, tensor, force=False):
        if self._gpu.device_of(tensor) == CPU:
            return tensor.numpy(force=force)
        if not force:
            raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() first")
        self._gpu.wait()
        return tensor.detach().clone().numpy(force=True)

    def _to(self, func, tensor, args, kwargs):
        if func != Tensor.to:
            target = CPU if func == Tensor.cpu else torch.device("cuda")
            return self._gpu.move(tensor, target, kwargs.get("non_blocking", False))
        if args and isinstance(args[0], Tensor):
            args = self._gpu.device_of(args[0]), args[0].dtype, *args[1:]
        elif args and isinstance(args[0], torch.dtype):
            args = None, *args
        given = {**dict(zip(("device", "dtype", "non_blocking", "copy"), args, strict=False)), **kwargs}
        target, non_blocking = given.pop("device", None), given.pop("non_blocking", False)
        given = {name: value for name, value in given.items() if value}
        found = tensor.to(**given) if given else tensor
        return found if target is None else self._gpu.move(found, torch.device(target), non_blocking)
