"""Recurrent cells: kernels over segments, compared with single steps of torch and of the MinGRU paper."""

import functools

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from pufferlib import registry
from pufferlib.errors import APIUsageError, UnknownNameError
from pufferlib.models import Default, GRUWrapper, LSTMWrapper, MinGRUWrapper, make_policy
from pufferlib.models.recurrent import MEMORIES, MinGRUCell, _kernels
from pufferlib.models.recurrent.gated import gru, gru_by_torch, lstm, lstm_by_torch
from pufferlib.models.recurrent.mingru import linear_scan, mingru, mingru_by_torch
from pufferlib.settings.config import load_config
from tests.envs import EnvDescription
from tests.tiers import once

VECTOR = EnvDescription(Box(-1, 1, (6,), np.float32), Discrete(3))
WIDTH = 20  # more than one SIMD vector, with a remainder


class StepByStep:
    """Reference: a torch cell, or MinGRU as its paper defines it, one step after the other."""

    def __init__(self, cell):
        self.cell = cell
        self.size = 2 if isinstance(cell, torch.nn.LSTMCell) else 1

    def step(self, x, memory):
        if isinstance(self.cell, MinGRUCell):
            z, n, r = torch.nn.functional.linear(x, self.cell.weight, self.cell.bias).chunk(3, 1)
            (h,) = memory
            h = (1 - z.sigmoid()) * h + z.sigmoid() * n
            return r.sigmoid() * h + (1 - r.sigmoid()) * x, [h]
        memory = self.cell(x, tuple(memory) if self.size == 2 else memory[0])
        memory = list(memory) if self.size == 2 else [memory]
        return memory[0], memory

    def __call__(self, inputs, memory, starts):
        outputs = []
        for step, x in enumerate(inputs.unbind(0)):
            if starts is not None:
                memory = [part * ~starts[step, :, None] for part in memory]
            output, memory = self.step(x, memory)
            outputs.append(output)
        return torch.stack(outputs), *memory[1:], memory[0]


def run_segment(cell, inputs, memory, starts, by_torch=False):
    """Return outputs and memory of ``cell``, computed by the functions under test."""
    if isinstance(cell, torch.nn.LSTMCell):
        outputs, c = (lstm_by_torch if by_torch else lstm)(cell, inputs, *memory, starts)
        return outputs, c, outputs[-1]
    if isinstance(cell, torch.nn.GRUCell):
        outputs = (gru_by_torch if by_torch else gru)(cell, inputs, *memory, starts)
        return outputs, outputs[-1]
    return (mingru_by_torch if by_torch else mingru)(cell, inputs, *memory, starts)


def make_cell(name, dtype=torch.float32):
    torch.manual_seed(0)
    policy = make_policy(VECTOR, hidden_size=WIDTH, memory=name)
    cell = policy.cell
    for parameter in cell.parameters():
        torch.nn.init.normal_(parameter, std=0.4)
    return cell.to(dtype)


def make_arguments(cell, steps, rows, share_of_starts, dtype=torch.float32):
    generator = torch.Generator().manual_seed(steps)
    shapes = [(steps, rows, WIDTH), *[(rows, WIDTH)] * StepByStep(cell).size]
    inputs, *memory = (torch.randn(shape, generator=generator).to(dtype).requires_grad_() for shape in shapes)
    starts = torch.rand(steps, rows, generator=generator) < share_of_starts
    return inputs, memory, starts if share_of_starts else None


def outputs_and_gradients(run, cell, inputs, memory, starts):
    """Return outputs, last memory, and the gradients of a loss that depends on all of them."""
    made = run(inputs, memory, starts)
    generator = torch.Generator().manual_seed(1)
    loss = sum((part * torch.randn(part.shape, generator=generator)).sum() for part in made)
    return [*made, *torch.autograd.grad(loss, [inputs, *memory, *cell.parameters()])]


def assert_close(some, others, tolerance):
    for one, other in zip(some, others, strict=True):
        assert one.dtype == other.dtype
        assert (one - other).abs().max() <= tolerance * other.abs().max()


@pytest.mark.parametrize("by_torch", [False, True], ids=["kernels", "torch"])
@pytest.mark.parametrize(("steps", "rows", "share"), [(9, 5, 0.3), (5, 300, 0.0), (1, 3, 0.5)])
@pytest.mark.parametrize("name", MEMORIES)
def test_segment_matches_single_steps(name, steps, rows, share, by_torch):
    cell = make_cell(name)
    arguments = make_arguments(cell, steps, rows, share)
    ours = outputs_and_gradients(lambda *given: run_segment(cell, *given, by_torch), cell, *arguments)
    assert_close(ours, outputs_and_gradients(StepByStep(cell), cell, *arguments), 1e-5)


