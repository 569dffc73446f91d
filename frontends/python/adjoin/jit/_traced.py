"""adjoin.jit's programs: a function is run once on traced tensors, and the calls that it made are kept (libaj_graph)."""

import contextlib
import json
import os
import re
import shutil
import tempfile
import warnings
import zipfile
from collections import OrderedDict

from .. import _C, arange, get_rng_state, no_grad, set_rng_state
from .._C import Tensor
from ..nn.modules.module import Module
from . import ScriptFunction, ScriptModule, TracedModule, TracingCheckError, _tracing

INPUT, RESULT, PARAM, CONSTANT = range(4)
LARGEST = 1 << 22  # elements of the inputs on which a trace with far sizes is made
KEPT = 64  # programs of one function, for as many kinds of inputs


def take_apart(o, leaves):
    """The form of nested tuples, lists and dictionaries: JSON in which a number is the place of a tensor in leaves."""
    if isinstance(o, Tensor):
        leaves.append(o)
        return len(leaves) - 1
    if o is None or isinstance(o, (bool, int, float, str)):
        return {"c": o}
    if isinstance(o, (tuple, list)):
        return {"t" if isinstance(o, tuple) else "l": [take_apart(x, leaves) for x in o]}
    if isinstance(o, dict) and all(isinstance(k, str) for k in o):
        return {"d": {k: take_apart(v, leaves) for k, v in o.items()}}
    if isinstance(o, dict) and all(isinstance(k, (str, int, float)) for k in o):
        return {"m": [[k, take_apart(v, leaves)] for k, v in o.items()]}
    from ._nodes import apart

    if (node := apart(o)) is not None:
        return {"n": [*node[:2], [take_apart(x, leaves) for x in node[2]]]}
    raise TypeError(
        f"trace: {type(o).__name__} is no tensor, number, text, tuple, list or dictionary of them by name; data classes are taken that "
        "export.register_dataclass() knows"
    )


def put_together(form, leaves):
    if isinstance(form, int):
        return leaves[form]
    ((kind, inner),) = form.items()
    if kind == "c":
        return inner
    if kind == "d":
        return {k: put_together(v, leaves) for k, v in inner.items()}
    if kind == "m":
        return {k: put_together(v, leaves) for k, v in inner}
    if kind == "n":
        from ._nodes import together

        return together(*inner[:2], [put_together(x, leaves) for x in inner[2]])
    return (tuple if kind == "t" else list)(put_together(x, leaves) for x in inner)


def fits(given, shape):
    return len(given) == len(shape) and all(n in (-1, m) for n, m in zip(shape, given, strict=True))


class Program:
    """A captured program with the forms of its inputs and results."""

    def __init__(self, handle, form_in, form_out):
        self.handle, self.form_in, self.form_out = handle, form_in, form_out
        self.inputs = _C.program_values(handle, INPUT)

    def takes(self, form, leaves):
        if form != self.form_in:
            return False
        pairs = zip(self.inputs, leaves, strict=True)
        return all(t.dtype == dtype and fits(t.shape, shape) for (_, dtype, shape), t in pairs)

    def run(self, leaves, fused=True):
        return put_together(self.form_out, _C.program_run(self.handle, leaves, fused))

    def weights(self, what):
        return [
            (name, _C.program_weight(self.handle, what, i))
            for i, (name, _, _) in enumerate(_C.program_values(self.handle, what))
        ]


class Mixed(Program):
    """A captured program that calls scripted code, and so has become a scripted one."""

    def __init__(self, handle, form_in, form_out, scripts):
        super().__init__(handle, form_in, form_out)
        self.captured, self.scripts = handle, scripts
        self.handle = scripts.program(handle, form_in, form_out)

    def run(self, leaves, fused=True):
        return put_together(self.form_out, _C.script_call(self.handle, "traced", tuple(leaves), {}))


