"""adjoin.utils.data.collate: a list of examples made into one batch."""

import collections.abc
import contextlib
import copy

import adjoin

_shared_memory = False  # whether stacks are made where another process sees them


@contextlib.contextmanager
def into_shared_memory():
    """Within it, batches are made in memory that another process will look at: it need not be copied there."""
    global _shared_memory
    before, _shared_memory = _shared_memory, True
    try:
        yield
    finally:
        _shared_memory = before


def _stack(tensors):
    tensors = list(tensors)
    if _shared_memory and adjoin._C.stack_into(None, tensors) is not None:
        from ..._shared import empty

        made = empty((len(tensors), *tensors[0].shape), tensors[0].dtype)
        adjoin._C.stack_into(made.data_ptr(), tensors)
        return made
    return adjoin.stack(tensors, 0)


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
        return _as_mapping(data, {key: convert(value) for key, value in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return kind(*(convert(value) for value in data))
    if isinstance(data, tuple):
        return [convert(value) for value in data]
    if isinstance(data, collections.abc.Sequence) and not isinstance(data, (str, bytes)):
        return _as_sequence(data, [convert(value) for value in data])
    return data


def _like(kind, data, plain):
    """``data`` as the container it came in, if that can be made from it."""
    if kind is plain:
        return data
    try:
        return kind(data)
    except TypeError:
        return data


def collate_tensor_fn(batch, *, collate_fn_map=None):
    """Tensors of one size, along a new first dimension."""
    try:
        return _stack(batch)
    except RuntimeError as error:
        if len({tensor.shape for tensor in batch}) == 1:
            raise
        raise RuntimeError(f"{error}; examples of one batch must agree: give a collate_fn that makes them so") from None


def collate_numpy_array_fn(batch, *, collate_fn_map=None):
    """Arrays and NumPy's numbers, along a new first dimension."""
    if batch[0].dtype.kind in "SUO":
        raise TypeError(_found(batch[0].dtype))
    return _stack([adjoin.as_tensor(value) for value in batch])


def collate_float_fn(batch, *, collate_fn_map=None):
    """Floats, in double precision."""
    return adjoin.tensor(batch, dtype=adjoin.float64)


def collate_int_fn(batch, *, collate_fn_map=None):
    """Ints, or bools."""
    return adjoin.tensor(batch)


def collate_str_fn(batch, *, collate_fn_map=None):
    """Strings stay a list."""
    return batch


default_collate_fn_map = {
    adjoin.Tensor: collate_tensor_fn,
    float: collate_float_fn,
    int: collate_int_fn,
    str: collate_str_fn,
    bytes: collate_str_fn,
}


def _found(what):
    return f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {what}"


def collate(batch, *, collate_fn_map=None):
    """A batch of a list of examples: ``collate_fn_map`` says how, by type; a class also serves its subclasses.

    Its functions are called as ``function(batch, collate_fn_map=collate_fn_map)``. Mappings and
    sequences are collated part by part.
    """
    first, known = batch[0], collate_fn_map or {}
    kind = type(first)
    found = kind if kind in known else next((k for k in known if isinstance(first, k)), None)
    if found is not None:
        return known[found](batch, collate_fn_map=collate_fn_map)
    if known is default_collate_fn_map and _is_array(first):
        return collate_numpy_array_fn(batch)
    if isinstance(first, collections.abc.Mapping):
        merged = {key: collate([example[key] for example in batch], collate_fn_map=known) for key in first}
        return _as_mapping(first, merged)
    if not isinstance(first, collections.abc.Sequence):
        raise TypeError(_found(kind))
    batch = list(batch)
    if any(len(example) != len(first) for example in batch):
        raise RuntimeError("each element in list of batch should be of equal size")
    parts = [collate(part, collate_fn_map=known) for part in zip(*batch, strict=True)]
    if isinstance(first, tuple):
        return kind(*parts) if hasattr(first, "_fields") else parts
    return _as_sequence(first, parts)


def _as_mapping(first, merged):
    """What was merged in a mapping like the first example, with what else that one holds."""
    if type(first) is dict:
        return merged
    if isinstance(first, collections.abc.MutableMapping):
        with contextlib.suppress(TypeError):
            made = copy.copy(first)
            made.update(merged)
            return made
    return _like(type(first), merged, dict)


def _as_sequence(first, parts):
    if type(first) is not list and isinstance(first, collections.abc.MutableSequence):
        with contextlib.suppress(TypeError):
            made = copy.copy(first)
            for i, part in enumerate(parts):
                made[i] = part
            return made
    return _like(type(first), parts, list)


def default_collate(batch):
    """Stacks a list of examples: tensors and arrays along a new first dimension, numbers into a
    tensor, mappings and sequences part by part; strings stay a list."""
    return collate(batch, collate_fn_map=default_collate_fn_map)
