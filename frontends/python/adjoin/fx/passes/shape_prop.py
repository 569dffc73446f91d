"""adjoin.fx.passes.shape_prop: notes on every node the shape and dtype of what it gives."""

from typing import Any, NamedTuple

import adjoin

from ..interpreter import Interpreter
from ..node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]


class TensorMetadata(NamedTuple):
    """What is known of a tensor without its elements."""

    shape: Any
    dtype: Any
    requires_grad: bool
    stride: Any
    memory_format: Any
    is_quantized: bool
    qparams: dict


def _extract_tensor_metadata(result, include_contiguity=True):
    """The notes of one tensor."""
    form = None
    for each in (adjoin.contiguous_format, adjoin.channels_last, adjoin.channels_last_3d) if include_contiguity else ():
        fits = {adjoin.channels_last: 4, adjoin.channels_last_3d: 5}.get(each, result.dim()) == result.dim()
        if fits and result.is_contiguous(memory_format=each):
            form = each
            break
    return TensorMetadata(result.shape, result.dtype, result.requires_grad, result.stride(), form, False, {})


class ShapeProp(Interpreter):
    """``ShapeProp(gm).propagate(*inputs)`` runs the graph; after it ``node.meta["tensor_meta"]`` and
    ``node.meta["type"]`` tell of each result."""

    def __init__(self, gm, fake_mode=None):
        if fake_mode is not None:
            raise NotImplementedError(
                "ShapeProp(fake_mode=...): there are no fake tensors; give real ones of the shapes to propagate()"
            )
        super().__init__(gm)

    def run_node(self, n):
        result = super().run_node(n)
        found = False

        def note(x):
            nonlocal found
            if isinstance(x, adjoin.Tensor):
                found = True
                return _extract_tensor_metadata(x)
            return x

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Runs the graph and gives its result."""
        return super().run(*args)
