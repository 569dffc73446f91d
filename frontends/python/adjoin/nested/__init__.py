"""adjoin.nested: batches of tensors of unlike size, without padding.

``layout=torch.jagged``: one dimension is ragged; values stand one after the other, and offsets say where each sequence begins.
The default layout keeps a list of whole sizes; it serves programs that were written for it, part by part.
"""

from .. import _C
from ._jagged import NestedTensor, wrap
from ._ragged import Ragged, from_lengths

_op = _C.find_op


def _parts(tensor_list, dtype, device):
    if isinstance(tensor_list, NestedTensor):
        tensor_list = list(tensor_list.unbind())
    if isinstance(tensor_list, _C.Tensor):
        tensor_list = list(tensor_list.unbind()) if tensor_list.dim() else None
    if not isinstance(tensor_list, (list, tuple)):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [t if isinstance(t, _C.Tensor) else _C.tensor(t, dtype=dtype, device=device) for t in tensor_list]
    if dtype is not None or device is not None:
        parts = [t.to(dtype=dtype, device=device) for t in parts]
    if len({t.dtype for t in parts}) > 1:
        raise RuntimeError(
            f"nested tensor: all tensors must have one dtype, there are {sorted({str(t.dtype) for t in parts})}"
        )
    if len({t.dim() for t in parts}) > 1:
        raise RuntimeError("When constructing a nested tensor, all tensors in list must have the same dim")
    return parts


def _ragged_dim(parts):
    """The dimension, the batch counted, in which the parts differ; 1 if none."""
    if not parts:
        raise RuntimeError("Cannot construct a nested tensor from an empty tensor list")
    if not parts[0].dim():
        raise RuntimeError("Cannot construct a nested tensor from a list of zero-dim tensors")
    unlike = [d for d in range(parts[0].dim()) if len({t.shape[d] for t in parts}) > 1]
    if len(unlike) > 1:
        raise RuntimeError(
            f"nested tensor: the tensors differ in the dimensions {[d + 1 for d in unlike]}, the jagged layout has one ragged one; "
            "use layout=torch.strided"
        )
    return (unlike or [0])[0] + 1


def _joined(parts):
    at = _ragged_dim(parts)
    lengths = _C.tensor([t.shape[at - 1] for t in parts], dtype=_C.int64, device=parts[0].device)
    return wrap(_op("cat")(parts, at - 1), from_lengths(lengths), at)


def _in_rows(tensor):
    """The sequences of a tensor, all of one length; its own memory where it lies in one piece."""
    n, length = tensor.shape[:2]
    lengths = _op("full")((n,), length, dtype=_C.int64, device=tensor.device)
    return wrap(tensor.flatten(0, 1), from_lengths(lengths), 1)


def _layout(layout):
    if layout not in (None, _C.strided, _C.jagged):
        raise RuntimeError(
            f"Specified layout is unsupported for nested tensors: {layout}; use torch.jagged or torch.strided"
        )
    return layout is _C.jagged


def nested_tensor(tensor_list, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False):
    """A nested tensor with copies of the tensors of a list; a leaf."""
    jagged = _layout(layout)
    if isinstance(tensor_list, _C.Tensor):
        raise TypeError("Only lists (List[Tensor] and List[List...[Scalar]]) are accepted in nested_tensor")
    parts = [t.detach() for t in _parts(tensor_list, dtype, device)]
    if jagged:
        made = _joined(parts).detach()
    else:
        from ._strided import joined

        made = joined(parts).detach()
    return made.requires_grad_() if requires_grad else made


def as_nested_tensor(ts, dtype=None, device=None, layout=None):
    """A nested tensor of the tensors of a list; gradients go to them. A tensor's parts are those along its first dimension."""
    jagged = _layout(layout)
    if getattr(ts, "is_nested", False):
        return ts if dtype is None and device is None else ts.to(dtype=dtype, device=device)
    if isinstance(ts, _C.Tensor):
        if ts.dim() < 2:
            raise RuntimeError(
                f"as_nested_tensor(): Expected tensor argument to have dim() > 1, it has {ts.dim()}: its parts are those along the first "
                "dimension; give a list of tensors"
            )
        if jagged:
            return _in_rows(ts if dtype is None and device is None else ts.to(dtype=dtype, device=device))
    parts = _parts(ts, dtype, device)
    if jagged:
        return _joined(parts)
    from ._strided import joined

    return joined(parts)


