"""adjoin.jit._script.hooked: modules that do something else than their class says, by hooks or methods of their own: they get a class
that says it."""

import linecache
import types

from .errors import NotSupportedError

_classes = {}


def with_own_methods(module):
    """The module, or one of the same parts whose class has what it was given as methods: ``self.forward = self.forward_slow``."""
    own = {
        name: value.__func__
        for name, value in module.__dict__.items()
        if isinstance(value, types.MethodType)
        and isinstance(value.__func__, types.FunctionType)
        and isinstance(value.__self__, type(module))
        and isinstance(getattr(type(module), name, None), types.FunctionType)
        and getattr(type(module), name) is not value.__func__
    }
    if not own:
        return module
    key = type(module), *own.items()
    cls = _classes.get(key) or _classes.setdefault(
        key, type(type(module).__name__, (type(module),), {**own, "__module__": type(module).__module__})
    )
    copy = cls.__new__(cls)
    copy.__dict__.update({name: value for name, value in module.__dict__.items() if name not in own})
    return copy


def hooked(module):
    """The module, or one of the same parts whose class calls its hooks."""
    before, after = list(module._forward_pre_hooks.values()), list(module._forward_hooks.values())
    if not before and not after:
        return module
    told = getattr(module, "_forward_hooks_with_kwargs", {}) or getattr(module, "_forward_pre_hooks_with_kwargs", {})
    if told or getattr(module, "_forward_hooks_always_called", {}):
        raise NotSupportedError(
            f"jit.script: {type(module).__name__}: a forward hook wants keyword arguments, or to be called after errors, which "
            "programs do not do; call what it does in forward"
        )
    key = type(module), *before, None, *after
    cls = _classes.get(key) or _classes.setdefault(key, made(type(module), before, after))
    copy = cls.__new__(cls)
    copy.__dict__.update(module.__dict__)
    copy.__dict__.update(_forward_hooks={}, _forward_pre_hooks={})
    return copy


def made(cls, before, after):
    lines = ["def forward(self, *given):"]
    space = {}
    for i, hook in enumerate(before):
        space[f"before_{i}"] = getattr(hook, "__func__", hook)
        lines += [
            f"    changed_{i} = before_{i}(self, given)",
            f"    if changed_{i} is not None:",
            f"        given = changed_{i} if isinstance(changed_{i}, tuple) else (changed_{i},)",
        ]
    lines.append("    result = super().forward(*given)")
    for i, hook in enumerate(after):
        space[f"after_{i}"] = getattr(hook, "__func__", hook)
        lines += [
            f"    other_{i} = after_{i}(self, given, result)",
            f"    if other_{i} is not None:",
            f"        result = other_{i}",
        ]
    lines.append("    return result")
    text = "\n".join(lines) + "\n"
    file = f"<hooks of {cls.__name__} {len(_classes)}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file  # where its source is looked for
    space["__name__"] = "adjoin.jit._script.hooked"
    exec(compile(text, file, "exec"), space)  # noqa: S102
    return type(cls.__name__, (cls,), {"forward": space["forward"], "__module__": cls.__module__})
