"""adjoin.utils._pytree_paths: the way to each leaf of a tree; shapes as texts. Reached as adjoin.utils._pytree."""

import json
from collections import defaultdict, namedtuple

_PROTOCOL = 1


def _with_paths(tree, path, is_leaf):
    kind = tree_of._get_node_type(tree)
    if tree_of.tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    with_keys = tree_of.SUPPORTED_NODES[kind].flatten_with_keys_fn
    if with_keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    for key, child in with_keys(tree)[0]:
        yield from _with_paths(child, (*path, key), is_leaf)


def tree_leaves_with_path(tree, is_leaf=None):
    """[(path, leaf)]: a path is a tuple of keys."""
    return list(_with_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """([(path, leaf)], spec)."""
    return tree_leaves_with_path(tree, is_leaf), tree_of.tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map; func gets the path first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = zip(*found, strict=True) if found else ((), ())
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(r) for r in rests)))


def keystr(kp):
    """A path as text: ``['a'][0].b``."""
    return "".join(map(str, kp))


def key_get(obj, kp):
    """What stands at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of a tree for each leaf of a shape: a leaf stands for all below it. None: the two do not fit."""
    if treespec.is_leaf() or tree_of.tree_is_leaf(tree, is_leaf):
        fits = tree_of.tree_is_leaf(tree, is_leaf)
        return [tree] * treespec.num_leaves if fits else None
    kind = tree_of._get_node_type(tree)
    if kind != treespec.type:
        return None
    children, context = tree_of.SUPPORTED_NODES[kind].flatten_fn(tree)
    children = list(children)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    parts = [_broadcast_to_and_flatten(c, s, is_leaf) for c, s in zip(children, treespec.children_specs, strict=True)]
    return None if any(p is None for p in parts) else [leaf for part in parts for leaf in part]


def _name_of(kind):
    name = tree_of._texts.get(kind, (tree_of.NO_SERIALIZED_TYPE_NAME_FOUND,))[0]
    if name == tree_of.NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {kind} found. Please update your _register_pytree_node call with "
            "a `serialized_type_name` kwarg."
        )
    return name


def _context_text(spec):
    if spec.type is namedtuple:
        return json.dumps(_name_of(spec.context))
    if spec.type is defaultdict:
        factory, keys = spec.context
        made = None if factory is None else f"{factory.__module__}.{factory.__qualname__}"
        return json.dumps({"default_factory": made, "keys": keys})
    to_text = tree_of._texts[spec.type][1]
    return to_text(spec.context) if to_text else json.dumps(spec.context)


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    try:
        context = _context_text(spec)
    except TypeError as error:
        raise TypeError(
            "Unable to serialize context. Please make the context json dump-able, or register a custom serializer "
            "using _register_pytree_node."
        ) from error
    return {
        "type": _name_of(spec.type),
        "context": context,
        "children_spec": [_to_json(c) for c in spec.children_specs],
    }


def _from_json(held):
    if held["type"] is None:
        return tree_of.LeafSpec()
    by_name = {name: kind for kind, (name, *_) in tree_of._texts.items()}
    kind = by_name.get(held["type"])
    if kind not in tree_of.SUPPORTED_NODES:
        raise NotImplementedError(f"Deserializing {held['type']!r} in pytree is not registered.")
    from_text = tree_of._texts[kind][2]
    context = from_text(held["context"]) if from_text else json.loads(held["context"])
    if kind is namedtuple:
        context = by_name[context]
    elif kind is defaultdict:
        factories = {"builtins.list": list, "builtins.dict": dict, "builtins.int": int, "builtins.set": set,
                     "builtins.float": float, None: None}  # fmt: skip
        if context["default_factory"] not in factories:
            raise NotImplementedError(f"treespec_loads: a default made by {context['default_factory']} is not known")
        context = [factories[context["default_factory"]], context["keys"]]
    return tree_of.TreeSpec(kind, context, [_from_json(c) for c in held["children_spec"]])


def treespec_dumps(treespec, protocol=None):
    """A shape as JSON text."""
    if not isinstance(treespec, tree_of.TreeSpec):
        raise TypeError(
            f"treespec_dumps(spec): Expected `spec` to be instance of TreeSpec but got item of type {type(treespec)}."
        )
    if protocol not in (None, _PROTOCOL):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return json.dumps((_PROTOCOL, _to_json(treespec)))


def treespec_loads(serialized):
    """The shape of a text of treespec_dumps."""
    protocol, held = json.loads(serialized)
    if protocol != _PROTOCOL:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [{_PROTOCOL}]")
    return _from_json(held)


def treespec_pprint(treespec):
    """A shape as the tree of stars that has it."""
    star = type("Star", (), {"__repr__": lambda self: "*"})()
    return repr(treespec.unflatten([star] * treespec.num_leaves))


pytree_to_str, str_to_pytree = treespec_dumps, treespec_loads

from . import _pytree as tree_of  # noqa: E402  (which imports what stands above)
