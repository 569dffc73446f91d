"""adjoin.fx._pytree: nested arguments of a graph, taken apart by a shape that is known before."""

from ..utils import _pytree as pytree
from .proxy import Proxy

__all__ = ["register_pytree_flatten_spec", "tree_flatten_spec"]

SUPPORTED_NODES = {}


def register_pytree_flatten_spec(cls, flatten_fn_spec, flatten_fn_exact_match_spec=None):
    """``flatten_fn_spec(node, spec)`` gives the children of a node of ``cls``, as the shape wants them."""
    SUPPORTED_NODES[cls] = flatten_fn_spec


def tree_flatten_spec(pytree_, spec):
    """The leaves of a tree where the shape has leaves; below them the tree may be anything."""
    if spec.is_leaf():
        return [pytree_]
    if spec.type in SUPPORTED_NODES:
        children = SUPPORTED_NODES[spec.type](pytree_, spec)
    elif (
        isinstance(pytree_, dict)
        or isinstance(pytree_, Proxy)
        and isinstance(spec.type, type)
        and issubclass(spec.type, dict)
    ):
        children = [pytree_[key] for key in (spec.context[1] if spec.type.__name__ == "defaultdict" else spec.context)]
    elif isinstance(pytree_, Proxy):  # which does not know how many parts it has
        children = [pytree_[i] for i in range(spec.num_children)]
    else:
        children = pytree.SUPPORTED_NODES[spec.type].flatten_fn(pytree_)[0]
    kinds = spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs
    if len(children) != len(kinds):
        raise ValueError(f"an argument has {len(children)} parts, the traced one had {len(kinds)}; trace again for it")
    return [leaf for child, kind in zip(children, kinds, strict=True) for leaf in tree_flatten_spec(child, kind)]