def capture(call, name, args, kwargs, params, limit, kept=None):
    """The program of call(*args, **kwargs); params: (name, tensor) of those that stay themselves. kept, a list, gets what the
    call gave."""
    leaves = []
    form_in = take_apart((args, kwargs), leaves)
    if len({id(t) for t in leaves}) != len(leaves):
        raise ValueError(
            "trace: the same tensor is given as two inputs, which a program could not tell apart; give a clone()"
        )
    _C.lazy_pause()  # a scope around would write down what the trace carries out
    _tracing.on, _tracing.scripts = True, None  # scripted code that is called
    _tracing.params = params
    try:
        _C.program_begin(name, limit)
        for called, tensor in params:
            _C.program_param(tensor, called)
        traced = [_C.program_input(t, f"x{i}" if len(leaves) > 1 else "x") for i, t in enumerate(leaves)]
        given, named = put_together(form_in, traced)
        results = []
        form_out = take_apart(call(*given, **named), results)
        handle = _C.program_end(results, json.dumps(form_in), json.dumps(form_out))
        if kept is not None:
            kept.append(put_together(form_out, results))
        scripts = _tracing.scripts
    except NotImplementedError as e:
        if str(e).startswith("the value of a traced tensor"):
            e.args = (f"{e} ({_asked_at(e.__traceback__)})",)
        raise
    finally:
        _tracing.on, _tracing.scripts = False, None
        _C.program_cancel()
        _C.lazy_resume()
    if scripts is not None:
        return Mixed(handle, form_in, form_out, scripts)
    return Program(handle, form_in, form_out)


def _asked_at(traceback):
    """The innermost line that is no line of the package's."""
    found = ""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if not code.co_filename.startswith(_PACKAGE):
            found = f"{os.path.basename(code.co_filename)}:{traceback.tb_lineno} in {code.co_name}"
        traceback = traceback.tb_next
    return found


_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


def resized(t, sizes):
    """t with other sizes, made of its own elements."""
    for dim, n in sizes.items():
        t = t.index_select(dim, arange(n, device=t.device) % t.shape[dim])
    return t


def other_sizes(name, n):
    """Two values that stand beside n: one to see what depends on it, one to check."""
    if n < 2:
        raise ValueError(
            f"trace: the dynamic size '{name}' is {n} in the example, where 0 and 1 are special; give one of 2 or more"
        )
    return (n - 1, n - 2) if n > 3 else (2, 5) if n == 3 else (3, 5)


def _far(sizes, most):
    """Sizes far from those of the example: what is equal for near ones, n // 8 for one, differs there."""
    return [2 * n + 3 if m is None else max(2, min(2 * n + 3, m)) for n, m in zip(sizes, most, strict=True)]


class _Place(int):
    """Where a tensor stands among the leaves; numbers that are given stay numbers."""


def _tensors_of(given, said, place):
    """(place of a tensor, what is said of its dimensions) of an input, which may be nested."""
    if isinstance(given, _Place):
        yield given, said
    elif isinstance(given, dict) and isinstance(said, dict):
        for key, inner in said.items():
            if inner is not None:
                yield from _tensors_of(given[key], inner, place)
    elif isinstance(given, (tuple, list)) and isinstance(said, (tuple, list)) and len(given) == len(said):
        for one, inner in zip(given, said, strict=True):
            if inner is not None:
                yield from _tensors_of(one, inner, place)
    else:
        raise TypeError(f"trace: dynamic names input {place!r}, which is no tensor")


def capture_dynamic(*args):
    _tracing.inline = True  # what scripted code calls is the trace's own
    try:
        return _capture_dynamic(*args)
    finally:
        _tracing.inline = False


