"""adjoin.jit._nodes: inputs and results of traces whose classes utils._pytree knows; a file has the name of the class."""

import json


def _name(cls):
    from ..utils._pytree import NO_SERIALIZED_TYPE_NAME_FOUND, _texts

    said = _texts.get(cls, (NO_SERIALIZED_TYPE_NAME_FOUND,))[0]
    return f"{cls.__module__}.{cls.__qualname__}" if said == NO_SERIALIZED_TYPE_NAME_FOUND else said


def apart(o):
    """(name of the class, what makes it again, children) of an object; None: nobody has registered its class."""
    from ..utils._pytree import SUPPORTED_NODES, _texts

    node = SUPPORTED_NODES.get(type(o))
    if node is None:
        return None
    children, context = node.flatten_fn(o)
    to_text = _texts[type(o)][1]
    context = to_text(context) if to_text else context
    try:
        if json.loads(json.dumps(context)) == context:
            return _name(type(o)), context, list(children)
    except (TypeError, ValueError):
        pass
    raise TypeError(
        f"trace: what a {type(o).__name__} has beside its children has no place in a program's text: {context!r}; register the class with "
        "to_dumpable_context and from_dumpable_context"
    )


def together(name, context, children):
    from ..utils._pytree import SUPPORTED_NODES, _texts

    for cls, node in list(SUPPORTED_NODES.items()):
        if _name(cls) == name:
            from_text = _texts[cls][2]
            return node.unflatten_fn(children, from_text(context) if from_text else context)
    raise RuntimeError(
        f"the program takes or gives a {name}, which is not registered here; call export.register_dataclass() of the class first"
    )
