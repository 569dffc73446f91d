"""tests/python/toplevel/monitor_test.py: adjoin.monitor: windows of numbers, events and who hears of them."""

import datetime
import time

import adjoin
import pytest
from adjoin.monitor import Aggregation, Event, Stat, TensorboardEventHandler, log_event
from adjoin.monitor import register_event_handler, unregister_event_handler

HOUR = datetime.timedelta(hours=1)


@pytest.fixture
def heard():
    events = []
    handle = register_event_handler(events.append)
    yield events
    unregister_event_handler(handle)


def test_events_reach_handlers_until_they_leave(heard):
    event = Event("mine", datetime.datetime.now(), {"a": 1})
    handle = register_event_handler(heard.append)
    log_event(event)
    unregister_event_handler(handle)
    log_event(event)
    assert heard == [event] * 3


def test_a_window_ends_with_its_samples(heard):
    stat = Stat("loss", list(Aggregation), HOUR, 3)
    for value in (4, 1, 3):
        assert stat.get() == {}
        stat.add(value)
    wanted = {"VALUE": 3, "MEAN": 8 / 3, "COUNT": 3, "SUM": 8, "MAX": 4, "MIN": 1}
    assert stat.count == 0 and stat.get() == {Aggregation[k]: v for k, v in wanted.items()}
    (event,) = heard
    assert event.name == "torch.monitor.Stat" and event.data == {f"loss.{k.lower()}": v for k, v in wanted.items()}


def test_a_window_ends_with_its_time(heard):
    stat = Stat("loss", (Aggregation.SUM,), datetime.timedelta(milliseconds=20))
    stat.add(2)
    time.sleep(0.03)
    stat.add(5)
    assert heard[0].data == {"loss.sum": 2.0} and stat.name == "loss"
    with pytest.raises(ValueError, match="no aggregation"):
        Stat("x", (), HOUR)


def test_stats_become_scalars():
    class Writer(list):
        def add_scalar(self, name, value, walltime):
            self.append((name, value))

    writer = Writer()
    handle = register_event_handler(TensorboardEventHandler(writer))
    stat = Stat("loss", (Aggregation.SUM, Aggregation.COUNT), HOUR, 5)
    for i in range(10):
        stat.add(i)
    unregister_event_handler(handle)
    assert writer == [("loss.sum", 10.0), ("loss.count", 5.0), ("loss.sum", 35.0), ("loss.count", 5.0)]


def test_what_a_tensor_is_can_be_asserted():
    check = adjoin._assert_tensor_metadata
    x = adjoin.zeros(2, 3)
    check(x, [2, 3], (3, 1), adjoin.float32, device="cpu", layout=adjoin.strided)
    for wrong in (
        {"size": [3, 2]},
        {"stride": [1, 3]},
        {"dtype": adjoin.int8},
        {"device": "meta"},
        {"layout": adjoin.sparse_coo},
    ):
        with pytest.raises(RuntimeError, match=f"Tensor {next(iter(wrong))} mismatch"):
            check(x, **wrong)