def _capture_dynamic(call, args, kwargs, params, limit, dynamic, bounds=None):
    """The program for all sizes that have a name: {place or name of an input: {dimension: name}}; bounds: {name: (least,
    greatest or None)} within which each decision by sizes must be the same, or it is refused. An empty one: it is told; None: the
    caller looks again."""
    leaves = []
    form = take_apart((args, kwargs), leaves)
    named, places = {}, []
    given = put_together(form, [_Place(i) for i in range(len(leaves))])
    for place, said in dynamic.items():
        for at, dims in _tensors_of(given[1][place] if isinstance(place, str) else given[0][place], said, place):
            for dim, name in (dims if isinstance(dims, dict) else {d: n for d, n in enumerate(dims) if n}).items():
                size = leaves[at].shape[dim]
                if named.setdefault(name, size) != size:
                    raise ValueError(f"trace: the dynamic size '{name}' is {named[name]} and {size} in the example")
                places.append((at, dim, name))
    names = list(named)
    if len(names) > 4:
        raise NotImplementedError(
            f"trace: {len(names)} dynamic sizes are named, at most 4 are possible; leave the others fixed"
        )
    other = {name: other_sizes(name, n) for name, n in named.items()}
    samples = [
        [other[n][0] if choice >> i & 1 else named[n] for i, n in enumerate(names)] for choice in range(1 << len(names))
    ]
    samples.append([other[n][1] for n in names])
    if bounds is not None:
        samples.append(_far([named[n] for n in names], [bounds.get(n, (2, None))[1] for n in names]))
    programs, noted, seen = [], [], []
    for sizes in samples:
        known = dict(zip(names, sizes, strict=True))
        given = [
            resized(t, {dim: known[name] for at, dim, name in places if at == i and known[name] != named[name]})
            for i, t in enumerate(leaves)
        ]
        more_args, more_kwargs = put_together(form, given)
        may_fail = sizes is samples[-1] and bounds is not None
        if may_fail and sum(t.numel() for t in given) > LARGEST:
            continue
        try:
            with _noting(noted) if bounds is not None else contextlib.nullcontext():
                programs.append(capture(call, "forward", more_args, more_kwargs, params, limit))
            seen.append(sizes)
        except Exception:
            if not may_fail:  # far sizes may be above what the function takes, as it says itself
                raise
    if bounds is not None:
        _check_decisions(names, seen, noted, bounds)
    handle = _C.program_generalize([p.handle for p in programs], names, [n for sizes in seen for n in sizes])
    return Program(handle, programs[0].form_in, programs[0].form_out)


@contextlib.contextmanager
def _noting(noted):
    """What user code compares sizes with, inside, goes to a list as one more list."""
    from . import _sizes

    _sizes.traced.notes = notes = []
    _C.note_sizes(_sizes.Noted)
    try:
        yield
        noted.append(notes)
    finally:
        _C.note_sizes(None)


def _check_decisions(names, samples, noted, bounds):
    from ._sizes import undecided

    found = undecided(names, samples, noted, [bounds.get(name, (2, None)) for name in names])
    if found is None:
        return
    said, file, line = found
    words = f"trace: {file}:{line} decides by a size (here {said}), and other sizes of {', '.join(names)} are decided otherwise: "
    if bounds:
        raise RuntimeError(
            words
            + "give the Dim bounds within which the answer is the same, Dim(name, max=...), or leave the dimension fixed"
        )
    warnings.warn(words + "the program does for all of them what it did for this one", stacklevel=6)


@contextlib.contextmanager
def undone(tensors):
    """What happens inside to the tensors, and which random numbers are drawn, happens again in the call that follows."""
    kept = [(t, t._version, t.detach().clone()) for t in tensors]
    numbers = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(numbers)
        with no_grad():
            for t, version, was in kept:
                if t._version != version:
                    t.copy_(was)


class Traced:
    """Programs of one function, the first of which is the one that was asked for."""

    def __init__(self, program, again=None, tensors=()):
        self.program, self.again, self.known = program, again, OrderedDict()
        self.tensors = [t for t in tensors if not t.requires_grad]  # which a call may write, beside its inputs
        # Tensors alone, without names: what most functions take; their form needs no look.
        self.plain = not isinstance(program, Mixed) and program.form_in == {
            "t": [{"t": list(range(len(program.inputs)))}, {"d": {}}]
        }
        self.single = program.form_out == 0

    def __call__(self, args, kwargs):
        if self.plain and not kwargs and _C.program_takes(self.program.handle, args):
            if self.single:
                return _C.program_run(self.program.handle, args, True)[0]
            return self.program.run(args)
        leaves = []
        form = take_apart((args, kwargs), leaves)
        if self.program.takes(form, leaves):
            return self.program.run(leaves)
        if self.again is None:
            if form == self.program.form_in:
                return self.program.run(leaves)  # which tells the sizes that it was made for
            raise TypeError(f"the program takes inputs of the form {self.program.form_in}, given is {form}")
        key = json.dumps(form), tuple((t.dtype, tuple(t.shape)) for t in leaves)
        if key not in self.known:
            with undone([*leaves, *self.tensors]):
                self.known[key] = self.again(args, kwargs)
            if len(self.known) > KEPT:
                self.known.popitem(last=False)
        self.known.move_to_end(key)
        return self.known[key].run(leaves)


