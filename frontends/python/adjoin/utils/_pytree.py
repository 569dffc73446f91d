"""adjoin.utils._pytree: nested containers as their leaves and a shape, under PyTorch's names.

Nodes are tuples, lists, dictionaries (also ordered ones and those with defaults), deques, named tuples, and what
``register_pytree_node`` names. Everything else is a leaf, None too.
"""

import dataclasses
import functools
import threading
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any, NamedTuple

from .. import _C
from ._pytree_nodes import (  # noqa: F401
    GetAttrKey,
    MappingKey,
    SequenceKey,
    _defaultdict_flatten,
    _defaultdict_flatten_with_keys,
    _defaultdict_unflatten,
    _deque_flatten,
    _deque_flatten_with_keys,
    _deque_unflatten,
    _dict_flatten,
    _dict_flatten_with_keys,
    _dict_unflatten,
    _list_flatten,
    _list_flatten_with_keys,
    _list_unflatten,
    _namedtuple_flatten,
    _namedtuple_flatten_with_keys,
    _namedtuple_unflatten,
    _odict_flatten,
    _odict_unflatten,
    _ordereddict_flatten,
    _ordereddict_flatten_with_keys,
    _ordereddict_unflatten,
    _tuple_flatten,
    _tuple_flatten_with_keys,
    _tuple_unflatten,
)

PyTree = Context = Any


class NodeDef(NamedTuple):
    """How one type of nodes is taken apart and made again."""

    type: Any
    flatten_fn: Any  # node -> (children, context)
    unflatten_fn: Any  # (children, context) -> node
    flatten_with_keys_fn: Any  # node -> ([(key, child)], context), or None


def is_namedtuple_class(cls):
    """Whether a class is made by ``namedtuple`` or ``NamedTuple``."""
    fields = getattr(cls, "_fields", None)
    made = isinstance(cls, type) and issubclass(cls, tuple) and callable(getattr(cls, "_make", None))
    return made and isinstance(fields, tuple) and all(isinstance(f, str) for f in fields)


def is_namedtuple_instance(obj):
    """Whether an object is of such a class."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """The same of a class or an object."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


def is_structseq_class(cls):
    """Whether a class is one of Python's own tuples with names, as time.struct_time."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(vars(cls).get(n), int) for n in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
    )


def is_structseq_instance(obj):
    """Whether an object is of such a class."""
    return is_structseq_class(type(obj))


_is_namedtuple_instance = is_namedtuple_instance

SUPPORTED_NODES = {}
BUILTIN_TYPES = {tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque}
STANDARD_DICT_TYPES = {dict, OrderedDict, defaultdict}
CONSTANT_NODES = set()
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
_texts = {}  # type -> (name in a file, context -> JSON, JSON -> context)
_NODE_REGISTRY_LOCK = threading.RLock()


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Objects of ``cls`` (not of its subclasses) are nodes.

    ``flatten_fn(node)`` gives its children and what else makes it again; ``unflatten_fn(children, context)`` makes it.
    The names and functions of texts are for ``treespec_dumps``.
    """
    with _NODE_REGISTRY_LOCK:
        if cls in SUPPORTED_NODES:
            raise ValueError(f"{cls} is already registered as pytree node.")
        _register(
            cls,
            NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn),
            serialized_type_name or NO_SERIALIZED_TYPE_NAME_FOUND,
            to_dumpable_context,
            from_dumpable_context,
        )


