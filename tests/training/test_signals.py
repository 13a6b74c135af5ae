"""Tests of signals that end a training."""

import os
import signal

import pytest

from pufferlib.machine.signals import deferred, ending_signals, signals_exit


def test_first_signal_is_deferred_and_second_is_not():
    with signals_exit(), deferred(*ending_signals()) as came:
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


def test_ignored_sighup_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals_exit(), deferred(*ending_signals()) as came:
            os.kill(os.getpid(), signal.SIGHUP)
        assert came == []
    finally:
        signal.signal(signal.SIGHUP, before)
