"""adjoin.utils.data.collate: a list of examples made into one batch."""

import collections.abc

import adjoin


def _is_array(value):
    return hasattr(value, "__array_interface__") and hasattr(value, "dtype")


def default_convert(data):
    """Arrays become tensors, at any depth of mappings and sequences; all else stays."""
    if isinstance(data, adjoin.Tensor):
        return data
    if _is_array(data):
        return data if data.dtype.kind in "SUO" else adjoin.as_tensor(data)
    return _rebuilt(data, default_convert)


def _rebuilt(data, convert):
    kind = type(data)
    if isinstance(data, collections.abc.Mapping):
        return _like(kind, {key: convert(value) for key, value in data.items()}, dict)
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(convert(value) for value in data))
    if isinstance(data, tuple):
        return [convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _like(kind, [convert(value) for value in data], list)
    return data


def _like(kind, data, plain):
    """``data`` as the container it came in, if that can be made from it."""
    if kind is plain:
        return data
    try:
        return kind(data)
    except TypeError:
        return data


def default_collate(batch):
    """Stacks a list of examples: tensors and arrays along a new first dimension, numbers into a
    tensor, mappings and sequences part by part; strings stay a list."""
    first = batch[0]
    if isinstance(first, adjoin.Tensor):
        return adjoin.stack(batch, 0)
    if _is_array(first):
        if first.dtype.kind in "SUO":
            raise TypeError(
                "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                "lists; "
                f"found {first.dtype}"
            )
        return adjoin.stack([adjoin.as_tensor(value) for value in batch], 0)
    if isinstance(first, float):
        return adjoin.tensor(batch, dtype=adjoin.float64)
    if isinstance(first, (bool, int)):
        return adjoin.tensor(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, collections.abc.Mapping):
        merged = {key: default_collate([example[key] for example in batch]) for key in first}
        return _like(type(first), merged, dict)
    if isinstance(first, collections.abc.Sequence):
        batch = list(batch)
        if any(len(example) != len(first) for example in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        parts = [default_collate(list(part)) for part in zip(*batch, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*parts) if hasattr(first, "_fields") else parts
        return _like(type(first), parts, list)
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {type(first)}"
    )
