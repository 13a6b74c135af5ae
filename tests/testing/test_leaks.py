"""Leaks are counted right whatever else the process does."""

import subprocess
import threading

from pufferlib.testing.leaks import open_handles


def test_open_handles_tolerates_ending_threads():
    stop = threading.Event()

    def come_and_go():
        while not stop.is_set():
            threading.Thread(target=stop.is_set).start()

    thread = threading.Thread(target=come_and_go)
    thread.start()
    try:
        for _ in range(1000):  # about every hundredth met one
            open_handles()
    finally:
        stop.set()
        thread.join()


def test_open_handles_counts_processes_of_all_threads():
    before = open_handles()["processes"]
    counted = []

    def begin_and_count():
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
            counted.append(open_handles()["processes"])

    thread = threading.Thread(target=begin_and_count)
    thread.start()
    thread.join()
    assert counted == [before + 1]
    assert open_handles()["processes"] == before
