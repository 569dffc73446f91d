"""adjoin.utils._pytree: nested lists, tuples and dictionaries as their leaves and a shape; nothing else is a node."""

from collections import OrderedDict, defaultdict


class TreeSpec:
    """The shape of a tree: ``children`` of a node of a ``type``, or a leaf (type None)."""

    def __init__(self, type=None, context=None, children_specs=()):
        self.type, self.context, self.children_specs = type, context, list(children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in children_specs)

    def is_leaf(self):
        """Whether it is a leaf's."""
        return self.type is None

    def __eq__(self, other):
        return isinstance(other, TreeSpec) and vars(self) == vars(other)

    __hash__ = None

    def __repr__(self):
        if self.type is None:
            return "*"
        return f"TreeSpec({self.type.__name__}, {self.context}, {self.children_specs})"


def _children(tree):
    """(children, context) of a node, or None of a leaf."""
    if type(tree) in (list, tuple):
        return list(tree), None
    if type(tree) in (dict, OrderedDict, defaultdict):
        return list(tree.values()), list(tree)
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(tree), None
    return None


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec)."""
    node = None if is_leaf is not None and is_leaf(tree) else _children(tree)
    if node is None:
        return [tree], TreeSpec()
    leaves, specs = [], []
    for child in node[0]:
        found, spec = tree_flatten(child, is_leaf)
        leaves += found
        specs.append(spec)
    return leaves, TreeSpec(type(tree), node[1], specs)


def tree_unflatten(leaves, treespec):
    """The tree of a shape with these leaves."""
    leaves = list(leaves)
    if len(leaves) != treespec.num_leaves:
        raise ValueError(f"tree_unflatten: {len(leaves)} leaves for a tree of {treespec.num_leaves}")
    left = iter(leaves)

    def build(spec):
        if spec.type is None:
            return next(left)
        made = [build(child) for child in spec.children_specs]
        if spec.context is not None:
            pairs = zip(spec.context, made, strict=True)
            return dict(pairs) if spec.type is defaultdict else spec.type(pairs)
        return spec.type(*made) if hasattr(spec.type, "_fields") else spec.type(made)

    return build(treespec)


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return tree_flatten(tree, is_leaf)[0]


def tree_structure(tree, is_leaf=None):
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of func(leaf of tree, leaves at its place in the others)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return tree_unflatten(
        [func(*at) for at in zip(leaves, *(tree_leaves(r, is_leaf) for r in rests), strict=True)], spec
    )


def tree_map_only(kind, func, tree=None, is_leaf=None):
    """tree_map for leaves of a type; without a tree, a decorator for func."""
    if tree is None:
        return lambda function: lambda x: function(x) if isinstance(x, kind) else x
    return tree_map(lambda x: func(x) if isinstance(x, kind) else x, tree, is_leaf=is_leaf)


def tree_any(pred, tree, is_leaf=None):
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all(pred, tree, is_leaf=None):
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_leaves(tree, is_leaf)))