def _register(cls, node, name, to_text=None, from_text=None):
    if (to_text is None) != (from_text is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = node
    _texts[cls] = (name, to_text, from_text)


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(cls, flatten_fn, unflatten_fn, to_str_fn=None, maybe_from_str_fn=None, **words):
    """The older name of register_pytree_node; its texts are not used."""
    register_pytree_node(cls, flatten_fn, unflatten_fn, **words)


def _register_namedtuple(cls, *, serialized_type_name):
    """The name of a named tuple's class in ``treespec_dumps``."""
    _texts[cls] = (serialized_type_name, None, None)


def _deregister_pytree_node(cls):
    """Objects of cls are leaves again."""
    with _NODE_REGISTRY_LOCK:
        del SUPPORTED_NODES[cls]
        _texts.pop(cls, None)
        CONSTANT_NODES.discard(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Objects of a data class are nodes whose children are their fields."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(f"register_dataclass: {cls} is no data class; give field_names")
        field_names = [f.name for f in dataclasses.fields(cls) if f.init]
    names = [n for n in field_names if n not in (drop_field_names or ())]

    def there(node):
        return [n for n in names if getattr(node, n) is not None]

    def flatten(node):
        kept = there(node)
        return [getattr(node, n) for n in kept], [kept, [n for n in names if n not in kept]]

    def with_keys(node):
        return [(GetAttrKey(n), getattr(node, n)) for n in there(node)], flatten(node)[1]

    def unflatten(children, context):
        return cls(**dict(zip(context[0], children, strict=True)), **dict.fromkeys(context[1]))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """What a node without children holds."""

    value: Any


def register_constant(cls):
    """Objects of cls are no leaves but a part of the shape. They must have == and hash()."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(f"register_constant(cls={cls}): it needs an __eq__ and a __hash__ of its own")
    with _NODE_REGISTRY_LOCK:
        CONSTANT_NODES.add(cls)
        register_pytree_node(
            cls,
            lambda x: ([], ConstantNode(x)),
            lambda children, context: context.value,
            flatten_with_keys_fn=lambda x: ([], ConstantNode(x)),
        )


def is_constant_class(cls):
    """Whether register_constant was told of a class."""
    return isinstance(cls, type) and cls in CONSTANT_NODES


for _cls, *_functions in (
    (tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys),
    (list, _list_flatten, _list_unflatten, _list_flatten_with_keys),
    (dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys),
    (namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys),
    (OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys),
    (defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys),
    (deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys),
):
    _register(_cls, NodeDef(_cls, *_functions), f"{_cls.__module__}.{_cls.__name__}")


_register(
    _C.Size,
    NodeDef(_C.Size, _tuple_flatten, lambda children, context: _C.Size(children), _tuple_flatten_with_keys),
    "torch.Size",
)


def _get_node_type(tree):
    """The type under which a node is registered; of a leaf, its own."""
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    if is_structseq_class(kind) and kind.__module__ in ("adjoin.return_types", "torch.return_types"):
        _register_results(kind)
    return namedtuple if is_namedtuple_class(kind) else kind


def _register_results(kind):
    """What an op with several results returns: a node whose children are the results by their names."""

    def with_keys(node):
        return [(GetAttrKey(name), child) for name, child in zip(kind.__match_args__, node, strict=True)], None

    node = NodeDef(kind, lambda node: (list(node), None), lambda children, context: kind(children), with_keys)
    _register(kind, node, f"torch.return_types.{kind.__name__}")


def tree_is_leaf(tree, is_leaf=None):
    """Whether it is no node, or is_leaf(tree) says that it counts as a leaf."""
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf


class TreeSpec:
    """The shape of a tree: a node of a ``type`` with ``children_specs``, or a leaf (type None)."""

    __slots__ = ("_children", "_context", "num_leaves", "num_nodes", "type")

    def __init__(self, type=None, context=None, children_specs=()):
        self.type, self._context, self._children = type, context, list(children_specs)
        self.num_leaves = 1 if type is None else sum(c.num_leaves for c in self._children)
        self.num_nodes = 1 + sum(c.num_nodes for c in self._children)

    context = property(lambda self: self._context)
    children_specs = property(lambda self: self._children)
    num_children = property(lambda self: len(self._children))

    def is_leaf(self):
        """Whether it is a leaf's."""
        return self.type is None

    def children(self):
        """The shapes of its children."""
        return list(self._children)

    def child(self, index):
        """The shape of one child."""
        return self._children[index]

    def flatten_up_to(self, tree):
        """The parts of a tree where this shape has leaves; what stands below them stays whole."""
        if self.is_leaf():
            return [tree]
        kind = _get_node_type(tree)
        both_dicts = {kind, self.type} <= STANDARD_DICT_TYPES
        if kind != self.type and not both_dicts:
            raise ValueError(f"Type mismatch; expected {self.type!r}, but got {kind!r} for a tree of the shape {self}.")
        if both_dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if set(keys) != set(tree):
                raise ValueError(f"Node keys mismatch; expected {list(keys)}, but got {list(tree)}.")
            children = [tree[k] for k in keys]
        else:
            children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
            children = list(children)
            if len(children) != self.num_children:
                raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
            if kind is not deque and context != self._context:
                raise ValueError(f"Node context mismatch for custom node type {kind!r}: {self._context} and {context}.")
        return [
            part for spec, child in zip(self._children, children, strict=True) for part in spec.flatten_up_to(child)
        ]

    def unflatten(self, leaves):
        """The tree of this shape with these leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree "
                f"that holds {self.num_leaves} items ({self})."
            )
        return self._build(iter(leaves))

    def _build(self, left):
        if self.type is None:
            return next(left)
        return SUPPORTED_NODES[self.type].unflatten_fn([c._build(left) for c in self._children], self._context)

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return self is other or (self.type, self._context, self._children) == (
            other.type,
            other._context,
            other._children,
        )

    def __hash__(self):
        kind = self.type
        context = tuple(self._context) if kind in (dict, OrderedDict) else None
        return hash((kind, context, tuple(self._children)))

    def __repr__(self, indent=0):
        if self.type is None:
            return "*"
        head = f"TreeSpec({self.type.__name__}, {self._context}, ["
        inner = indent + 2
        parts = [c.__repr__(inner) for c in self._children]
        return head + f",\n{' ' * inner}".join(parts) + "])"

    def __reduce__(self):
        return TreeSpec, (self.type, self._context, self._children)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The shape of a leaf."""

    __slots__ = ()

    def __init__(self):
        super().__init__(None, None, [])

    def __reduce__(self):
        return LeafSpec, ()


_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    """The shape of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable=(), /):
    """The shape of a tuple of these shapes."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **words):
    """The shape of a dictionary of these shapes."""
    held = dict(mapping, **words)
    return TreeSpec(dict, list(held), list(held.values()))


def tree_flatten(tree, is_leaf=None):
    """(leaves, spec)."""
    leaves = []
    return leaves, _walk(tree, is_leaf, leaves)


def _walk(tree, is_leaf, leaves):
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_walk(child, is_leaf, leaves) for child in children])