class _Shown:
    """What a traced function and a traced module show of their program."""

    @property
    def graph(self):
        """The program as text, which is also the form in files; it lists inputs, results and calls."""
        from ._graph import Graph

        return Graph(_C.program_text(self._traced.program.handle), result="Tensor")

    @property
    def code(self):
        """The program as Python, for people: `exec(code, jit._code.environment(...))` defines a function that does the same."""
        from ._code import python_of

        return python_of(self.graph, isinstance(self, TracedModule))

    inlined_graph = graph

    def graph_for(self, *args, **kwargs):
        """The program: that of the example inputs."""
        return self.graph

    def _repr_svg_(self):
        """What a notebook shows: each call a box under those whose results it takes."""
        from ._picture import svg

        handle = self._traced.program.handle
        return svg(self.graph, lambda line: _C.program_source(handle, line))

    def stats(self):
        """Of the last run: calls of the program, walks over whole tensors, fused groups, calls inside of them."""
        return dict(
            zip(("calls", "passes", "groups", "fused"), _C.program_stats(self._traced.program.handle), strict=True)
        )

    @property
    def constants(self):
        """The tensors that are neither inputs nor parameters, by name."""
        return dict(self._traced.program.weights(CONSTANT))

    def save(self, f, _extra_files=None):
        save(self, f, _extra_files)


class Function(_Shown, ScriptFunction):
    def __init__(self, traced, name):
        self._traced, self.__name__, self.name = traced, name, name

    def __call__(self, *args, **kwargs):
        return self._traced(args, kwargs)


class TracedForward(_Shown, TracedModule):
    def __init__(self, traced, name):
        super().__init__()
        self._traced, self.original_name = traced, name

    def forward(self, *args, **kwargs):
        return self._traced(args, kwargs)

    def _apply(self, fn, *args, **kwargs):
        super()._apply(fn, *args, **kwargs)
        named = _named_tensors(self)
        program = self._traced.program
        for i, (name, _, _) in enumerate(_C.program_values(program.handle, PARAM)):
            if name in named:
                _C.program_set_weight(program.handle, PARAM, i, named[name])
        for i, (_, tensor) in enumerate(program.weights(CONSTANT)):
            _C.program_set_weight(program.handle, CONSTANT, i, fn(tensor))
        self._traced.known.clear()
        return self


def _named_tensors(module):
    named = dict(module.named_buffers(remove_duplicate=False))
    named.update(module.named_parameters(remove_duplicate=False))
    return named


def trace(func, example_inputs, example_kwarg_inputs, limit, dynamic, bounds=None):
    if isinstance(func, (Function, TracedForward)):
        return func
    if example_inputs is None and example_kwarg_inputs is None:
        raise TypeError("jit.trace: example inputs are missing; the calls that they cause are what is kept")
    args = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    args, kwargs = () if example_inputs is None else tuple(args), dict(example_kwarg_inputs or {})
    module = func if isinstance(func, Module) else getattr(func, "__self__", None)
    params = list(_named_tensors(module).items()) if isinstance(module, Module) else []

    def again(args, kwargs):
        return capture(func, "forward", args, kwargs, params, limit)

    if dynamic:  # which runs the function for several sizes
        leaves = []
        take_apart((args, kwargs), leaves)
        with undone([*leaves, *(t for _, t in params if not t.requires_grad)]):
            first = capture_dynamic(func, args, kwargs, params, limit, dynamic, bounds or {})
    else:
        first = again(args, kwargs)
    traced = Traced(first, again, [t for _, t in params])
    if not isinstance(func, Module):
        return Function(traced, getattr(func, "__name__", type(func).__name__))
    return _traced_module(func, traced)


