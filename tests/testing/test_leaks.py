"""Tests of open_handles while other threads run."""

import subprocess
import threading

from pufferlib.testing.leaks import open_handles


def test_open_handles_tolerates_ending_threads():
    stop = threading.Event()

    def start_threads():
        while not stop.is_set():
            threading.Thread(target=stop.is_set).start()

    thread = threading.Thread(target=start_threads)
    thread.start()
    try:
        for _ in range(1000):  # about every hundredth call meets an ending thread
            open_handles()
    finally:
        stop.set()
        thread.join()


def test_open_handles_counts_processes_of_all_threads():
    before = open_handles()["processes"]
    counted = []

    def start_and_count():
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE):
            counted.append(open_handles()["processes"])

    thread = threading.Thread(target=start_and_count)
    thread.start()
    thread.join()
    assert counted == [before + 1]
    assert open_handles()["processes"] == before
