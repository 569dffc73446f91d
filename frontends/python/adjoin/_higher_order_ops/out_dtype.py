"""adjoin._higher_order_ops.out_dtype: an op computed in a dtype that is wider than its operands'."""

import adjoin

from .._op_overload import OpOverload


def out_dtype(op, output_dtype, *args):
    """``op(*args)`` with a result of ``output_dtype``, without a loss on the way: ``out_dtype(aten.mm.default, int32, a, b)`` of
    int8 matrices sums in int32."""
    if not isinstance(op, OpOverload):
        raise ValueError(
            f"out_dtype's first argument must be an OpOverload, not {type(op).__name__}: torch.ops.aten.mm.default"
        )
    if op._schema.is_mutable:
        raise ValueError(f"out_dtype: {op} writes an argument; take the op that does not")

    def wide(x):
        if not isinstance(x, adjoin.Tensor):
            return x
        return x.to(adjoin.promote_types(x.dtype, output_dtype))

    return op(*map(wide, args)).to(output_dtype)
