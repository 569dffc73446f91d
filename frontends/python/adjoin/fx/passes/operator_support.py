"""adjoin.fx.passes.operator_support: which nodes of a graph a backend can run."""

import abc

from .tools_common import CALLABLE_NODE_OPS, get_node_target

__all__ = [
    "OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support",
]  # fmt: skip


class OperatorSupportBase(abc.ABC):
    """Says yes or no to a node."""

    @abc.abstractmethod
    def is_node_supported(self, submodules, node):
        """Whether the node can be run; ``submodules`` goes from paths to modules."""


class OperatorSupport(OperatorSupportBase):
    """Says yes to targets by name: ``{"torch.add": None, "_operator.add": (([float32], [float32]), {})}``.

    With None all dtypes are good; else there is a list of dtypes for each positional argument (None: any) and for each keyword.
    Dtypes are those of ``node.meta["tensor_meta"]``, which ShapeProp writes.
    """

    def __init__(self, support_dict=None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules, node):
        if node.op not in CALLABLE_NODE_OPS:
            return False
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        dtypes = self._support_dict[target]
        if dtypes is None:
            return True
        by_place, by_name = dtypes
        places = zip(by_place, node.args, strict=False)
        return all(good is None or _dtype(arg) in good for good, arg in places) and all(
            good is None or _dtype(node.kwargs.get(name)) in good for name, good in by_name.items()
        )


def _dtype(arg):
    meta = getattr(arg, "meta", {})
    return getattr(meta.get("tensor_meta"), "dtype", None) or meta.get("dtype")


class _ByFunction(OperatorSupportBase):
    def __init__(self, function):
        self.function = function

    def is_node_supported(self, submodules, node):
        return self.function(submodules, node)


def create_op_support(is_node_supported):
    """The one that a function of the modules and a node makes."""
    return _ByFunction(is_node_supported)


def chain(*op_support):
    """Says yes where all do."""
    return _ByFunction(lambda modules, node: all(one.is_node_supported(modules, node) for one in op_support))


def any_chain(*op_support):
    """Says yes where one does."""
    return _ByFunction(lambda modules, node: any(one.is_node_supported(modules, node) for one in op_support))


class OpSupports:
    """Some that others are chained with."""

    @classmethod
    def decline_if_input_dtype(cls, dtype):
        """Says no to a node that has an input of the dtype."""
        return _ByFunction(lambda _, node: all(_dtype(arg) != dtype for arg in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set):
        """Says no to nodes of these names."""
        return _ByFunction(lambda _, node: node.name not in disallow_set)