@pytest.mark.parametrize("name", once(MEMORIES, ["LSTM", "MinGRU"]))
def test_segment_of_a_thousand_steps_matches_single_steps(name):
    cell = make_cell(name)
    inputs, memory, starts = make_arguments(cell, 1024, 3, 0.01)
    starts[:, 0] = False  # one row is a single episode
    expected = outputs_and_gradients(StepByStep(cell), cell, inputs, memory, starts)
    for by_torch in (False, True):
        run = functools.partial(run_segment, cell, by_torch=by_torch)
        ours = outputs_and_gradients(run, cell, inputs, memory, starts)
        assert_close(ours, expected, 1e-5)


@pytest.mark.parametrize("name", MEMORIES)
def test_starts_separate_episodes(name):
    cell = make_cell(name)
    inputs, memory, _ = make_arguments(cell, 6, 4, 0.0)
    starts = torch.zeros(6, 4, dtype=torch.bool)
    starts[3] = True
    with torch.no_grad():
        outputs, *_ = run_segment(cell, inputs, memory, starts)
        expected, *_ = run_segment(cell, inputs[3:], [torch.zeros(4, WIDTH)] * len(memory), None)
    assert torch.equal(outputs[3:], expected)
    outputs, *_ = run_segment(cell, inputs, memory, starts)
    before, *_ = torch.autograd.grad(outputs[3:].sum(), inputs)
    assert (before[:3] == 0).all()
    assert (before[3:] != 0).any()


@pytest.mark.parametrize("name", MEMORIES)
def test_autocast_keeps_memory_and_gradients_in_float32(name):
    cell = make_cell(name)
    arguments = make_arguments(cell, 9, 50, 0.1)
    expected = outputs_and_gradients(StepByStep(cell), cell, *arguments)
    for by_torch in (False, True):
        with torch.autocast("cpu", torch.bfloat16):
            ours = outputs_and_gradients(functools.partial(run_segment, cell, by_torch=by_torch), cell, *arguments)
        assert_close(ours, expected, 0.03)
        assert not torch.equal(ours[0], expected[0])
    inputs, memory, starts = arguments
    with torch.autocast("cpu", torch.bfloat16):
        encoded = run_segment(cell, inputs.bfloat16(), memory, starts)
    assert_close(encoded, expected[: len(encoded)], 0.03)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("name", MEMORIES)
def test_cells_support_float64_and_bfloat16(name, dtype):
    cell = make_cell(name, dtype)
    arguments = make_arguments(cell, 4, 5, 0.2, dtype)
    ours = outputs_and_gradients(lambda *given: run_segment(cell, *given), cell, *arguments)
    assert_close(
        ours, outputs_and_gradients(StepByStep(cell), cell, *arguments), 1e-12 if dtype == torch.float64 else 0.05
    )


@pytest.mark.parametrize("name", MEMORIES)
def test_segment_supports_backward_twice(name):
    cell = make_cell(name)
    inputs, memory, starts = make_arguments(cell, 4, 5, 0.2)
    loss = run_segment(cell, inputs, memory, starts)[0].square().sum()
    first, second = (torch.autograd.grad(loss, [inputs, *cell.parameters()], retain_graph=True) for _ in range(2))
    assert all(torch.equal(*both) for both in zip(first, second, strict=True))


def test_linear_scan_passes_gradcheck():
    generator = torch.Generator().manual_seed(0)
    shapes = (5, 3), (5, 3), (3,)
    numbers = [torch.rand(shape, dtype=torch.float64, generator=generator).requires_grad_() for shape in shapes]
    assert torch.autograd.gradcheck(linear_scan, numbers)


def test_kernel_sigmoid_and_tanh_are_exact_to_1e_6():
    x = torch.cat([torch.linspace(-120, 120, 9601), torch.linspace(-2, 2, 4001), torch.tensor([torch.nan])])
    gates = torch.stack([x, x, x, x]).view(1, -1).contiguous()  # i, f, g and o of one row
    zeros, output, c = torch.zeros(len(x)), torch.empty(1, len(x)), torch.empty(1, len(x))
    _kernels.lstm_forward(gates, torch.zeros(4 * len(x)), zeros, c, output, None, None, None)
    i, _, g, _ = gates.view(4, -1)
    assert torch.allclose(i, x.double().sigmoid().float(), atol=1e-6, rtol=1e-6, equal_nan=True)
    assert torch.allclose(g, x.double().tanh().float(), atol=1e-6, equal_nan=True)


def test_kernels_refuse_wrong_tensors():
    rows = torch.zeros(2, 4)
    fits = [torch.zeros(2, 16), torch.zeros(16), rows, rows.clone(), rows.clone(), None, None, None]
    _kernels.lstm_forward(*fits)
    for at, wrong in ((0, torch.zeros(2, 12)), (1, torch.zeros(16).double()), (2, torch.zeros(4, 2).t())):
        with pytest.raises(ValueError, match=r"recurrent kernels: expected \d+ contiguous numbers torch\.float32"):
            _kernels.lstm_forward(*fits[:at], wrong, *fits[at + 1 :])


