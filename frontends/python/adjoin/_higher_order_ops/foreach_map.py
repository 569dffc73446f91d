"""adjoin._higher_order_ops.foreach_map: a function of each tensor of lists."""

__all__ = ["foreach_map"]


def foreach_map(op, *operands, **kwargs):
    """``op(a[i], b[i], c, **kwargs)`` for each place of the lists a and b among the operands; what is no list is the same each time."""
    lengths = {len(o) for o in operands if isinstance(o, (list, tuple))}
    if len(lengths) != 1:
        found = "no list is there" if not lengths else f"they have {sorted(lengths)} elements"
        raise ValueError(f"foreach_map: operands must be lists of one length; {found}")
    return [
        op(*(o[i] if isinstance(o, (list, tuple)) else o for o in operands), **kwargs) for i in range(lengths.pop())
    ]