def nested_tensor_from_jagged(values, offsets=None, lengths=None, jagged_dim=None, min_seqlen=None, max_seqlen=None):
    """The nested tensor of values whose dimension jagged_dim - 1 has the sequences; it shares their memory.

    ``offsets`` say where each begins, and where the last one ends; ``lengths`` with them, how long each is: values lie between them
    then. ``lengths`` alone: one after the other.
    """
    if offsets is None and lengths is None:
        raise RuntimeError("nested_tensor_from_jagged(): At least one of offsets or lengths is required.")
    if not isinstance(values, _C.Tensor):
        raise TypeError(f"nested_tensor_from_jagged(): values must be a Tensor, not {type(values).__name__}")
    at = 1 if jagged_dim is None else jagged_dim
    if not 1 <= at <= values.dim():
        raise RuntimeError(f"nested_tensor_from_jagged(): jagged_dim must be between 1 and {values.dim()}, it is {at}")
    ragged = from_lengths(lengths) if offsets is None else Ragged(offsets, lengths)
    return wrap(values, ragged.check(values, at), at)


def narrow(tensor, dim, start, length, layout=None):
    """tensor[:, start[i] : start[i] + length[i]] for each i of the first dimension, as a view; dim is 1."""
    if dim != 1:
        raise RuntimeError(f"narrow: dim must be 1, it is {dim}")
    if layout is not _C.jagged:
        if not isinstance(start, int) or not isinstance(length, int):
            raise RuntimeError("start and length must be integers for the strided layout NT impl")
        return as_nested_tensor([row.narrow(0, start, length) for row in tensor.unbind()], layout=layout)
    n, most = tensor.shape[:2]

    def each(number, what):
        if isinstance(number, int):
            return _op("full")((n,), number, dtype=_C.int64, device=tensor.device)
        if tuple(number.shape) != (n,):
            raise RuntimeError(
                f"narrow: {what} must be a number or have one for each of {n}, its shape is {tuple(number.shape)}"
            )
        return number.long()

    start, length = each(start, "start"), each(length, "length")
    if bool((start < 0).any()) or bool((length < 0).any()) or bool((start + length > most).any()):
        raise IndexError(f"narrow: start and length must stay within {most}: {start.tolist()} and {length.tolist()}")
    begins = start + _op("arange")(n, device=tensor.device) * most
    last = begins[-1:] + length[-1:] if n else begins
    ragged = Ragged(_op("cat")([begins, last]), length)
    values = tensor.flatten(0, 1)
    return wrap(values, ragged.check(values, 1), 1)


def to_padded_tensor(input, padding, output_size=None, out=None):
    """A dense tensor with ``padding`` after the end of each part."""
    made = input.to_padded_tensor(padding, output_size)
    return made if out is None else out.resize_(made.shape).copy_(made)


def masked_select(tensor, mask):
    """The elements under the mask, one sequence for each row of the last dimension; the ragged dimension is the last."""
    if tensor.layout is not _C.strided:
        raise RuntimeError(f"masked_select requires a strided tensor, given {tensor.layout}")
    if mask.layout is not _C.strided:
        raise RuntimeError(f"masked_select requires a strided mask, given {mask.layout}")
    tensor, mask = _op("broadcast_tensors")([tensor, mask])
    lengths = mask.sum(-1).reshape(-1)
    values = tensor.masked_select(mask)
    return wrap(values, from_lengths(lengths), 1)


__all__ = [
    "as_nested_tensor",
    "masked_select",
    "narrow",
    "nested_tensor",
    "nested_tensor_from_jagged",
    "to_padded_tensor",
]
