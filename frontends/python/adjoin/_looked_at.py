"""adjoin._looked_at: what a function reads besides its arguments, and what it must not do if its program shall run in its place."""

import builtins
import dis
import functools
import os
import sys
import types

from . import _C
from ._names import is_ours
from .nn.modules import _calls
from .nn.modules.module import Module
from .optim import optimizer as _optimizer
from .optim.lr_scheduler import LRScheduler
from .optim.optimizer import Optimizer

HERE = os.path.dirname(__file__) + os.sep
LIBRARY = tuple(os.path.join(os.path.dirname(os.__file__), name) for name in sorted(sys.stdlib_module_names))
WRITES = {"STORE_GLOBAL", "DELETE_GLOBAL", "STORE_ATTR", "DELETE_ATTR", "DELETE_DEREF"}
IMPURE = frozenset(
    getattr(builtins, name)
    for name in "print input open exec eval compile setattr delattr globals locals vars __import__ breakpoint".split()
)
# Modules of C functions whose results depend on their arguments alone.
PURE = {
    "builtins",
    "math",
    "cmath",
    "operator",
    "_operator",
    "itertools",
    "functools",
    "_functools",
    "_collections",
    "_abc",
    "_thread",
}
VALUES = (
    int,
    float,
    complex,
    str,
    bytes,
    list,
    tuple,
    dict,
    set,
    frozenset,
    range,
    slice,
    type,
    types.CodeType,
    types.MethodType,
)
# Who names one of these may read an optimizer's settings.
SETTINGS = set("param_groups state_dict defaults __dict__ __getstate__ getattr vars repr".split())
GRADIENTS = {"backward", "grad"}  # who names one of these finds gradients, or may
MOST = 20_000  # things that are looked at