def tree_unflatten(leaves, treespec):
    """The tree of a shape with these leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"tree_unflatten: expected `treespec` to be a TreeSpec, got {type(treespec).__name__}")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after another."""
    if tree_is_leaf(tree, is_leaf):
        yield tree
        return
    for child in SUPPORTED_NODES[_get_node_type(tree)].flatten_fn(tree)[0]:
        yield from tree_iter(child, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves."""
    return list(tree_iter(tree, is_leaf))


def arg_tree_leaves(*args, **kwargs):
    """The leaves of a call's arguments."""
    return [leaf for value in (*args, *kwargs.values()) for leaf in tree_iter(value)]


def tree_structure(tree, is_leaf=None):
    """The shape."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of func(leaf of tree, what the others have in its place)."""
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Calls func in the same way and gives the tree itself."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(r) for r in rests)), maxlen=0)
    return tree


def _test(kind):
    """Does a leaf count? kind: a type, several, or a function."""
    if isinstance(kind, (type, tuple, types.UnionType)):
        return lambda x: isinstance(x, kind)
    if callable(kind):
        return kind
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(kind, /):
    """A decorator: the function sees the leaves of a type (or those that a test takes), others stay."""
    counts = _test(kind)
    return lambda func: functools.wraps(func)(lambda x: func(x) if counts(x) else x)


def tree_map_only(kind, /, func, tree, is_leaf=None):
    """tree_map for leaves of a type, of one of several, or those that a test takes."""
    return tree_map(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_map_only_(kind, /, func, tree, is_leaf=None):
    """tree_map_ for leaves of a type."""
    return tree_map_(map_only(kind)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether pred holds for every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether pred holds for a leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(kind, /, pred, tree, is_leaf=None):
    """Whether pred holds for every leaf of a type."""
    return all(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


def tree_any_only(kind, /, pred, tree, is_leaf=None):
    """Whether pred holds for a leaf of a type."""
    return any(pred(x) for x in tree_iter(tree, is_leaf) if isinstance(x, kind))


from ._pytree_paths import (  # noqa: E402, F401 -- they are made of what stands above
    _broadcast_to_and_flatten,
    key_get,
    keystr,
    pytree_to_str,
    str_to_pytree,
    tree_flatten_with_path,
    tree_leaves_with_path,
    tree_map_with_path,
    treespec_dumps,
    treespec_loads,
    treespec_pprint,
)
