"""adjoin.fx.immutable_collections: lists and dictionaries of a node's arguments, which nobody may change in place."""

from ..utils import _pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(name):
    def method(self, *args, **kwargs):
        raise NotImplementedError(
            f"{type(self).__name__}.{name}: a node's arguments can't be changed in place; "
            "make a list(...) or dict(...) of them, change that, and set node.args or node.kwargs to it"
        )

    method.__name__ = name
    return method


class immutable_list(list):
    """A list that can't be changed, so it has a hash."""

    for _name in (
        "__delitem__", "__iadd__", "__imul__", "__setitem__", "append", "clear", "extend", "insert", "pop", "remove",
        "reverse", "sort",
    ):  # fmt: skip
        locals()[_name] = _refuse(_name)
    del _name

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (tuple(self),)


class immutable_dict(dict):
    """A dictionary that can't be changed, so it has a hash."""

    for _name in ("__delitem__", "__ior__", "__setitem__", "clear", "pop", "popitem", "setdefault", "update"):
        locals()[_name] = _refuse(_name)
    del _name

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (tuple(self.items()),)


_pytree.register_pytree_node(
    immutable_list,
    _pytree._list_flatten,
    lambda children, context: immutable_list(children),
    serialized_type_name="torch.fx.immutable_collections.immutable_list",
    flatten_with_keys_fn=_pytree._list_flatten_with_keys,
)
_pytree.register_pytree_node(
    immutable_dict,
    _pytree._dict_flatten,
    lambda children, context: immutable_dict(zip(context, children, strict=True)),
    serialized_type_name="torch.fx.immutable_collections.immutable_dict",
    flatten_with_keys_fn=_pytree._dict_flatten_with_keys,
)
