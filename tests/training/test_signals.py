"""Tests of signals that end a training."""

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys

import pytest

from pufferlib.machine.signals import ENDING_SIGNALS, deferred, signals_exit


def test_first_signal_is_deferred_and_second_is_not():
    with signals_exit(), deferred(*ENDING_SIGNALS) as came:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(SystemExit, match="129"):
            os.kill(os.getpid(), signal.SIGHUP)
    assert came == [signal.SIGHUP, signal.SIGTERM]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_ending_signals_exit_with_their_number(number, code):
    before = signal.getsignal(number)
    with pytest.raises(SystemExit, match=str(code)), signals_exit():
        os.kill(os.getpid(), number)
    assert signal.getsignal(number) is before


def wait_for_signals(ready):
    ready.set()
    while True:
        signal.pause()


def both():
    with contextlib.ExitStack() as stack:
        stack.enter_context(signals_exit())
        stack.enter_context(deferred(*ENDING_SIGNALS))
        return stack.pop_all()


@pytest.fixture
def default_sigterm():
    """Set the default handler of SIGTERM, which Ray replaces in tests before."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("default_sigterm")
@pytest.mark.parametrize("context", [signals_exit, lambda: deferred(*ENDING_SIGNALS), both])
def test_processes_that_are_forked_meanwhile_can_be_terminated(context):
    fork = multiprocessing.get_context("fork")
    ready = fork.Event()
    with context():
        child = fork.Process(target=wait_for_signals, args=(ready,))
        child.start()
        try:
            assert ready.wait(60)
            child.terminate()
            child.join(10)
            assert child.exitcode == -signal.SIGTERM
        finally:
            child.kill()
            child.join()


def test_a_signal_right_after_the_fork_ends_the_new_process():
    program = """
import os, signal
os.register_at_fork(after_in_child=lambda: os.kill(os.getpid(), signal.SIGTERM))
from pufferlib.machine.signals import signals_exit
with signals_exit():
    child = os.fork()
    if child == 0:
        os._exit(0)
    print(os.waitpid(child, 0)[1])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (int(done.stdout), done.stderr) == (signal.SIGTERM, "")


def test_a_forked_process_passes_its_own_handlers_on_and_may_leave_the_context():
    def own(number, frame): ...

    parent = os.getpid()
    status = left = 1
    try:
        with signals_exit():
            child = os.fork()
            if child == 0:
                signal.signal(signal.SIGTERM, own)
                if os.fork() == 0:
                    os._exit(signal.getsignal(signal.SIGTERM) is not own)
                status = os.wait()[1]
        left = 0
    finally:
        if os.getpid() != parent:
            os._exit(status != 0 or left)
    assert os.waitpid(child, 0)[1] == 0


def test_forked_processes_do_not_report_a_deferred_signal():
    reports = []
    with deferred(signal.SIGINT, then=lambda: reports.append(os.getpid())) as came:
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGINT)
                os._exit(len(reports) + len(came))
            finally:
                os._exit(100)
        assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT])
def test_ignored_signals_stay_ignored(number):
    """``nohup`` ignores SIGHUP. A script that starts a training with ``&`` ignores SIGINT."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with signals_exit(), deferred(signal.SIGINT, *ENDING_SIGNALS) as came:
            os.kill(os.getpid(), number)
        assert came == []
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)
