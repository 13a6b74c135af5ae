"""Tests of callbacks: order of events, stopping, state, and errors."""

import pytest
import torch

from pufferlib.errors import APIUsageError
from pufferlib.settings.config import load_config
from pufferlib.training.callbacks import Callback, for_other_ranks
from pufferlib.training.trainer import Trainer
from tests.loggers import ListLogger

SMALL = {
    "train.device": "cpu",
    "train.num_threads": 1,
    "train.total_timesteps": 512,
    "train.horizon": 16,
    "train.minibatch_size": 128,
    "train.checkpoint_interval": 3,
    "policy.hidden_size": 8,
}


class EventLog(Callback):
    """Callback that records the name and update of each event."""

    def __init__(self):
        self.events = []

    def on_training_start(self, trainer):
        self.events.append(("start", trainer.updates))

    def on_rollout_end(self, trainer):
        self.events.append(("rollout", trainer.updates))

    def on_update_end(self, trainer, metrics):
        assert metrics["update"] == trainer.updates
        self.events.append(("update", trainer.updates))

    def on_checkpoint(self, trainer, path):
        self.events.append(("checkpoint", int(path.name)))

    def on_training_end(self, trainer):
        assert trainer.vecenv.closed == 0
        self.events.append(("end", trainer.updates))


@pytest.fixture
def make_trainer(target_env, tmp_path):
    def make(*callbacks, loggers=(), **settings):
        config = load_config("breakout", SMALL | settings)
        return Trainer(config, tmp_path, loggers, vecenv=target_env(8), callbacks=callbacks)

    return make


def test_callbacks_run_in_event_order(make_trainer):
    log = EventLog()
    trainer = make_trainer(log)
    trainer.train()
    trainer.close()  # a second time
    steps = [[("rollout", update - 1), ("update", update)] for update in (1, 2, 3, 4)]
    assert log.events == [
        *[("start", 0), *steps[0], *steps[1], *steps[2], ("checkpoint", 3)],
        *[*steps[3], ("checkpoint", 4), ("end", 4)],
    ]


def test_callbacks_run_in_own_training_loop(make_trainer):
    log = EventLog()
    trainer = make_trainer(log)
    trainer.step()
    trainer.close()
    assert log.events == [("start", 0), ("rollout", 0), ("update", 1), ("end", 1)]


def test_function_callback_stops_training_with_reason_and_checkpoint(make_trainer):
    def enough(trainer, metrics):
        if metrics["update"] == 2:
            trainer.stop("two are enough")
            trainer.stop("this comes too late")

    trainer = make_trainer(enough)
    trainer.train()
    assert (trainer.updates, trainer.stop_reason) == (2, "two are enough")
    assert trainer.checkpoint_path.name == "000002"


def test_added_metrics_reach_loggers_and_later_callbacks(make_trainer):
    def first(trainer, metrics):
        metrics["mine"] = trainer.updates

    def second(trainer, metrics):
        metrics["mine"] *= 10

    logger = ListLogger()
    make_trainer(first, second, loggers=[logger]).train()
    assert [metrics["mine"] for metrics in logger] == [10, 20, 30, 40]


def test_request_checkpoint_saves_after_update(make_trainer):
    def ask(trainer, metrics):
        if trainer.updates == 2:
            trainer.request_checkpoint()

    log = EventLog()
    make_trainer(ask, log).train()
    assert [updates for kind, updates in log.events if kind == "checkpoint"] == [2, 3, 4]


@pytest.mark.parametrize("kind", [ZeroDivisionError, SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("hook", ["on_rollout_end", "on_update_end", "on_checkpoint", "on_training_end"])
def test_failing_callback_is_named_and_training_saves_checkpoint(make_trainer, hook, kind):
    def fail(self, trainer, *_):
        raise kind("mine")

    failing = type("Failing", (Callback,), {hook: fail})
    log = EventLog()
    trainer = make_trainer(failing(), log)
    with pytest.raises(kind, match="mine") as caught:
        trainer.train()
    updates = {"on_checkpoint": 3, "on_training_end": 4}.get(hook, 1)
    after = {"on_rollout_end": 0}.get(hook, updates)
    assert caught.value.__notes__[0] == f"raised by the callback Failing, {hook}, after update {after}"
    assert trainer.vecenv.closed == 1
    assert trainer.checkpoint_path.name == f"{updates:06}"
    assert log.events[-2:] == [("checkpoint", updates), ("end", updates)]


def test_callback_state_is_saved_in_checkpoint(make_trainer):
    class Count(Callback):
        seen = 0

        def on_update_end(self, trainer, metrics):
            self.seen += 1

        def state_dict(self):
            return {"seen": torch.tensor(self.seen)}

        def load_state_dict(self, state):
            self.seen = int(state["seen"]) * 10

    first = make_trainer(Count(), Count(), EventLog())
    first.train()
    counts = Count(), Count(), Count()
    resumed = make_trainer(EventLog(), *counts)
    resumed.restore(first.checkpoint_path)
    resumed.close()
    assert [each.seen for each in counts] == [40, 40, 0]


def test_callback_failing_at_start_leaves_no_files(make_trainer, tmp_path):
    class Failing(Callback):
        def on_training_start(self, trainer):
            raise ZeroDivisionError

    trainer = make_trainer(Failing())
    with pytest.raises(ZeroDivisionError):
        trainer.train()
    assert trainer.vecenv.closed == 1
    assert [*tmp_path.iterdir()] == []


def test_callback_error_in_own_loop_is_raised_after_update(make_trainer):
    trainer = make_trainer(lambda trainer, metrics: metrics["nothing"])
    with pytest.raises(KeyError) as caught:
        trainer.step()
    assert "the callback test_callback_error_in_own_loop" in caught.value.__notes__[0]
    assert trainer.updates == 1
    trainer.close()


class Misspelled(Callback):
    def on_update_ended(self, trainer, metrics):
        pass


class ForgottenReturn(Callback):
    def wrap_envs(self, vecenv, policy):
        pass


@pytest.mark.parametrize(
    ("callback", "sentence"),
    [
        (EventLog, "must be an object, got the class EventLog; call it first"),
        (3, "a function of trainer and metrics, or"),
        (Misspelled(), "callback Misspelled: unknown hook 'on_update_ended'; did you mean 'on_update_end'"),
        (ForgottenReturn(), r"ForgottenReturn\.wrap_envs must return the environments, got None"),
    ],
)
def test_invalid_callback_raises(make_trainer, callback, sentence):
    with pytest.raises(APIUsageError, match=sentence):
        make_trainer(callback)


def test_callback_that_wraps_envs_of_one_rank_raises():
    everywhere = ForgottenReturn()
    everywhere.every_rank = True
    assert for_other_ranks([EventLog(), print, everywhere]) == [everywhere]
    with pytest.raises(APIUsageError, match=r"the callback ForgottenReturn wraps the environments of rank 0 only"):
        for_other_ranks([ForgottenReturn()])