@pytest.mark.parametrize("name", MEMORIES)
def test_forward_eval_step_by_step_matches_forward(name):
    torch.manual_seed(0)
    policy = make_policy(VECTOR, hidden_size=8, memory=name)
    steps, rows = 6, 4
    observations, starts = torch.randn(steps, rows, 6), torch.rand(steps, rows) < 0.4
    first = {key: torch.randn(rows, 8) for key in policy.initial_state(rows)}
    params, values = policy(observations, first, starts)
    for row in range(rows):
        state = {key: memory[row : row + 1].clone() for key, memory in first.items()}
        for step in range(steps):
            if starts[step, row]:
                state = policy.initial_state(1)
            one_params, one_value = policy.forward_eval(observations[step, row : row + 1], state)
            assert torch.allclose(params[step, row], one_params[0], atol=1e-6)
            assert torch.allclose(values[step, row], one_value[0], atol=1e-6)


@pytest.mark.parametrize("name", MEMORIES)
def test_backward_cost_is_linear_in_steps(name):
    """If a segment indexed its inputs, autograd would fill an array of all steps at each step."""
    policy = make_policy(VECTOR, hidden_size=8, memory=name)

    def count_writes(steps):
        with CountWrites() as mode:
            starts = torch.zeros(steps, 256, dtype=torch.bool)
            params, values = policy(torch.zeros(steps, 256, 6), policy.initial_state(256), starts)
            (params.sum() + values.sum()).backward()
        return mode.numbers

    assert count_writes(64) - count_writes(32) <= 2.1 * (count_writes(32) - count_writes(16))


class CountWrites(TorchDispatchMode):
    """Mode that counts the numbers count_writes by operations."""

    numbers = 0

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        result = operation(*args, **(kwargs or {}))
        if not operation.is_view:
            self.numbers += sum(part.numel() for part in tree_leaves(result) if isinstance(part, torch.Tensor))
        return result


@pytest.mark.parametrize("name", MEMORIES)
def test_state_changes_outputs_within_an_episode(name):
    # With fewer units, the observation may activate none of them.
    policy = make_policy(VECTOR, hidden_size=64, memory=name)
    state = policy.initial_state(1)
    first, _ = policy.forward_eval(torch.ones(1, 6), state)
    second, _ = policy.forward_eval(torch.ones(1, 6), state)
    assert not torch.equal(first, second)
    assert torch.equal(policy.forward_eval(torch.ones(1, 6))[0], first)  # without a state, each step is a first one


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", MEMORIES)
def test_state_is_float32(name, dtype):
    policy = make_policy(VECTOR, hidden_size=8, memory=name)
    state = policy.initial_state(2)
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
        policy.forward_eval(torch.ones(2, 6), state)
    assert state.keys() == policy.initial_state(1).keys()
    assert all(memory.dtype == torch.float32 and memory.any() for memory in state.values())


def test_state_dict_names_match_old_checkpoints():
    policy = make_policy(VECTOR, hidden_size=8, memory="LSTM")
    cell = {f"cell.{part}_{where}" for part in ("weight", "bias") for where in ("ih", "hh")}
    assert policy.state_dict().keys() == cell | {f"policy.{name}" for name in Default(VECTOR).state_dict()}


def test_mingru_has_memory_layers():
    policy = make_policy(VECTOR, hidden_size=8, memory="MinGRU", memory_layers=3)
    assert list(policy.initial_state(2)) == ["mingru_h", "mingru_h1", "mingru_h2"]
    (policy(torch.rand(4, 2, 6))[1].sum()).backward()
    assert all(parameter.grad.any() for cell in (policy.cell, *policy.upper) for parameter in cell.parameters())


@pytest.mark.parametrize("wrapper", [LSTMWrapper, GRUWrapper, MinGRUWrapper])
def test_different_hidden_and_input_sizes_are_refused(wrapper):
    with pytest.raises(APIUsageError, match=f"{wrapper.__name__}: the policy's hidden_size 16 must equal input_size"):
        wrapper(VECTOR, Default(VECTOR, hidden_size=16))


def test_unknown_memory_is_refused():
    with pytest.raises(UnknownNameError, match="make_policy: unknown memory 'lstm'; known: GRU, LSTM, MinGRU, none"):
        make_policy(VECTOR, memory="lstm")


@pytest.mark.parametrize("name", ["snake", "nmmo3", "tactical"])
def test_policies_with_their_own_state_refuse_a_memory(name):
    with registry.env_creator(name)(num_envs=1) as env:
        message = f"MinGRUWrapper: the policy {name}.* does not support a recurrent network; .* or a policy that"
        with pytest.raises(APIUsageError, match=f"(?i){message}"):
            make_policy(env, load_config(name).policy.name, memory="MinGRU", more=registry.policies(name))
