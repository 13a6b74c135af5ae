"""Signals between a parent and its workers. Here both ends are in one process."""

import mmap
import os
import threading

import numpy as np
import pytest

from pufferlib.vector.multiprocessing._channel import WorkerChannel, WorkerEnd, channel_bytes, progress_at
from pufferlib.vector.multiprocessing.shared_memory import Mailbox

STEP = 2


@pytest.fixture
def memory():
    return mmap.mmap(-1, channel_bytes(2))


def test_commands_reach_workers_and_completions_reach_the_parent(memory):
    channel = WorkerChannel(memory, 2, False, 0.1)
    worker_ends = [WorkerEnd(memory, 2, worker, False, 0) for worker in range(2)]
    assert worker_ends[0].wait(0.0) == 0
    channel.command_all(STEP)
    assert channel.in_flight == [0, 1]
    assert [worker_end.wait(0.0) for worker_end in worker_ends] == [STEP, STEP]
    worker_ends[1].finish(7)
    assert channel.choose(2)
    assert channel.chosen == [1]
    assert channel.outcome(1) == 7
    worker_ends[0].finish(0)
    while not channel.wait(2, True):
        channel.find_late(10**12)
    channel.command_chosen(STEP)
    assert channel.in_flight == [0, 1]
    assert [channel.operation(worker) for worker in (0, 1)] == [STEP, STEP]
    assert [worker_end.wait(0.0) for worker_end in worker_ends] == [0, STEP]


def test_waiting_for_more_workers_than_are_in_flight_raises(memory):
    with pytest.raises(RuntimeError, match="cannot wait for 1 workers, only 0 are in flight"):
        WorkerChannel(memory, 2, False, 0.1).wait(1, True)


@pytest.mark.parametrize("fits", [True, False])
def test_command_wakes_a_sleeping_worker(memory, fits):
    channel, worker_end = WorkerChannel(memory, 2, fits, 0.1), WorkerEnd(memory, 2, 0, fits, 0)

    def work():
        for _ in range(200):
            operations.append(worker_end.wait(60.0))
            worker_end.finish(0)

    operations = []
    worker = threading.Thread(target=work)
    worker.start()
    for step in range(200):
        if step % 20 == 0:
            threading.Event().wait(0.01)  # long enough for the worker to fall asleep
        channel.command_all(STEP)
        while not channel.wait(1, True):
            channel.find_late(10**12)
    worker.join()
    assert operations == [STEP] * 200


def test_find_late_returns_workers_that_stay_in_one_environment(memory):
    channel, worker_end = WorkerChannel(memory, 2, False, 0.1), WorkerEnd(memory, 2, 1, False, 0)
    progress = memoryview(memory)[progress_at(1) :][:4].cast("I")
    assert channel.find_late(0) == -1  # no worker is in flight
    channel.command_all(STEP)
    worker_end.wait(0.0)
    WorkerEnd(memory, 2, 0, False, 0).finish(0)
    for position in range(5):
        progress[0] = position
        channel.find_late(0)
    assert channel.find_late(10**12) == -1
    assert channel.find_late(0) == 1
    worker_end.finish(0)


def test_wrong_worker_numbers_and_memory_sizes_raise(memory):
    with pytest.raises(ValueError, match="3 workers need 512 bytes, got 384"):
        WorkerChannel(memory[: channel_bytes(2)], 3, False, 0.1)
    with pytest.raises(IndexError, match="worker 2 of 2"):
        WorkerEnd(memory, 2, 2, False, 0)
    with pytest.raises(IndexError, match="worker -1 of 2"):
        WorkerChannel(memory, 2, False, 0.1).progress(-1)


def test_worker_leaves_a_core_shared_with_another_worker(memory):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores")
    first, second = (WorkerEnd(memory, 2, worker, True, 0) for worker in range(2))
    try:
        os.sched_setaffinity(0, cores[:1])
        assert not first.leave_shared_core()
        assert not second.leave_shared_core()  # no other core is allowed
        for _ in range(1000):  # repeated because the scheduler may move the process first
            os.sched_setaffinity(0, cores[:1])
            first.leave_shared_core()
            os.sched_setaffinity(0, cores)
            if second.leave_shared_core():
                break
        else:
            pytest.fail("the worker never left the shared core")
        assert os.sched_getaffinity(0) == set(cores)
    finally:
        os.sched_setaffinity(0, cores)


def test_mailbox_holds_one_short_message():
    shared = np.zeros(64, np.uint8)
    ours, theirs = Mailbox(shared), Mailbox(shared)
    assert theirs.take() is None
    assert ours.put(b"a message")
    assert bytes(theirs.take()) == b"a message"
    assert ours.take() is None
    assert theirs.put(bytes(60))
    assert not ours.put(bytes(61)), "a longer message must go through the pipe"
    assert len(ours.take()) == 60
