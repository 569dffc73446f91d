"""adjoin.utils.tensorboard._curves: precision and recall by threshold, as TensorBoard's plugin "pr_curves" reads them."""

import adjoin

from . import _events, _pictures

_LEAST = 1e-7  # divisor of what nobody predicted


def counts(labels, predictions, thresholds, weights):
    """[6, thresholds]: true and false positives, true and false negatives, precision, recall, for each threshold from 0 to 1."""
    labels = _pictures.as_tensor(labels).reshape(-1).bool()
    predictions = _pictures.as_tensor(predictions).reshape(-1).double()
    if labels.shape != predictions.shape:
        raise ValueError(
            f"add_pr_curve: there are {labels.numel()} labels and {predictions.numel()} predictions; one prediction for each label is wanted"
        )
    if predictions.numel() and not (0 <= predictions.min() and predictions.max() <= 1):
        raise ValueError("add_pr_curve: predictions must be probabilities, in [0, 1]")
    weights = adjoin.ones_like(predictions) if weights is None else _pictures.as_tensor(weights).reshape(-1).double()
    places = (predictions * (thresholds - 1)).floor().long()

    def at_least(chosen):
        found = adjoin.zeros(thresholds, dtype=adjoin.float64).index_add(0, places, weights * chosen.double())
        return found.flip(0).cumsum(0).flip(0)

    tp, fp = at_least(labels), at_least(~labels)
    tn, fn = fp[0] - fp, tp[0] - tp
    return adjoin.stack([tp, fp, tn, fn, tp / (tp + fp).clamp(min=_LEAST), tp / (tp + fn).clamp(min=_LEAST)])


def value(table):
    """The message of six rows of numbers."""
    about = _events.block(1, "pr_curves") + _events.block(2, _events.integer(1, 0) + _events.integer(2, table.shape[1]))
    return _events.block(9, _events.block(1, about)) + _events.array(tuple(table.shape), table.reshape(-1).tolist())
