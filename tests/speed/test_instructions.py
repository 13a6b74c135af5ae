"""Hot paths take as many instructions as recorded, which no noise of the machine changes."""

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


def test_a_dump_gives_its_row_and_instructions_per_step():
    assert read_dump(DUMP) == ("ocean pong, 256 agents", 44066)


def test_the_dump_at_the_end_of_the_program_is_no_row():
    assert read_dump(DUMP.replace("Client Request: 64 ocean pong, 256 agents", "Program termination")) is None


@pytest.mark.parametrize("counted", [970, 1000, 1030])
def test_counts_within_three_percent_are_equal(counted):
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
def test_other_counts_are_reported_with_their_row(expected, counted, message):
    assert compare(expected, counted) == [message]


def test_recording_replaces_only_counts_that_are_not_within_three_percent():
    before = {"near": 1000, "slower": 1000, "faster": 1000, "removed": 1}
    assert merge(before, {"near": 1029, "slower": 1031, "faster": 900, "new": 7}) == {
        "near": 1000,
        "slower": 1031,
        "faster": 900,
        "new": 7,
    }


def test_the_advice_names_the_command_and_what_changed_in_the_toolchain():
    assert advice({"gcc": "12"}, {"gcc": "12"}).endswith(instructions.COMMAND)
    assert advice({"gcc": "12"}, {"gcc": "13"}).endswith("The toolchain has changed: gcc 12 is now 13.")
