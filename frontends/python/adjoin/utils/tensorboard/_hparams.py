"""adjoin.utils.tensorboard._hparams: the three values that TensorBoard's table of hyperparameters reads."""

from . import _events

_TEXT, _BOOL, _NUMBER = 1, 2, 3


def _told(name, value):
    """(its kind in the table, the value as a message)."""
    if isinstance(value, bool):
        return _BOOL, _events.integer(4, value)
    if isinstance(value, str):
        return _TEXT, _events.block(3, value)
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):
        raise ValueError(
            f"add_hparams: {name!r} is {value!r}; a number, a text, a bool or a tensor of one number is wanted"
        ) from None
    return _NUMBER, _events.double(2, number)


def _value(part, field, content):
    """A value of the table: version 0 of its format, and the message in its field."""
    about = _events.block(1, "hparams") + _events.block(2, _events.integer(1, 0) + _events.block(field, content))
    return "_hparams_/" + part, _events.block(9, _events.block(1, about))


def values(hparams, metrics, discrete=None):
    """(tag, content) of the table's columns, of the run's own numbers, and of its end."""
    discrete = discrete or {}
    told = {name: _told(name, value) for name, value in hparams.items() if value is not None}
    for name, wanted in discrete.items():
        if name not in hparams or not isinstance(wanted, list):
            raise ValueError(
                f"add_hparams: hparam_domain_discrete[{name!r}] must be a list of values of a known hyperparameter"
            )
    columns = b""
    for name, (kind, _) in told.items():
        column = _events.block(1, name) + _events.integer(4, kind)
        if name in discrete:
            column += _events.block(5, b"".join(_events.block(1, _told(name, v)[1]) for v in discrete[name]))
        columns += _events.block(4, column)
    columns += b"".join(_events.block(5, _events.block(1, _events.block(2, name))) for name in metrics)
    # A map is a list of pairs.
    pairs = b"".join(
        _events.block(1, _events.block(1, name) + _events.block(2, message)) for name, (_, message) in told.items()
    )
    return (
        _value("experiment", 2, columns),
        _value("session_start_info", 3, pairs),
        _value("session_end_info", 4, _events.integer(1, 1)),
    )
