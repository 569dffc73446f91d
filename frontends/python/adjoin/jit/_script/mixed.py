"""adjoin.jit._script.mixed: traced functions that call scripted code, and scripted code that calls traced functions. Both become
one scripted program: what was traced is a function of it."""

import re

from ... import _C
from .literals import literal, quoted
from .unit import Unit

PARAM, CONSTANT = 2, 3


class Scripts:
    """The scripted code that a trace meets; params: what the trace calls its parameters."""

    def __init__(self, params):
        self.unit, self.params, self.called = Unit("forward"), params, []
        self.unit.used |= {"forward", "traced"}

    def call(self, scripted, name, args, kwargs):
        called = self.callee(scripted, name)
        if (called, scripted, name) not in self.called:
            self.called.append((called, scripted, name))
        return _C.script_capture(scripted._handle, scripted._path + name, called, args, kwargs)

    def callee(self, scripted, name):
        return callee(self.unit, scripted, name, lambda module: self.path_of(module))

    def path_of(self, module):
        """Where the module stands in the one that is traced."""
        own = {id(t): name for name, t in [*module.named_parameters(), *module.named_buffers()]}
        for name, t in self.params:
            inner = own.get(id(t))
            if inner is not None and (name == inner or name.endswith("." + inner)):
                return name[: len(name) - len(inner)].rstrip(".")
        return f"scripted_{len(self.unit.objects)}"

    def program(self, handle, form_in, form_out):
        """The program of the trace and of what it calls."""
        add_traced(self.unit, handle, "traced", "")
        self.unit.texts["forward"] = wrapper("forward", "traced", form_in, form_out)
        from .face import program_of

        return program_of(self.unit)


def callee(unit, scripted, name, path_of):
    """What calls the scripted code in the program of the unit; path_of(module) is how its weights are called there."""
    if scripted._path is None or not hasattr(scripted, "_original"):
        raise NotImplementedError("jit.trace: a scripted program of a file is called, whose source is not here")
    original = scripted._original
    if not hasattr(original, "named_parameters"):
        return "fn:" + unit.function(unit.python_of(original), None, unit.nowhere, None)
    unit.module(original, path_of(original))
    unit.compile_waiting()
    found = unit.classes[unit.class_of[id(original)]].methods[name]
    number = unit.object_ids[id(original)]
    called = unit.fresh(f"{found}_of_{number}")
    unit.texts[called] = (
        f"fn {called}(*%args, **%named) {{\n  %1 = fn:{found}(&{number}, *%args, **%named)\n  return %1\n}}"
    )
    return "fn:" + called


def add_traced(unit, handle, name, prefix):
    """A captured program as a function of the unit; its weights have the prefix."""
    text = _C.script_lowered(handle, name)
    unit.used.add(name)
    known = {n for n, _, _ in unit.weights}
    for what in (PARAM, CONSTANT):
        for i, (called, _, _) in enumerate(_C.program_values(handle, what)):
            if prefix + called not in known:
                unit.weights.append((prefix + called, _C.program_weight(handle, what, i), what == CONSTANT))
    text = re.sub(r'\$weight\("', lambda m: m[0] + quoted(prefix)[1:-1], text)
    unit.texts[name] = re.sub(r" @\d+$", "", text, flags=re.M).rstrip()


def traced_function(unit, traced, wanted, prefix=None):
    """The name of a function that does what a traced function or module does; it takes the same arguments. Its weights are called as
    in the traced one, behind the prefix."""
    program = traced._traced.program
    inner = unit.fresh(wanted + ".calls")
    prefix = inner + "." if prefix is None else prefix
    scripts = getattr(program, "scripts", None)
    if scripts is None:
        add_traced(unit, program.handle, inner, prefix)
    else:
        names = {
            old: callee(unit, scripted, name, lambda module: prefix + scripts.path_of(module))
            for old, scripted, name in scripts.called
        }
        add_traced(unit, program.captured, inner, prefix)
        unit.texts[inner] = re.sub(r"fn:[\w.]+", lambda m: names.get(m[0], m[0]), unit.texts[inner])
    called = unit.fresh(wanted)
    unit.texts[called] = wrapper(called, inner, program.form_in, program.form_out)
    return called


def wrapper(name, inner, form_in, form_out):
    """A function that takes nested values apart, calls the one over tensors, and puts its results together."""
    lines, count = [], [0]

    def temp(text):
        count[0] += 1
        lines.append(f"  %{count[0]} = {text}")
        return f"%{count[0]}"

    leaves = {}

    def take(form, at):
        if isinstance(form, int):
            leaves[form] = at
            return
        ((kind, inside),) = form.items()
        if kind == "n":
            raise NotImplementedError(
                f"jit.trace: a {inside[0]} is taken or given where scripted code is called, too; take its tensors apart before"
            )
        if kind != "c":
            for key, f in inside.items() if kind == "d" else inside if kind == "m" else enumerate(inside):
                take(f, temp(f"$getitem({at}, {literal(key)})"))

    args, kwargs = form_in["t"][0]["t"], form_in["t"][1]["d"]
    params = [f"%a{i}" for i in range(len(args))] + [f"%{key}" for key in kwargs]
    for form, at in zip([*args, *kwargs.values()], params, strict=True):
        take(form, at)
    result = temp(f"fn:{inner}({', '.join(leaves[i] for i in sorted(leaves))})")

    def put(form):
        if isinstance(form, int):
            return temp(f"$getitem({result}, {form})")
        ((kind, inside),) = form.items()
        if kind == "c":
            return literal(inside)
        if kind == "n":
            take(form, "")
        if kind in "dm":
            pairs = inside.items() if kind == "d" else inside
            return temp(f"$dict({', '.join(x for k, v in pairs for x in (literal(k), put(v)))})")
        return temp(f"${'tuple' if kind == 't' else 'list'}({', '.join(put(f) for f in inside)})")

    lines.append(f"  return {put(form_out)}")
    return f"fn {name}({', '.join(params)}) {{\n" + "\n".join(lines) + "\n}"


def methods_program(module, methods):
    """The program of a traced module with several methods."""
    from .face import program_of

    unit = Unit("forward")
    unit.used.add("forward")
    name = unit.fresh(module.original_name)
    if module.__dict__.get("forward", module) is not None:
        methods = {"forward": module, **methods}
    lines = [f"class {name} module {{"]
    for method, traced in methods.items():
        called = traced_function(unit, traced, f"{name}.{method}.calls", "")
        unit.texts[f"{name}.{method}"] = (
            f"fn {name}.{method}(%self, *%args, **%named) {{\n  %1 = fn:{called}(*%args, **%named)\n  return %1\n}}"
        )
        lines.append(f"  method {quoted(method)} = {name}.{method}")
    unit.extra_classes.append("\n".join([*lines, "}"]))
    unit.objects.append(f'object &0 {name} {{\n  "training" = {literal(module.training)}\n}}')
    return program_of(unit)