def _traced_module(func, traced):
    made = TracedForward(traced, type(func).__name__)
    for name, value in func._parameters.items():
        made.register_parameter(name, value)
    for name, value in func._buffers.items():
        made.register_buffer(name, value, persistent=name not in func._non_persistent_buffers_set)
    for name, child in func._modules.items():
        made.add_module(name, child)
    made.training = func.training
    return made


def trace_methods(module, inputs, trace):
    """A traced module with more methods than forward."""
    if not isinstance(module, Module):
        raise AttributeError(f"jit.trace_module: a module is wanted, not {type(module).__name__}")
    for name in inputs:
        if not callable(getattr(module, name, None)):
            raise AttributeError(f"jit.trace_module: the {type(module).__name__} has no method '{name}'")
    if not inputs:
        raise ValueError("jit.trace_module: no method is named")
    made = trace(module, inputs["forward"]) if "forward" in inputs else None
    methods = {name: trace(getattr(module, name), given) for name, given in inputs.items() if name != "forward"}
    if made is None:
        made = _traced_module(module, next(iter(methods.values()))._traced)
        made.__dict__["forward"] = None
    for name, method in methods.items():
        made.__dict__[name] = method
    made.__dict__["_methods"] = methods
    return made


def checked(made, function, inputs, tolerance):
    """What was traced, which gives what the function gives for these inputs too."""
    for given in inputs:
        given = given if isinstance(given, tuple) else (given,)
        copies = [tuple(t.clone() if isinstance(t, Tensor) else t for t in given) for _ in range(2)]
        wanted, got = [], []
        one, other = take_apart(function(*copies[0]), wanted), take_apart(made(*copies[1]), got)
        for i, (a, b) in enumerate(zip(wanted, got, strict=False)):
            if (
                a.dtype != b.dtype
                or a.shape != b.shape
                or not a.allclose(b, rtol=tolerance, atol=tolerance, equal_nan=True)
            ):
                raise TracingCheckError(
                    f"trace: for inputs that were to be checked, result {i} of the function and of its program differ: the function "
                    "decides by values of tensors or of Python, or its calls are others each time"
                )
        if one != other:
            raise TracingCheckError(
                f"trace: for inputs that were to be checked, the function gives {one}, its program {other}"
            )
    return made


DEAD, COMMON, FREEZE, CONSTANTS, NORMS, DROPOUT = (1 << i for i in range(6))  # AJ_PASS_...


def optimized(program, passes):
    """Another program that gives the same."""
    return Program(_C.program_passes(program.handle, passes), program.form_in, program.form_out)


def frozen(module, numerics, kept=()):
    if isinstance(module, ScriptModule):
        for name in kept:
            if not hasattr(module, name):
                raise AttributeError(f"freeze: the module has no attribute '{name}', which is to be preserved")
    if "_functions" in module.__dict__:
        from ._script.face import frozen

        return frozen(module, kept)
    if not isinstance(module, TracedForward):
        return module
    if tensors := [name for name in kept if isinstance(getattr(module, name), (Tensor, Module))]:
        raise NotImplementedError(
            f"freeze: {', '.join(tensors)} of a traced module cannot stay, its parameters become constants; script() the module, or do "
            "not freeze it"
        )
    passes = DEAD | COMMON | FREEZE | CONSTANTS | DROPOUT | (NORMS if numerics else 0)
    traced = module._traced

    def again(args, kwargs):
        return optimized(traced.again(args, kwargs), passes)

    made = TracedForward(
        Traced(optimized(traced.program, passes), traced.again and again, traced.tensors), module.original_name
    )
    made.training = False
    return made


