"""adjoin.fx.annotate: a type for a value while its graph is traced."""

from .proxy import Proxy

__all__ = ["annotate"]


def annotate(val, type):
    """The value; a proxy's node keeps the type, which another may not replace."""
    if not isinstance(val, Proxy):
        return val
    if val.node.type:
        raise RuntimeError(
            f"annotate: {val.node} already has the type {val.node.type}; remove that annotation to set {type}"
        )
    val.node.type = type
    return val
