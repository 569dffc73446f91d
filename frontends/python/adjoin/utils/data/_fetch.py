"""adjoin.utils.data._fetch: how keys become a batch, in the calling process and in workers alike."""

import itertools


class Exhausted(Exception):  # noqa: N818  (not an error)
    """An iterable data set has no more examples."""


def fetcher(dataset, is_iterable, batched, collate, drop_last):
    """A function of keys: a list of them, or a single one if not ``batched``."""
    if is_iterable:
        return _of_iterable(iter(dataset), batched, collate, drop_last)
    at_once = getattr(dataset, "__getitems__", None)
    if not batched:
        return lambda key: collate(dataset[key])
    if callable(at_once):
        return lambda keys: collate(at_once(keys))
    return lambda keys: collate([dataset[key] for key in keys])


def _of_iterable(examples, batched, collate, drop_last):
    ended = False

    def batch(keys):
        nonlocal ended
        found = [] if ended else list(itertools.islice(examples, len(keys)))
        ended = ended or len(found) < len(keys)
        if not found or (ended and drop_last):
            raise Exhausted
        return collate(found)

    def single(_):
        for example in examples:
            return collate(example)
        raise Exhausted

    return batch if batched else single