class Looked:
    """Everything that a function can reach and read: what is watched, and the tensors of it by name."""

    def __init__(self, function, args=(), kwargs=None):
        self.watched, self.tensors = [], []
        self.moving, self.optimizers = [], []  # what an optimizer begins by itself
        self.seen, self.codes, self.kept = set(), set(), []
        self.fine = set()  # codes that were checked
        for hooks in (
            _calls._global_forward_pre,
            _calls._global_forward,
            _calls._global_backward,
            _calls._global_backward_pre,
        ):
            self.watched.append(hooks)
        self.value(function, "f")
        for o in (*args, *(kwargs or {}).values()):
            if not isinstance(o, _C.Tensor):
                self.argument(o)
        self.before = [contents(w) for w in self.watched]
        self.begun = [contents(w) for w in self.moving]

    def remembered(self):
        """Itself, as it stands after a call."""
        self.before = [contents(w) for w in self.watched]
        return self

    def stands(self):
        """Would a look see the same?"""
        return self.before == [contents(w) for w in self.watched] and self.begun == [contents(w) for w in self.moving]

    @property
    def trains(self):
        """Does it find gradients, or may it?"""
        return bool(self.moving) or any(name in GRADIENTS for code in self.codes for name in code.co_names)

    def open_settings(self):
        """Groups of optimizers whose settings nobody else reads."""
        if any(name in SETTINGS for code in self.codes for name in code.co_names):
            return []
        groups = [g for o in self.optimizers if id(o.param_groups) not in self.seen for g in o.param_groups]
        return [g for g in groups if type(g) is dict and id(g) not in self.seen]

    def argument(self, o):
        if type(o) in (tuple, list):
            for x in o:
                self.argument(x)
        elif type(o) is dict:
            for x in o.values():
                self.argument(x)
        elif not isinstance(o, _C.Tensor):
            if not (o is None or callable(o) or isinstance(o, VALUES) or is_ours(type(o).__module__)):
                raise TypeError(
                    f"compile(replay=True): an argument is a {type(o).__name__}, in which a change would not be seen; give "
                    "tensors, numbers, text, modules, or tuples, lists and dictionaries of them"
                )
            self.value(o, "argument")

    def value(self, o, name):
        """name: where it was found."""
        if id(o) in self.seen or isinstance(o, (type(None), bool, int, float, str, bytes, types.ModuleType)):
            return
        self.seen.add(id(o))
        self.kept.append(o)
        if len(self.seen) > MOST:
            raise RuntimeError(
                "compile(replay=True): the function can reach too much to be looked at; leave replay out"
            )
        if isinstance(o, Module):
            self.module(o, name)
        elif isinstance(o, _C.Tensor):
            self.tensors.append((name, o))
        elif isinstance(o, Optimizer):
            self.optimizer(o, name)
        elif isinstance(o, LRScheduler):
            raise RuntimeError(
                f"compile(replay=True): the function can reach '{name}', a {type(o).__name__}, whose steps its program would not "
                "make: call it outside of the function, or leave replay out"
            )
        elif isinstance(o, (types.MethodType, types.MethodWrapperType, types.BuiltinMethodType)):
            self.value(o.__self__, name)
            self.value(getattr(o, "__func__", None), name)
        elif isinstance(o, types.FunctionType):
            self.function(o)
        elif isinstance(o, _C.compiled):
            self.value(o.__wrapped__, name)
        elif isinstance(o, dict) and len(o) < 1000:
            self.watched.append(o)
            for key, v in list(o.items()):
                self.value(v, f"{name}.{key}")
        elif type(o) in (list, tuple) and len(o) < 1000:
            if type(o) is list:
                self.watched.append(o)
            for i, v in enumerate(o):
                self.value(v, f"{name}.{i}")

    def module(self, m, name):
        own = vars(m)
        self.watched.append(own)
        if own.get("_backward_hooks") or own.get("_backward_pre_hooks"):
            raise RuntimeError(
                f"compile(replay=True): {type(m).__name__} has backward hooks, which no program would call; remove them, or leave "
                "replay out"
            )
        for part in ("_parameters", "_buffers", "_modules"):
            held = own.get(part, {})
            self.seen.add(id(held))
            self.watched.append(held)
            for key, v in held.items():
                if v is not None:
                    self.value(v, f"{name}.{key}")
        for key, v in own.items():
            self.value(v, f"{name}.{key}")
        for kind in type(m).__mro__:
            if not is_ours(kind.__module__):
                for v in vars(kind).values():
                    if isinstance(v, types.FunctionType) and v.__name__ not in ("__init__", "__setattr__"):
                        self.names(v.__code__, v.__globals__)

    def optimizer(self, o, name):
        """Its settings and its state; it may begin the latter in the first step."""
        self.optimizers.append(o)
        self.watched += [_optimizer._global_pre_hooks, _optimizer._global_post_hooks]
        self.moving.append(vars(o))
        if any(vars(o).get(hooks) for hooks in ("_optimizer_step_pre_hooks", "_optimizer_step_post_hooks")):
            raise RuntimeError(
                f"compile(replay=True): {type(o).__name__} has hooks, which no program would call; remove them, or leave replay out"
            )
        self.watched += [o._optimizer_step_pre_hooks, o._optimizer_step_post_hooks]
        self.moving += [o.param_groups, o.state]
        for i, group in enumerate(o.param_groups):
            self.moving += [group, group["params"]]
            for k, p in enumerate(group["params"]):
                self.value(p, f"{name}.{i}.{k}")
            for key, v in group.items():
                if isinstance(v, _C.Tensor):
                    self.value(v, f"{name}.{i}.{key}")
        for i, own in enumerate(o.state.values()):
            if isinstance(own, dict):
                self.moving.append(own)
                for key, v in own.items():
                    if isinstance(v, _C.Tensor):
                        self.value(v, f"{name}.state.{i}.{key}")

    def function(self, f):
        if f.__code__.co_filename.startswith(HERE):
            return
        for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            self.watched.append(cell)
            try:
                self.value(cell.cell_contents, name)
            except ValueError:
                pass  # not bound yet
        for o in (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values()):
            self.value(o, f"{f.__name__}.default")
        self.names(f.__code__, f.__globals__)

    def names(self, code, space):
        """The globals that code names."""
        if code in self.codes:
            return
        self.codes.add(code)
        for inner in code.co_consts:
            if isinstance(inner, types.CodeType):
                self.names(inner, space)
        for name in code.co_names:
            if name in space and not isinstance(space[name], types.ModuleType):
                self.watched.append((space, name))
                self.value(space[name], name)

    def refuse(self, code, line, what):
        raise RuntimeError(
            f"compile(replay=True): {code.co_name} ({code.co_filename}:{line}) {what}, which would happen no more when its "
            "program runs in its place: leave replay out, or do it outside"
        )

    def check_code(self, code):
        """Nothing but tensors is written."""
        for line, name, around in writes_of(code):
            if around:
                self.refuse(code, line, f"assigns '{name}' of the function around it")
            if name == "grad" and self.trains:  # what becomes of gradients is known
                continue
            if code.co_name not in ("__init__", "<module>", "__post_init__"):
                self.refuse(code, line, f"assigns '{name}'")

    def watching(self):
        return Watching(self)

    def check(self, ran, called):
        """What ran is a function of what is watched: who does more is refused."""
        for code, space in ran.items():
            if code.co_name != "<module>" and code not in self.fine:
                self.check_code(code)
                self.names(code, space)
                self.fine.add(code)
        for what, (code, line) in called.items():
            if not pure(what):
                self.refuse(code, line, f"calls {getattr(what, '__qualname__', what)}")
        for w, was in zip(self.watched, self.before, strict=False):
            if contents(w) != was:
                self.refuse(*self.place(), f"changes {what_changed(w)}")

    def place(self):
        code = next(iter(self.codes), compile("0", "<unknown>", "eval"))
        return code, code.co_firstlineno


