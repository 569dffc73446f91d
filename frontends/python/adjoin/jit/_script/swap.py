"""adjoin.jit._script.swap: a part of a scripted module becomes another: the whole is scripted again, of copies of the originals."""

import inspect

from ... import _C
from ...nn.modules.module import Module


def swap(face, name, other):
    """``face.name = other``: from now on the program of the whole has the code and the tensors of the other."""
    if name not in face._modules:
        raise RuntimeError(
            f"jit.script: a scripted {face.original_name} has no part '{name}', so no code of it would call this "
            f"{type(other).__name__}; give it to the original and script that"
        )
    if not isinstance(other, Module):
        raise TypeError(f"jit.script: '{name}' is a module; a module can take its place, not {type(other).__name__}")
    if any("_original" not in vars(m) for m in face._root.modules()):
        raise RuntimeError(
            f"jit.script: '{name}' of a program from a file cannot become another module, its Python source is not there; "
            "change the module that was scripted, and save it again"
        )
    check_interface(face, name, other)
    from .face import scripted_module

    replaced = {id(face._modules[name]): other}
    root = face._root
    made = scripted_module(original_of(root, replaced))
    take_over(root, made, face, name)


def original_of(face, replaced):
    """A copy of what was scripted, as it is now: modules alone are copied."""
    if (other := replaced.get(id(face))) is not None:
        face = other
    source = vars(face).get("_original", face)
    copy = type(source).__new__(type(source))
    vars(copy).update(vars(source))
    for part in ("_parameters", "_buffers"):
        vars(copy)[part] = dict(vars(face)[part])
    vars(copy)["training"] = face.training
    if face is not source:  # attributes that were set since
        for key, value in vars(source).items():
            if not key.startswith("_") and key != "training" and not callable(value):
                try:
                    vars(copy)[key] = _C.script_get(face._handle, face._path + key)
                except (AttributeError, RuntimeError, TypeError):
                    pass  # the program does not use it
    vars(copy)["_modules"] = {k: None if m is None else original_of(m, replaced) for k, m in face._modules.items()}
    return copy


def take_over(face, made, changed, name):
    """The faces that are there stay, and show the new program."""
    for key, new in made._modules.items():
        old = face._modules[key]
        if new is None or (face is changed and key == name):
            face._modules[key] = new
            for m in new.modules() if new is not None else ():
                vars(m)["_root"] = changed._root
        else:
            take_over(old, new, changed, name)
    vars(face).update(
        _handle=made._handle,
        _functions=made._functions,
        _original=made._original,
        _written=made._written,
        _assigned=None,
    )


def check_interface(face, name, other):
    """Has the other the methods that an annotation of the part asks for?"""
    for cls in type(face._original).__mro__:
        wanted = vars(cls).get("__annotations__", {}).get(name)
        if isinstance(wanted, str):
            wanted = getattr(inspect.getmodule(cls), wanted, None)
        if getattr(wanted, "__torch_script_interface__", False):
            break
    else:
        return
    kind = type(vars(other).get("_original", other))
    for method, function in vars(wanted).items():
        if not inspect.isfunction(function):
            continue
        has = getattr(kind, method, None)
        if has is None or list(inspect.signature(has).parameters) != list(inspect.signature(function).parameters):
            raise RuntimeError(
                f"jit.script: '{name}' is a {wanted.__name__}; {kind.__name__} has no method {method}"
                f"{inspect.signature(function)}"
            )
