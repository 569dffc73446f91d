"""tests/python/toplevel/loggers_test.py: _logging: which messages pass, by part and by artifact."""

import logging

import pytest
from adjoin import _logging


@pytest.fixture(autouse=True)
def all_off():
    yield
    _logging.set_logs()


def test_an_artifact_is_quiet_until_it_is_asked_for(caplog):
    log = _logging.getArtifactLogger("some.module", "recompiles")
    assert log.name == "some.module.__recompiles" and log is _logging.getArtifactLogger("some.module", "recompiles")
    with caplog.at_level(logging.DEBUG):  # even where all is heard
        log.warning("not yet")
        _logging.set_logs(recompiles=True)
        log.debug("now")
        later = _logging.getArtifactLogger("other.module", "recompiles")
        later.debug("later")
        _logging.getArtifactLogger("some.module", "graph_breaks").warning("another")
        _logging.set_logs(recompiles=False)
        log.warning("no more")
    assert caplog.messages == ["now", "later"]


def test_parts_have_levels_until_the_next_call():
    part, own = logging.getLogger("torch._dynamo"), logging.getLogger("a.module.of.mine")
    _logging.set_logs(dynamo=logging.INFO, modules={"a.module.of.mine": logging.ERROR})
    assert (part.level, own.level) == (logging.INFO, logging.ERROR)
    _logging.set_logs(all=logging.DEBUG, autograd=logging.ERROR)
    assert (part.level, own.level, logging.getLogger("torch").level) == (logging.NOTSET, logging.NOTSET, logging.DEBUG)
    assert part.getEffectiveLevel() == logging.DEBUG and logging.getLogger("torch.autograd").level == logging.ERROR


def test_wrong_names_and_levels_change_nothing():
    _logging.set_logs(recompiles=True, dynamo=logging.INFO)
    for error, words, text in (
        (TypeError, {"foo": 10}, "'foo'; parts are all, aot"),
        (ValueError, {"dynamo": True}, "log level for log dynamo: True"),
        (ValueError, {"recompiles": logging.DEBUG}, "Expected bool to enable artifact recompiles"),
        (ValueError, {"modules": {"x": 11}}, "log level for log x: 11"),
    ):
        with pytest.raises(error, match=text):
            _logging.set_logs(**words)
    assert logging.getLogger("torch._dynamo").level == logging.INFO
    assert _logging.getArtifactLogger("some.module", "recompiles").isEnabledFor(logging.DEBUG)
    with pytest.raises(ValueError, match="'nope' not registered"):
        _logging.getArtifactLogger("some.module", "nope")


def test_said_once_and_late(caplog):
    log, made = logging.getLogger("once"), []
    for _ in range(3):
        _logging.warning_once(log, "only once %d", 7)
    log.debug("%s", _logging.LazyString(made.append, 1))  # nobody hears it: it is not made
    log.warning("%s", _logging.LazyString(lambda a, b: a + b, "to", b="gether"))
    assert caplog.messages == ["only once 7", "together"] and made == []
