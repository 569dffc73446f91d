"""adjoin._out: a result that was made apart goes into the tensors of out=."""

import warnings

from . import _C


_ROWS = {"arange", "linspace", "logspace", "range"}  # an out= of another shape with as many elements keeps it


def put(name, made, out):
    """Writes results into out, each of which takes the shape of its result; returns out."""
    several = isinstance(made, tuple)
    results, targets = made if several else (made,), out if isinstance(out, (tuple, list)) else (out,)
    if len(results) != len(targets):
        raise TypeError(f"{name}: out= has {len(targets)} tensors for {len(results)} results; give one for each")
    if several:  # one that lies in the memory of another's out= would be read after it is written
        written = {t.untyped_storage().data_ptr() for t in targets if isinstance(t, _C.Tensor)}
        results = [r.clone() if r.untyped_storage().data_ptr() in written else r for r in results]
    for result, target in zip(results, targets, strict=True):
        _put_one(name, result, target)
    return type(made)(tuple(targets)) if several else out


def _put_one(name, result, target):
    if not isinstance(target, _C.Tensor):
        raise TypeError(f"{name}: argument 'out' must be Tensor, not {type(target).__name__}")
    if result.requires_grad or target.requires_grad:
        raise RuntimeError(
            f"{name}: out= cannot be differentiated, and a tensor requires grad; use no_grad() or drop out="
        )
    if not _C.can_cast(result.dtype, target.dtype):
        raise RuntimeError(
            f"{name}: result type {result.dtype} can't be cast to the desired output type {target.dtype}"
        )
    if name.partition(".")[0] in _ROWS and target.numel() == result.numel():
        result = result.view(target.shape)
    if target.shape != result.shape:
        if target.layout is not _C.strided:
            raise RuntimeError(
                f"{name}: out= of layout {target.layout} has shape {list(target.shape)} and the result {list(result.shape)}; give one of "
                "that shape: only strided tensors are resized"
            )
        if target.numel():
            warnings.warn(
                f"{name}: out= has shape {list(target.shape)} and takes the result's, {list(result.shape)}; its memory may change: An output with one or more "
                "elements was resized. "
                "Give an out of that shape, or one that is empty: out.resize_(0)",
                stacklevel=3,
            )
        target.resize_(result.shape)
    try:
        target.copy_(result)
    except NotImplementedError as error:
        raise NotImplementedError(f"{name}: out= cannot be written: {error}") from None
