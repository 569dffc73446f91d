"""adjoin.jit._pt2_tree: how the arguments of a program of torch.export nest."""

import json


def refuse(text):
    raise RuntimeError(f"export.load: {text}") from None


class Tree:
    """How arguments nest, as torch's pytree writes it."""

    def __init__(self, text):
        try:
            version, self.spec = json.loads(text)
        except (ValueError, TypeError, RecursionError):
            refuse("how the arguments nest cannot be read")
        if version != 1:
            refuse(f"how the arguments nest is said in version {version}; 1 is read")

    def leaves(self, o, spec=None):
        spec = self.spec if spec is None else spec
        kind = spec.get("type")
        if kind is None:
            return [o]
        children = spec["children_spec"]
        if kind in ("builtins.tuple", "builtins.list", "collections.namedtuple"):
            parts = list(o)
        elif kind in ("builtins.dict", "collections.OrderedDict", "collections.defaultdict"):
            parts = [o[k] for k in self.keys(spec)]
        else:
            refuse(f"an argument is a {kind}, which is not served")
        if len(parts) != len(children):
            raise TypeError(f"{len(children)} parts of a {kind} are wanted, {len(parts)} are given")
        return [leaf for part, child in zip(parts, children, strict=True) for leaf in self.leaves(part, child)]

    def put(self, leaves, spec=None):
        """Takes leaves from a list, from its front."""
        spec = self.spec if spec is None else spec
        kind = spec.get("type")
        if kind is None:
            return leaves.pop(0)
        parts = [self.put(leaves, child) for child in spec["children_spec"]]
        if kind == "builtins.list":
            return parts
        if kind in ("builtins.dict", "collections.OrderedDict", "collections.defaultdict"):
            return dict(zip(self.keys(spec), parts, strict=True))
        if kind in ("builtins.tuple", "collections.namedtuple"):
            return tuple(parts)
        if len(parts) == len(self.keys(spec)):  # a class of a package: its fields by name
            return dict(zip(self.keys(spec), parts, strict=True))
        return tuple(parts)

    @staticmethod
    def keys(spec):
        context = spec.get("context")
        context = json.loads(context) if isinstance(context, str) else context
        if isinstance(context, list) and len(context) == 2 and isinstance(context[1], list):
            context = context[1]
        return context if isinstance(context, list) else []
