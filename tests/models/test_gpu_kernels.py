"""CUDA kernels, compiled for the CPU and compared with the C kernels."""

import ctypes
import subprocess
from importlib import resources

import pytest
import torch

from pufferlib.models import gpu_code
from pufferlib.models._categorical import CategoricalKernel
from pufferlib.models.recurrent import _kernels, gpu_kernels

# Definitions that CUDA has and C++ has not.
SHIM = """
#include <cmath>
#include <cstring>
#define __device__
#define __global__
struct Index { int x; };
static Index blockIdx, blockDim, threadIdx;
static float __uint_as_float(unsigned bits) { float value; std::memcpy(&value, &bits, 4); return value; }
static unsigned __float_as_uint(float value) { unsigned bits; std::memcpy(&bits, &value, 4); return bits; }
extern "C" void set_thread(int block, int size, int thread)
{
    blockIdx.x = block; blockDim.x = size; threadIdx.x = thread;
}
"""


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kernels")
    found = {}
    for file in ("cells.cu", "categorical.cu"):
        source = folder / f"{file}.cpp"
        source.write_text(SHIM + resources.files("pufferlib.models").joinpath(file).read_text("utf-8"))
        library = source.with_suffix(".so")
        subprocess.run(["g++", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        found[file] = ctypes.CDLL(str(library))
    return found


@pytest.fixture
def on_cpu(libraries, monkeypatch):
    """Run GPU kernels on the CPU, one thread after the other, with some more threads than needed."""

    def launch(file, name, threads, args):
        library = libraries[file]
        converted = [
            ctypes.c_void_p(arg.data_ptr()) if isinstance(arg, torch.Tensor) else ctypes.c_int(arg) for arg in args
        ]
        for thread in range(threads + 7):
            library.set_thread(thread // 5, 5, thread % 5)
            getattr(library, name)(*converted)

    monkeypatch.setattr(gpu_code, "launch", launch)


STEPS, ROWS, SIZE = 3, 4, 5
STEP, FLOAT = (ROWS, SIZE), torch.float32


def make_starts(with_starts, *shape):
    return (torch.rand(shape) < 0.5) if with_starts else None


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("half", [FLOAT, torch.bfloat16])
@pytest.mark.parametrize("cell", ["lstm_forward", "lstm_backward", "gru_forward", "gru_backward"])
def test_gpu_cells_match_cpu(on_cpu, cell, half, with_starts):
    torch.manual_seed(0)
    gates = (ROWS, 4 * SIZE if cell.startswith("lstm") else 3 * SIZE)
    bias, shown = (gates[1],), (half, STEP)
    kinds = {
        "lstm_forward": [(half, gates), (FLOAT, bias), *[(FLOAT, STEP)] * 3, shown],
        "lstm_backward": [(half, gates), *[(FLOAT, STEP)] * 3, shown, (FLOAT, STEP), (half, gates)],
        "gru_forward": [(half, gates), (half, gates), *[(FLOAT, bias)] * 2, *[(FLOAT, STEP)] * 2, shown, shown],
        "gru_backward": [(half, gates), shown, *[(FLOAT, STEP)] * 2, shown, (FLOAT, STEP), *[(half, gates)] * 2],
    }[cell]
    ours = [torch.randn(shape).to(kind) for kind, shape in kinds]
    theirs = [array.clone() for array in ours]
    starts = [make_starts(with_starts, ROWS), make_starts(with_starts, ROWS)]
    dbias = [torch.zeros(bias), torch.zeros(SIZE)][: {"lstm_backward": 1, "gru_backward": 2}.get(cell, 0)]
    getattr(gpu_kernels, cell)(*ours, *[None] * len(dbias), *starts)
    getattr(_kernels, cell)(*theirs, *dbias, *starts)
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("with_starts", [False, True])
@pytest.mark.parametrize("half", [FLOAT, torch.bfloat16])
def test_gpu_mingru_segments_match_cpu(on_cpu, half, with_starts):
    torch.manual_seed(0)
    steps = (STEPS, ROWS, SIZE)
    gates, bias = torch.randn(STEPS, ROWS, 3 * SIZE).to(half), torch.randn(3 * SIZE)
    inputs, memory, outputs = torch.randn(steps).to(half), torch.randn(STEPS + 1, ROWS, SIZE), torch.empty(steps)
    starts = make_starts(with_starts, STEPS, ROWS)
    forward = [[each.clone() for each in (gates, memory, outputs)] for _ in range(2)]
    for kernels, (mine, h, shown) in zip((gpu_kernels, _kernels), forward, strict=True):
        kernels.mingru_forward(mine, bias, inputs, h[:-1], h[1:], shown, starts)
    assert all(torch.allclose(*pair) for pair in zip(*forward, strict=True))
    doutputs, dh = torch.randn(steps), torch.randn(ROWS, SIZE)
    backward = [[dh.clone(), torch.empty_like(gates), torch.empty_like(inputs)] for _ in range(2)]
    for kernels, found in zip((gpu_kernels, _kernels), backward, strict=True):
        more = found[0], found[1], found[2], torch.zeros(3 * SIZE), starts
        kernels.mingru_backward(forward[1][0], inputs, forward[1][1][:-1], forward[1][1][1:], doutputs, *more)
    for one, other in zip(*backward, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("sizes", [[3], [2, 1, 7]])
def test_gpu_draw_matches_cpu(on_cpu, sizes):
    torch.manual_seed(0)
    rows = 50
    params, noise = 3 * torch.randn(rows, sum(sizes) + 1)[:, :-1], torch.rand(rows, len(sizes))
    params[0, 0], params[1] = -1e30, -1e30  # without probability
    found = [(torch.empty(rows, len(sizes), dtype=torch.int64), torch.empty(rows)) for _ in range(2)]
    sizes_and_rows = [len(sizes), params.stride(0), rows]
    arrays = [params, noise, *found[0], torch.tensor(sizes, dtype=torch.int32)]
    gpu_code.launch("categorical.cu", "draw", rows, [*arrays, *sizes_and_rows])
    CategoricalKernel(sizes).draw(params, noise, *found[1])
    assert torch.equal(found[0][0], found[1][0])
    torch.testing.assert_close(found[0][1], found[1][1])
