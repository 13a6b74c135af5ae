"""The signals between a parent and its workers, here both in one process."""

import mmap
import os
import threading

import pytest

from pufferlib._native import Crew, Desk, crew_bytes, progress_at

STEP = 2


@pytest.fixture
def memory():
    return mmap.mmap(-1, crew_bytes(2))


def test_commands_go_out_and_completions_come_back(memory):
    crew = Crew(memory, 2, False, 0.1)
    desks = [Desk(memory, 2, worker, False, 0) for worker in range(2)]
    assert desks[0].wait(0.0) == 0
    crew.command_all(STEP)
    assert crew.in_flight == [0, 1]
    assert [desk.wait(0.0) for desk in desks] == [STEP, STEP]
    desks[1].finish(7)
    assert crew.choose(2)
    assert crew.chosen == [1]
    assert crew.outcome(1) == 7
    desks[0].finish(0)
    while not crew.wait(2, True):
        crew.find_late(10**12)
    crew.command_chosen(STEP)
    assert crew.in_flight == [0, 1]
    assert [crew.num_commands(worker) for worker in (0, 1)] == [1, 2]
    assert [crew.num_completed(worker) for worker in (0, 1)] == [1, 1]
    assert [desk.wait(0.0) for desk in desks] == [0, STEP]


def test_a_wait_that_could_never_end_is_refused(memory):
    with pytest.raises(RuntimeError, match="1 workers are waited for, and 0 are in flight"):
        Crew(memory, 2, False, 0.1).wait(1, True)


@pytest.mark.parametrize("fits", [True, False])
def test_a_sleeping_waiter_is_woken(memory, fits):
    crew, desk = Crew(memory, 2, fits, 0.1), Desk(memory, 2, 0, fits, 0)

    def work():
        for _ in range(200):
            assert desk.wait(60.0) == STEP
            desk.finish(0)

    worker = threading.Thread(target=work)
    worker.start()
    for step in range(200):
        if step % 20 == 0:
            threading.Event().wait(0.01)  # the worker falls asleep
        crew.command_all(STEP)
        while not crew.wait(1, True):
            crew.find_late(10**12)
    worker.join()
    assert crew.num_completed(0) == 200


def test_only_a_worker_that_stays_in_one_environment_is_late(memory):
    crew, desk = Crew(memory, 2, False, 0.1), Desk(memory, 2, 1, False, 0)
    progress = memoryview(memory)[progress_at(1) :][:4].cast("I")
    assert crew.find_late(0) == -1  # nobody has anything to do
    crew.command_all(STEP)
    desk.wait(0.0)
    Desk(memory, 2, 0, False, 0).finish(0)
    for position in range(5):
        progress[0] = position
        crew.find_late(0)
    assert crew.find_late(10**12) == -1
    assert crew.find_late(0) == 1
    desk.finish(0)


def test_workers_and_memory_are_checked(memory):
    with pytest.raises(ValueError, match="3 workers need 512 bytes, got 384"):
        Crew(memory[: crew_bytes(2)], 3, False, 0.1)
    with pytest.raises(IndexError, match="worker 2 of 2"):
        Desk(memory, 2, 2, False, 0)
    with pytest.raises(IndexError, match="worker -1 of 2"):
        Crew(memory, 2, False, 0.1).progress(-1)


def test_a_worker_leaves_a_core_that_another_is_on(memory):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    first, second = (Desk(memory, 2, worker, True, 0) for worker in range(2))
    try:
        os.sched_setaffinity(0, cores[:1])
        assert not first.spread()
        assert not second.spread()  # no other core is allowed
        for _ in range(1000):  # until the scheduler does not come between
            os.sched_setaffinity(0, cores[:1])
            first.spread()
            os.sched_setaffinity(0, cores)
            if second.spread():
                break
        else:
            pytest.fail("it never left")
        assert os.sched_getaffinity(0) == set(cores)
    finally:
        os.sched_setaffinity(0, cores)
