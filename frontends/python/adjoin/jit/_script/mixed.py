"""adjoin.jit._script.mixed: traced functions that call scripted code, and scripted code that calls traced functions. Both become
one scripted program: what was traced is a function of it."""

import re

from ... import _C
from .errors import NotSupportedError
from .literals import literal, quoted
from .unit import Unit

PARAM, CONSTANT = 2, 3


class Scripts:
    """The scripted code that a trace meets; params: what the trace calls its parameters."""

    def __init__(self, params):
        self.unit, self.params = Unit("forward"), params
        self.unit.used |= {"forward", "traced"}

    def call(self, scripted, name, args, kwargs):
        return _C.script_capture(scripted._handle, scripted._path + name, self.callee(scripted, name), args, kwargs)

    def callee(self, scripted, name):
        unit = self.unit
        if scripted._path is None or not hasattr(scripted, "_original"):
            raise NotImplementedError("jit.trace: a scripted program of a file is called, whose source is not here")
        original = scripted._original
        if not hasattr(original, "named_parameters"):
            return "fn:" + unit.function(unit.python_of(original), None, unit.nowhere, None)
        unit.module(original, self.path_of(original))
        unit.compile_waiting()
        found = unit.classes[type(original)].methods[name]
        number = unit.object_ids[id(original)]
        called = unit.fresh(f"{found}_of_{number}")
        unit.texts[called] = (
            f"fn {called}(*%args, **%named) {{\n  %1 = fn:{found}(&{number}, *%args, **%named)\n  return %1\n}}"
        )
        return "fn:" + called

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


def add_traced(unit, handle, name, prefix):
    """A captured program as a function of the unit; its weights have the prefix."""
    try:
        text = _C.script_lowered(handle, name)
    except RuntimeError as error:
        raise NotSupportedError(
            "jit.script: what was traced calls scripted code itself, so it cannot be a part of what is scripted; "
            "script() that part, too, instead of trace()"
        ) from error
    unit.used.add(name)
    known = {n for n, _, _ in unit.weights}
    for what in (PARAM, CONSTANT):
        for i, (called, _, _) in enumerate(_C.program_values(handle, what)):
            if prefix + called not in known:
                unit.weights.append((prefix + called, _C.program_weight(handle, what, i), what == CONSTANT))
    text = re.sub(r'\$weight\("', lambda m: m[0] + quoted(prefix)[1:-1], text)
    unit.texts[name] = re.sub(r" @\d+$", "", text, flags=re.M).rstrip()


def traced_function(unit, traced, wanted):
    """The name of a function that does what a traced function or module does; it takes the same arguments."""
    program = traced._traced.program
    inner = unit.fresh(wanted + ".calls")
    add_traced(unit, program.handle, inner, inner + ".")
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
        if kind != "c":
            for key, f in inside.items() if kind == "d" else enumerate(inside):
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
        if kind == "d":
            return temp(f"$dict({', '.join(x for k, v in inside.items() for x in (literal(k), put(v)))})")
        return temp(f"${'tuple' if kind == 't' else 'list'}({', '.join(put(f) for f in inside)})")

    lines.append(f"  return {put(form_out)}")
    return f"fn {name}({', '.join(params)}) {{\n" + "\n".join(lines) + "\n}"
