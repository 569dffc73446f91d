"""adjoin._dynamo._trace_wrapped_higher_order_op: a mode in which an index that is a tensor stays one."""

from ..overrides import BaseTorchFunctionMode


class TransformGetItemToIndex(BaseTorchFunctionMode):
    """``with TransformGetItemToIndex():`` changes nothing: ``x[i]`` of a tensor i is an op here anyway."""