@functools.lru_cache(1024)
def writes_of(code):
    """What code writes besides names of its own: the line, the name, whether that is of the function around it."""
    found, line = [], code.co_firstlineno
    for step in dis.get_instructions(code):
        line = step.starts_line or line
        around = step.opname == "STORE_DEREF" and step.argval in code.co_freevars
        if around or step.opname in WRITES:
            found.append((line, step.argval, around))
    return found


class Watching:
    """A with statement: which functions run inside, and which of C they call."""

    def __init__(self, looked):
        self.looked, self.ran, self.called = looked, {}, {}

    def __enter__(self):
        self.before = sys.getprofile()
        if hasattr(self.before, "disable"):  # cProfile's, which is no function
            self.before.disable()
        sys.setprofile(self.note)

    def note(self, frame, event, what):
        code = frame.f_code
        if code.co_filename.startswith((HERE, "<frozen")):
            return
        if event == "call" and not code.co_filename.startswith(LIBRARY):
            self.ran.setdefault(code, frame.f_globals)
        elif event == "c_call" and id(what) not in self.called:
            self.called[id(what)] = what, code, frame.f_lineno

    def __exit__(self, kind, error, traceback):
        if hasattr(self.before, "enable"):
            sys.setprofile(None)
            self.before.enable()
        else:
            sys.setprofile(self.before)
        if kind is None:
            self.looked.check(self.ran, {what: at for what, *at in self.called.values()})


def pure(what):
    """Is the C function's result one of its arguments alone?"""
    owner = getattr(what, "__self__", None)
    if what in IMPURE:
        return False
    if owner is None or isinstance(owner, types.ModuleType):
        module = what.__module__ or getattr(owner, "__name__", "") or "builtins"
        return module in PURE or is_ours(module)
    return isinstance(owner, (*VALUES, _C.Tensor)) or is_ours(type(owner).__module__)


def what_changed(w):
    return (
        "a list"
        if isinstance(w, list)
        else f"'{w[1]}'"
        if isinstance(w, tuple)
        else "a variable around it"
        if isinstance(w, types.CellType)
        else "a dictionary or a module's attribute"
    )


def contents(w):
    """The identities of what is watched now."""
    if isinstance(w, tuple):
        return id(w[0].get(w[1]))
    if isinstance(w, dict):
        return [(k if isinstance(k, str) else id(k), id(v)) for k, v in w.items()]
    if isinstance(w, list):
        return [id(v) for v in w]
    try:
        return id(w.cell_contents)
    except ValueError:
        return None