def save(m, f, extra_files=None):
    if methods := m.__dict__.get("_methods"):
        from ._script.mixed import methods_program

        return _written(methods_program(m, methods), f, extra_files)
    handle = m.__dict__.get("_handle")  # of what is scripted
    if handle is not None and getattr(m, "_path", ""):
        raise RuntimeError("jit.save: this is a part of a scripted module; save the whole")
    if handle is None and isinstance(m, ScriptModule) and not isinstance(m, (Function, TracedForward)):
        from ._script.face import scripted_module

        return save(scripted_module(m), f, extra_files)
    if handle is None and not isinstance(m, (Function, TracedForward)):
        raise RuntimeError(
            f"jit.save: a program is wanted, not {type(m).__name__}: jit.trace(module, example) or jit.script(module) makes one; parameters alone "
            "are saved by adjoin.save(module.state_dict(), file)"
        )
    _written(m._traced.program.handle if handle is None else handle, f, extra_files)


def _written(handle, f, extra_files):
    if not hasattr(f, "write"):
        _C.program_save(handle, os.fspath(f))
        _add(os.fspath(f), extra_files)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.aj")
        _C.program_save(handle, path)
        _add(path, extra_files)
        with open(path, "rb") as written:
            shutil.copyfileobj(written, f)


_EXTRA = "extra/"
EXPORTED = "program/extra/export.json"  # what export says of a program


def _add(path, files):
    """Puts files of the user's into the archive; programs that read it pass them over."""
    for name, content in (files or {}).items():
        with zipfile.ZipFile(path, "a", zipfile.ZIP_STORED) as archive:
            archive.writestr(f"{_EXTRA}{name}", content)


def places_of_files(archive):
    """Where the files of the user's are, by name; PyTorch's archives have them in a folder of their own."""
    names = (n for n in archive.namelist() if n != EXPORTED)
    return {m[1]: n for n in names if (m := re.fullmatch(r"(?:[^/]+/)?extra/(.+)", n))}


def take_files(f, files):
    """The contents of those of them that are named."""
    with zipfile.ZipFile(f) as archive:
        known = places_of_files(archive)
        for name in files:
            if name not in known:
                raise RuntimeError(
                    f"jit.load: there is no extra file {name!r} in the archive; it has {', '.join(known) or 'none'}"
                )
        for name in files:
            files[name] = archive.read(known[name])


def _plant(root, name, tensor, make=lambda path: Module()):
    """Registers a tensor under a dotted name, in modules that are made on the way."""
    *path, last = name.split(".")
    for i, part in enumerate(path):
        if part not in root._modules:
            root.add_module(part, make(".".join(path[: i + 1]) + "."))
        root = root._modules[part]
    if tensor.requires_grad:
        from ..nn.parameter import Parameter

        tensor = Parameter(tensor)
        root.register_parameter(last, tensor)
    else:
        root.register_buffer(last, tensor)
    return tensor


def load(f, map_location=None, extra_files=None):
    if hasattr(f, "read"):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "program.aj")
            with open(path, "wb") as copy:
                shutil.copyfileobj(f, copy)
            handle = _C.program_load(path)
            if extra_files:
                take_files(path, extra_files)
    else:
        handle = _C.program_load(os.fspath(f))
        if extra_files:
            take_files(os.fspath(f), extra_files)
    if _C.script_scripted(handle):
        from ._script.face import loaded

        made = loaded(handle, _plant)
        return made if map_location is None else made.to(map_location)
    form_in, form_out = _C.program_forms(handle)
    n_in, n_out = len(_C.program_values(handle, INPUT)), len(_C.program_values(handle, RESULT))
    form_in = json.loads(form_in) if form_in else {"t": [{"t": list(range(n_in))}, {"d": {}}]}
    form_out = json.loads(form_out) if form_out else (0 if n_out == 1 else {"t": list(range(n_out))})
    program = Program(handle, form_in, form_out)
    made = TracedForward(Traced(program), "forward")
    for i, (name, tensor) in enumerate(program.weights(PARAM)):
        _C.program_set_weight(handle, PARAM, i, _plant(made, name, tensor))
    made.training = False
    return made if map_location is None else made.to(map_location)
