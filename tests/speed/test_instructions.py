"""Numbers of instructions of hot paths, which do not depend on the load of the machine."""

import pytest

from tests.speed import instructions
from tests.speed.instructions import advice, compare, merge, read_dump

DUMP = """\
# callgrind format
version: 1
part: 2

desc: Timerange: Basic block 0 - 45320888
desc: Trigger: Client Request: 64 ocean pong, 256 agents

positions: line
events: Ir
summary: 2820255

fn=(1) step
16 1000
calls=800 0
16 2000
totals: 2820255
"""


@pytest.mark.all
@pytest.mark.timeout(600)
def test_no_step_takes_more_instructions_than_recorded():
    if reason := instructions.why_not_here():
        pytest.skip(reason)
    expected, toolchain = instructions.recorded()
    if differences := compare(expected, instructions.count()):
        pytest.fail("\n".join([*differences, advice(toolchain, instructions.toolchain())]), pytrace=False)


def test_read_dump_returns_row_and_instructions_per_step():
    assert read_dump(DUMP) == ("ocean pong, 256 agents", 44066)


def test_read_dump_ignores_the_dump_at_program_end():
    assert read_dump(DUMP.replace("Client Request: 64 ocean pong, 256 agents", "Program termination")) is None


@pytest.mark.parametrize("counted", [970, 1000, 1030])
def test_compare_accepts_changes_up_to_three_percent(counted):
    assert compare({"update": 1000}, {"update": counted}) == []


@pytest.mark.parametrize(
    ("expected", "counted", "message"),
    [
        ({"step": 1000}, {"step": 1031}, "step: expected 1,000 instructions per step within 3%, counted 1,031 (+3.1%)"),
        ({"step": 1000}, {"step": 969}, "step: expected 1,000 instructions per step within 3%, counted 969 (-3.1%)"),
        ({}, {"step": 5}, "step: counted 5 instructions per step, and none are recorded"),
        ({"step": 5}, {}, "step: 5 instructions per step are recorded, and the row no longer exists"),
    ],
)
def test_compare_reports_rows_with_larger_changes(expected, counted, message):
    assert compare(expected, counted) == [message]


def test_merge_keeps_counts_within_three_percent():
    before = {"near": 1000, "slower": 1000, "faster": 1000, "removed": 1}
    assert merge(before, {"near": 1029, "slower": 1031, "faster": 900, "new": 7}) == {
        "near": 1000,
        "slower": 1031,
        "faster": 900,
        "new": 7,
    }


def test_advice_names_the_command_and_toolchain_changes():
    assert advice({"gcc": "12"}, {"gcc": "12"}).endswith(instructions.COMMAND)
    assert advice({"gcc": "12"}, {"gcc": "13"}).endswith("The toolchain has changed: gcc 12 is now 13.")
