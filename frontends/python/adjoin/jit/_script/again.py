"""adjoin.jit._script.again: scripted modules that become parts of others, which are scripted later."""

from ... import _C
from .. import RecursiveScriptModule
from .errors import NotSupportedError

_PLAIN = (bool, int, float, str, list, tuple, dict, type(None))


def plain(module):
    """The module, or a module of its original's class with the tensors, the parts and the attributes that a scripted one has now."""
    if not isinstance(module, RecursiveScriptModule):
        return module
    original = module.__dict__.get("_original")
    if original is None:
        raise NotSupportedError(
            f"jit.script: a {module.original_name} that jit.load() gave has no source; it cannot be a part of a module that is "
            "scripted. Call it from Python, or trace the whole"
        )
    made = type(original).__new__(type(original))
    made.__dict__.update(original.__dict__)
    made.__dict__.update(
        _parameters=dict(module._parameters), _buffers=dict(module._buffers),
        _modules={name: None if child is None else plain(child) for name, child in module._modules.items()},
        training=module.training,
    )  # fmt: skip
    for name, value in original.__dict__.items():
        if not name.startswith("_") and name != "training" and isinstance(value, _PLAIN):
            try:
                made.__dict__[name] = _C.script_get(module._handle, module._path + name)
            except AttributeError:  # the program does not use it
                continue
    return made
