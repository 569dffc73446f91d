"""adjoin.library: ops defined in Python, under PyTorch's names: custom_op, Library, register_kernel, register_fake, register_autograd.

An op of this kind stands in the registry like any other: every language that loads libadjoin in this process can call it, and
``adjoin.ops`` has it. Defined again, as a notebook does, it takes its own place.
"""

import collections.abc
import contextlib
import inspect
import logging
import re
import string
import threading
import types
import typing

from . import _aten, _autograd_fallback, _C
from ._op_overload import Tag
from .autograd.function import Function
from .testing._samples import Op, mapped, tensors_in

_DEVICES = {
    "CPU": "cpu",
    "CUDA": "cuda",
    "Meta": "meta",
    "CompositeExplicitAutograd": "",
    "CompositeImplicitAutograd": "recorded",
    "Autograd": "autograd",
    "AutogradCPU": "autograd cpu",
    "AutogradCUDA": "autograd cuda",
}
_WORDS = {
    "SymInt": "int",
    "ScalarType": "dtype",
    "Device": "device",
    "number": "Scalar",
    "MemoryFormat": "memory_format",
}
_PLAIN = {
    int: "int",
    float: "float",
    bool: "bool",
    str: "str",
    _C.Tensor: "Tensor",
    _C.dtype: "dtype",
    _C.device: "device",
}
_definitions = {}


class _Below(threading.local):
    on = False


_below = _Below()


class _AutoDispatchBelowAutograd:
    """In a ``with`` block nothing is recorded, and kernels of the key Autograd are passed over: they call the op again."""

    def __enter__(self):
        self._before, _below.on = _below.on, True
        self._tape = _C.no_grad()
        self._tape.__enter__()

    def __exit__(self, *exc):
        _below.on = self._before
        self._tape.__exit__(*exc)


_waiting = {}  # name of an op that nobody has defined yet -> the kernels that it was given, "meta" those of register_fake
_waiting_of_libraries = {}  # name of such an op -> those among them that Library.impl gave


def __getattr__(name):
    if name in ("opcheck", "OpCheckError"):
        from .testing import opcheck

        return getattr(opcheck, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), "opcheck", "OpCheckError"})


def _type_text(annotation, where):
    """The schema's word for an annotation."""
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, args = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        rest = [a for a in args if a is not type(None)]
        if len(rest) == 1 < len(args):
            return _type_text(rest[0], where) + "?"
        if set(rest) <= {int, float, bool, complex}:
            return "Scalar" + ("?" if len(rest) < len(args) else "")
    if origin in (list, collections.abc.Sequence) and len(args) == 1:
        text = _type_text(args[0], where)
        if not text.endswith("]") and (text == "Tensor?" or not text.endswith("?")):
            return text + "[]"
    raise ValueError(
        f"infer_schema: {where}: the annotation {annotation!r} has no word in a schema; Tensor, int, float, bool, str, dtype, device, "
        "Optional and Sequence of them have"
    )


def _result_text(annotation):
    if annotation in (None, type(None)):
        return "()"
    if typing.get_origin(annotation) is tuple:
        items = typing.get_args(annotation)
        return "(" + ", ".join(f"{_type_text(a, 'result')} r{i}" for i, a in enumerate(items)) + ")"
    return _type_text(annotation, "result")


def infer_schema(prototype_function, /, *, mutates_args=(), op_name=None):
    """The schema that a function's annotations say; mutates_args names the tensors that it writes to."""
    hints = typing.get_type_hints(prototype_function)
    signature = inspect.signature(prototype_function)
    if isinstance(mutates_args, str) and mutates_args != "unknown":
        raise ValueError(
            f"infer_schema: mutates_args is the string {mutates_args!r}; a list of names is wanted, or 'unknown' for all tensors"
        )
    written = set(signature.parameters) if mutates_args == "unknown" else set(mutates_args)
    parts, letter = [], iter("abcdefghijklmnopqrstuvwxyz")
    for name, p in signature.parameters.items():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or name not in hints:
            raise ValueError(
                f"infer_schema: parameter {name!r} needs an annotation, and *args and **kwargs have no schema"
            )
        if p.kind is p.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        text = _type_text(hints[name], f"parameter {name!r}")
        if name in written and text.startswith("Tensor"):
            text = f"Tensor({next(letter)}!)" + text.removeprefix("Tensor")
        parts.append(f"{text} {name}" + ("" if p.default is p.empty else f"={_literal(p.default)}"))
    if lost := written - set(signature.parameters):
        raise ValueError(f"infer_schema: mutates_args names {sorted(lost)}, which are no parameters")
    if "return" not in hints:
        raise ValueError("infer_schema: the result needs an annotation; -> None if there is none")
    return f"{op_name or ''}({', '.join(parts)}) -> {_result_text(hints['return'])}"


def _literal(value):
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_literal(v) for v in value) + "]"
    if value is None or isinstance(value, (bool, int, float, str)):
        return repr(value)
    if isinstance(value, _C.dtype):
        return str(value).rpartition(".")[2]
    if isinstance(value, _C.device):
        return repr(str(value))
    raise ValueError(f"infer_schema: a default of {value!r} has no text in a schema")


class _Context:
    """The ctx of register_autograd: attributes of the user's, and what the node keeps."""

    def __init__(self, node):
        self.__dict__["_node"] = node

    def save_for_backward(self, *tensors):
        """Kept with their versions; found again in saved_tensors."""
        self._node.save_for_backward(*tensors)

    def set_materialize_grads(self, on):
        """False: gradients that are zero arrive as None."""
        self._node.set_materialize_grads(on)

    def mark_non_differentiable(self, *tensors):
        """Results that have no gradient."""
        self._node.mark_non_differentiable(*tensors)

    @property
    def saved_tensors(self):
        """What save_for_backward was given."""
        return self._node.saved_tensors

    @property
    def needs_input_grad(self):
        """Per argument of the op: is its gradient wanted? A list for a list of tensors."""
        wanted = iter(self._node.needs_input_grad[3:])
        some = [[next(wanted) for _ in range(count)] for count in self._node.counts]
        return tuple(w if listed else any(w) for w, listed in zip(some, self._node.lists, strict=True))


def _each(results):
    return results if isinstance(results, (list, tuple)) else [results]


class _Recorded(Function):
    """The node of a call: tensors stand flat among its arguments."""

    @staticmethod
    def forward(node, definition, args, kept, *tensors):
        results = definition.run(args)
        kept.append(results)
        parts = [results] if len(Op(definition.name).results) == 1 else _each(results)
        node.form = [len(r) if isinstance(r, (list, tuple)) else isinstance(r, _C.Tensor) and -1 for r in parts]
        node.definition, node.user = definition, _Context(node)
        node.counts = [len(tensors_in([a])) if isinstance(a, (list, tuple)) or tensors_in([a]) else 0 for a in args]
        node.lists = [isinstance(a, (list, tuple)) for a in args]
        if definition.setup:
            given = inspect.signature(definition.setup).parameters
            places, words = definition.by_word(args)
            names = {"inputs": tuple(places), "keyword_only_inputs": words, "output": results}
            definition.setup(node.user, **{k: v for k, v in names.items() if k in given})
        node.user.__dict__["_node"] = None  # the node owns it, not the other way round
        flat = tensors_in(_each(results))
        return tuple(flat) if len(flat) > 1 else flat[0]

    @staticmethod
    def backward(node, *grads):
        definition = node.definition
        if definition.backward is None:
            raise NotImplementedError(
                f"{definition.name}: no derivative is registered; give it one with register_autograd, or detach the inputs"
            )
        node.user.__dict__["_node"] = node
        left = iter(grads)
        taken = [None if n is False else next(left) if n == -1 else [next(left) for _ in range(n)] for n in node.form]
        given = definition.backward(node.user, *taken)
        node.user.__dict__["_node"] = None
        given = given if isinstance(given, tuple) else (given,)
        wanted = len(node.counts) - len(definition.words)
        if len(given) < wanted and not any(node.counts[len(given) : wanted]):  # numbers at the end may be left out
            given += (None,) * (wanted - len(given))
        if len(given) != wanted:
            raise RuntimeError(
                f"{definition.name}: its backward returned {len(given)} gradients, the op has {wanted} arguments"
            )
        given += (None,) * len(definition.words)
        flat = [None, None, None]
        for grad, count, listed in zip(given, node.counts, node.lists, strict=True):
            flat += ([None] * count if grad is None else list(grad)) if listed else [grad] * bool(count)
        return tuple(flat)


class _Batched(Function):
    """A call under vmap of an op that has a rule for batches: tensors stand flat behind what says where they belong."""

    @staticmethod
    def forward(node, definition, args, *tensors):
        raise RuntimeError(f"{definition.name}: the rule of register_vmap serves tensors of a batch alone")

    @staticmethod
    def vmap(info, in_dims, definition, args, *tensors):
        given, dims = iter(tensors), iter(in_dims[2:])
        whole = [_put(a, given) for a in args]
        places, words = definition.by_word(whole)
        where = tuple(_put(a, dims) if tensors_in([a]) else None for a in args)
        return definition.batched(info, where[: len(places)], *places, **words)


def _put(arg, items):
    """An argument with the next items in the place of its tensors."""
    if isinstance(arg, (list, tuple)):
        return [_put(a, items) for a in arg]
    return next(items) if isinstance(arg, _C.Tensor) else arg


def _is_of_batch(tensor):
    level = _C.transform_level(tensor)
    return level > 0 and _C.transform_batched_at(tensor, level)


class _Definition:
    """What was registered for one op; called by the core with every argument in order."""

    def __init__(self, name, schema, doc="", tags=()):
        self.name, self.kernels, self.backward, self.setup = name, {}, None, None
        self.batched, self.autocast, self.tags = None, {}, [t for t in tags if isinstance(t, Tag)]
        self.devices = {}  # defaults of parameters, by place
        self.open = False  # without a derivative, are the ops of its kernel recorded?
        self.may_alias = _waiting_of_libraries.pop(
            name, set()
        )  # of Library.impl: PyTorch lets those return an argument
        self.kernels.update(_waiting.pop(name, {}))
        words = " ".join(["function-only", *(t for t in tags if isinstance(t, str))])
        _C.define_op(f"python:{name}", schema, doc or "", words, self)
        self.params = Op(name).params
        self.chosen = next((i for i, p in enumerate(self.params) if p.base == "device"), None)
        self.written = [i for i, p in enumerate(self.params) if p.written]
        self.words = [word for word, _, keyword, _, _ in _aten._signature.__wrapped__(name) if keyword]
        self.gives_back = "!" in schema.partition("->")[2]
        _definitions[name] = self

    def by_word(self, args):
        """The arguments as kernels take them: by place, and by word what the schema has behind the star."""
        if not self.words:
            return args, {}
        count = len(args) - len(self.words)
        return args[:count], dict(zip(self.words, args[count:], strict=True))

    def _called(self, kernel, args):
        places, words = self.by_word(args)
        return kernel(*places, **words)

    def __call__(self, *args):
        if self.devices:
            args = tuple(self.devices.get(i) if a is None else a for i, a in enumerate(args))
        tensors = tensors_in(args)
        if not _below.on and (kernel := self._above_the_tape(tensors)) is not None:
            return self._called(kernel, args)
        if "recorded" in self.kernels:
            return self._called(self.kernels["recorded"], args)
        if self.autocast and tensors and (dtype := self.autocast.get(tensors[0].device.type)) is not None:
            from .amp.autocast_mode import autocast, is_autocast_enabled

            device = tensors[0].device.type
            if is_autocast_enabled(device):
                with autocast(device, enabled=False):
                    return self(*mapped(lambda t: t.to(dtype) if t.is_floating_point() else t, args, {})[0])
        if self.batched is not None and any(map(_is_of_batch, tensors)):
            return _Batched.apply(self, args, *tensors)
        if not (_C.is_grad_enabled() and any(t.requires_grad for t in tensors)):
            return self.run(args)
        open = self.open and self.backward is None and (_autograd_fallback.mode != "error" or not self.written)
        if open:
            return _autograd_fallback.followed(
                self.name, self.run(args, True), tensors, self.placed, lambda r: tensors_in(_each(r))
            )
        if any(t.requires_grad for i in self.written for t in tensors_in([args[i]])):
            raise RuntimeError(f"{self.name}: it writes to a tensor that requires grad; detach it")
        kept = []
        recorded = _Recorded.apply(self, args, kept, *tensors) if self.gives_tensors() else kept.append(self.run(args))
        several = iter(recorded if isinstance(recorded, tuple) else [recorded])
        return self.placed(kept[0], several)

    def _above_the_tape(self, tensors):
        if not any(key.startswith("autograd") for key in self.kernels):
            return None
        device = tensors[0].device.type if tensors else "cpu"
        return self.kernels.get(f"autograd {device}", self.kernels.get("autograd"))

    def gives_tensors(self):
        """Whether a result can carry a gradient."""
        return any(r.tensor for r in Op(self.name).results)

    def placed(self, results, tensors):
        """The results with the recorded tensors in the place of the plain ones."""
        if not isinstance(results, (tuple, list)):
            return next(tensors) if isinstance(results, _C.Tensor) else results
        return tuple(self.placed(r, tensors) for r in results)

    def asked_for(self, args):
        """The type of the device that an argument names, of an op that is given no tensor."""
        asked = None if self.chosen is None else args[self.chosen]
        return "cpu" if asked is None else _C.device(asked).type

    def run(self, args, recorded=False):
        """The kernel of the arguments' device."""
        tensors = tensors_in(args)
        device = tensors[0].device.type if tensors else self.asked_for(args)
        kernel = self.kernels.get(device) or (self.kernels.get("") if device != "meta" else None)
        if kernel is None:
            how = (
                "a function for shapes with register_fake"
                if device == "meta"
                else f"one with register_kernel({device!r})"
            )
            raise NotImplementedError(f"{self.name}: no kernel for the device {device!r}; give it {how}")
        versions = [(t, t._version) for i in self.written for t in tensors_in([args[i]])]
        if not recorded and any(t.requires_grad for t in tensors):  # detached, so that .numpy() works
            args = mapped(lambda t: t.detach() if t.requires_grad else t, args, {})[0]
        with contextlib.nullcontext() if recorded else _C.no_grad():
            results = self._called(kernel, args)
        for t, version in versions:
            if t._version == version:
                _C.bump_version(t)
        self._refuse_aliases(kernel, results, args, tensors, versions)
        if kernel in self.may_alias:
            given = {id(t) for t in [*tensors, *tensors_in(args)]} - {id(t) for t, _ in versions}
            if any(id(r) in given for r in tensors_in(_each(results))):
                return self.placed(results, (t.view_as(t) if id(t) in given else t for t in tensors_in(_each(results))))
        return results

    def _refuse_aliases(self, kernel, results, args, tensors, versions):
        if kernel in self.may_alias:
            return
        given = [*tensors, *tensors_in(args)]
        given = [t for t in given if not self.gives_back or all(t is not v for v, _ in versions)]
        places = {id(t) for t in given}, {_place(t) for t in given} - {0}
        if any(id(r) in places[0] or _place(r) in places[1] for r in tensors_in(_each(results))):
            raise RuntimeError(
                f"{self.name}: results may not alias arguments: it returned one of its arguments, or a view of one; return a copy: .clone()"
            )


def _place(tensor):
    """What tensors of one memory share; 0 without memory."""
    return tensor._storage_info()[3] if tensor.device.type != "meta" and tensor.numel() else 0


class CustomOpDef:
    """What custom_op() returns: call it, or register more."""

    def __init__(self, definition, function):
        self._definition, self._qualname, self._init_fn = definition, definition.name, function
        self._namespace, self._name = definition.name.split("::")
        self._off = {}  # devices whose kernels are disabled
        self.__doc__, self.__name__ = function.__doc__, self._name

    def __call__(self, *args, **kwargs):
        return _C.find_op(self._qualname)(*args, **kwargs)

    def __repr__(self):
        return f"<CustomOpDef({self._qualname})>"

    @property
    def _opoverload(self):
        from . import ops

        return getattr(getattr(ops, self._namespace), self._name).default

    def register_kernel(self, device_types, fn=None, /):
        """What runs on these devices; as a decorator too."""
        return register_kernel(self, device_types, fn)

    @contextlib.contextmanager
    def set_kernel_enabled(self, device_type, enabled=True):
        """In a ``with`` block the kernel of register_kernel for the device serves, or the op's own function does."""
        kernels, log = self._definition.kernels, logging.getLogger("torch._library.custom_ops")
        before = dict(kernels)
        known, off = device_type in kernels, device_type in self._off
        if not known and not off:
            log.warning("set_kernel_enabled: no kernel was registered for this device type: %s, %s", self, device_type)
        elif enabled == known:
            log.warning("set_kernel_enabled: the kernel is already %s: %s", "enabled" if enabled else "disabled", self)
        elif enabled:
            kernels[device_type] = self._off[device_type]
        else:
            self._off[device_type] = kernels.pop(device_type)
        try:
            yield
        finally:
            kernels.clear()
            kernels.update(before)

    def register_torch_dispatch(self, torch_dispatch_class, fn=None, /):
        """What the op does in a mode, or with tensors of a class, that has a ``__torch_dispatch__``."""
        return register_torch_dispatch(self, torch_dispatch_class, fn)

    def register_fake(self, fn, /):
        """Shapes and dtypes from tensors without data."""
        return register_fake(self, fn)

    def register_vmap(self, func=None, /):
        """What runs for a batch: func(info, in_dims, *args) gives the results and where their samples are."""
        return register_vmap(self, func)

    def register_autocast(self, device_type, cast_inputs, /):
        """The dtype of the op's floating-point inputs under autocast."""
        register_autocast(self, device_type, cast_inputs)

    def register_autograd(self, backward, /, *, setup_context=None):
        """The derivative: backward(ctx, *grads) gives a gradient, or None, per argument."""
        return register_autograd(self, backward, setup_context=setup_context)


def _split(name):
    if not re.fullmatch(r"[a-z_][a-z0-9_]*::[A-Za-z_]\w*(\.\w+)?", name):
        raise ValueError(f"custom_op: {name!r}: a name is SPACE::NAME, e.g. 'mine::squash'")
    return name


def custom_op(name, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """Makes an op of a Python function: the schema is read off its annotations."""

    def define(function):
        text = schema or infer_schema(function, mutates_args=mutates_args)
        text, devices = _without_devices(text)
        definition = _Definition(_split(name), name + _adapted(text), function.__doc__, tags or ())
        definition.devices = {i: devices[p.name] for i, p in enumerate(definition.params) if p.name in devices}
        if device_types:
            _refuse_without_a_device(definition.params, name)
        for device in [device_types] if isinstance(device_types, str) else device_types or [""]:
            definition.kernels[device] = function
        return CustomOpDef(definition, function)

    return define(fn) if fn else define


def _without_devices(schema):
    """A schema without the devices that are defaults, which it has no word for, and those by parameter."""
    pattern = r"\b(?:device|Device) (\w+)=['\"]([\w:]+)['\"]"
    devices = {name: _C.device(device) for name, device in re.findall(pattern, schema)}
    return re.sub(pattern, r"device? \1=None", schema), devices


def _adapted(schema):
    schema = re.sub(r"\)\s*->\s*", ") -> ", schema)
    free = (letter for letter in string.ascii_lowercase if f"({letter}" not in schema)
    schema = re.sub(r"\bTensor!", lambda m: f"Tensor({next(free)}!)", schema)  # written, and nothing else is said of it
    return re.sub(r"\b(" + "|".join(_WORDS) + r")\b", lambda m: _WORDS[m[0]], schema)


def _name_of(op):
    return op if isinstance(op, str) else getattr(op, "_qualified", None) or getattr(op, "_qualname", None)


def _brought(op):
    """Is it of a pack that stands in for its package's compiled extension? That brings kernels, shapes and derivatives."""
    from . import ops

    name = _name_of(op)
    return bool(name) and name not in _definitions and name.partition("::")[0] in ops.stood_in


def _definition_of(op, what):
    name = _name_of(op)
    if name not in _definitions:
        raise ValueError(
            f"{what}: {op!r} was not defined in Python; custom_op and Library.define do; plugins bring their own"
        )
    return _definitions[name]


def _kernels_of(op, what):
    """An op's kernels; those of a name that nobody has defined yet wait for whoever defines it."""
    if isinstance(op, str) and op not in _definitions and _C.find_op(op) is None:
        return _waiting.setdefault(op, {})
    return _definition_of(op, what).kernels


def _decorated(fn, register):
    if fn is not None:
        return register(fn)
    return lambda f: (register(f), f)[1]


def register_kernel(op, device_types, func=None, /, *, lib=None):
    """What an op runs on these devices ("cpu", "cuda"; None: on all)."""
    if _brought(op):
        return _decorated(func, lambda f: None)
    kernels = _kernels_of(op, "register_kernel")
    names = [device_types] if isinstance(device_types, str) else device_types or [""]
    definition = _definitions.get(_name_of(op))
    if definition and any(n and n not in _DEVICES for n in names):
        _refuse_without_a_device(definition.params, definition.name)
    return _decorated(func, lambda f: kernels.update({_DEVICES.get(d, d): f for d in names}))


def _refuse_without_a_device(params, name):
    """Nothing says which of its kernels an op runs that takes neither a tensor nor a device."""
    if not any(p.tensor or p.base == "device" for p in params):
        raise ValueError(
            f"{name}: kernels by device: Functions without tensor inputs are required to have a `device: torch.device` argument, "
            "which chooses the kernel"
        )


def register_fake(op, func=None, /, *, lib=None, _stacklevel=1):
    """What an op gives for tensors without data."""
    if _brought(op):
        return _decorated(func, lambda f: None)
    kernels = _kernels_of(op, "register_fake")
    if "recorded" in kernels:
        raise RuntimeError(
            f"register_fake: {_name_of(op)} has a kernel for CompositeImplicitAutograd already, whose ops say the shapes; leave one out"
        )
    definition = _definitions.get(_name_of(op))
    if definition and kernels.get("meta") in definition.may_alias:
        raise RuntimeError(
            f"register_fake: {definition.name} already has a Meta implementation, given by Library.impl; leave one out"
        )
    return _decorated(func, lambda f: kernels.update(meta=f))


register_meta = register_fake


def impl_abstract(qualname, func=None, *, lib=None, _stacklevel=1):
    """The older name of register_fake."""
    return register_fake(qualname, func)


def register_autograd(op, backward, /, *, setup_context=None, lib=None):
    """An op's derivative; setup_context(ctx, inputs, output) keeps what backward needs."""
    if _brought(op):
        return
    definition = _definition_of(op, "register_autograd")
    if any(p.name in definition.words and p.tensor for p in definition.params):
        raise NotImplementedError(
            f"register_autograd: {definition.name} has kwarg-only Tensor args, which get no gradient; put them before the star"
        )
    if definition.written:
        raise RuntimeError(
            f"register_autograd: {definition.name} writes to its arguments; ops that do have no derivative"
        )
    definition.backward, definition.setup = backward, setup_context


def register_vmap(op, func=None, /, *, lib=None):
    """What an op does for a batch: func(info, in_dims, *args) gives (results, out_dims), as Function.vmap does."""
    definition = _definition_of(op, "register_vmap")
    return _decorated(func, lambda f: setattr(definition, "batched", f))


def register_torch_dispatch(op, torch_dispatch_class, func=None, /, *, lib=None):
    """What an op does in a mode (``func(mode, func, types, args, kwargs)``), or with tensors of a class
    (``func(cls, func, types, args, kwargs)``), in the place of its ``__torch_dispatch__``."""
    from .utils import _python_dispatch

    name = _name_of(op)
    return _decorated(func, lambda f: _python_dispatch.rules.update({(name, torch_dispatch_class): f}))


def register_autocast(op, device_type, cast_inputs, /, *, lib=None):
    """Under autocast of a device the op's floating-point inputs are cast to ``cast_inputs``, and autocast is off inside."""
    if not isinstance(cast_inputs, _C.dtype) or not cast_inputs.is_floating_point:
        raise TypeError(f"register_autocast: cast_inputs must be a floating-point dtype, it is {cast_inputs!r}")
    _definition_of(op, "register_autocast").autocast[device_type] = cast_inputs


def fallthrough_kernel():
    """For Library.impl: the key is passed over, another kernel serves."""
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def get_ctx():
    """The context of a function for shapes; sizes that depend on values have none here."""
    raise NotImplementedError(
        "get_ctx: sizes that depend on values are not there: without data a function of register_fake must know each size"
    )


def define(qualname, schema, alias_analysis="", *, lib=None, tags=()):
    """An op without a kernel yet: impl() gives it some. ``define(library, "f(Tensor x) -> Tensor")`` decorates its kernel."""
    if isinstance(qualname, Library):
        return lambda f: (qualname.impl(qualname.define(schema, alias_analysis), f), f)[1]
    _Definition(_split(qualname), qualname + _adapted(schema), "", tags).open = True


def impl(qualname, types, func=None, *, lib=None):
    """A kernel of an op, by devices or by PyTorch's names of keys. ``impl(library, "f", "CPU")`` decorates one, too."""
    if isinstance(qualname, Library):
        key = func if isinstance(func, str) else ""
        return lambda f: (qualname.impl(types, f, key), f)[1]
    return register_kernel(qualname, "" if types == "default" else types, func)


@contextlib.contextmanager
def _scoped_library(*args, **kwargs):
    """A Library for the time of a block: what it has registered is undone after it."""
    library = Library(*args, **kwargs)
    try:
        yield library
    finally:
        library._destroy()


class Library:
    """The ops of one space, PyTorch's older way: ``Library("mine", "DEF").define("f(Tensor x) -> Tensor")``."""

    def __init__(self, ns, kind, dispatch_key=""):
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ValueError(f"Library: Unsupported kind {kind!r}; DEF, FRAGMENT and IMPL are known")
        if ns in ("prim", "aten") and kind == "DEF" or ns == "prim":
            raise ValueError(
                f"Library: {ns!r} is a reserved namespace, whose ops nobody else defines; choose a name of your own"
            )
        self.ns, self.kind, self.dispatch_key, self._registered = ns, kind, dispatch_key, []

    def define(self, schema, alias_analysis="", *, tags=()):
        """Defines an op; returns its name."""
        name = schema[: schema.index("(")].strip()
        define(f"{self.ns}::{name}", schema[schema.index("(") :], tags=tags)
        return name

    def impl(self, op_name, fn, dispatch_key="", *, with_keyset=False, allow_override=False):
        """A kernel: dispatch_key is CPU, CUDA, Meta, CompositeExplicitAutograd or CompositeImplicitAutograd."""
        if not callable(fn):
            raise TypeError(f"Library.impl: Input function is required to be a callable, it is {type(fn).__name__}")
        if self.dispatch_key and dispatch_key and dispatch_key != self.dispatch_key:
            raise RuntimeError(
                f"Library.impl: the key {dispatch_key!r} is inconsistent with the dispatch key of the library, {self.dispatch_key!r}; "
                "leave one out"
            )
        given = _name_of(op_name) or op_name
        space, _, short = given.rpartition("::")
        if space and space != self.ns:
            raise RuntimeError(
                f"Library.impl: the operator name does not match namespace: {given!r} is not of {self.ns!r}; use Library({space!r}, 'IMPL')"
            )
        name = f"{self.ns}::{short.removesuffix('.default')}"
        if _brought(name):
            return
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if fn is fallthrough_kernel:
            _definition_of(name, "Library.impl").kernels.pop(_DEVICES.get(key, key), None)
            return
        if key not in _DEVICES:
            raise ValueError(
                f"Library.impl: the key {key!r} has no place here; {', '.join(_DEVICES)} have; derivatives: register_autograd"
            )
        if (name, _DEVICES[key]) in self._registered and not allow_override:
            raise RuntimeError(
                f"Library.impl: there is already a kernel registered from python for {name} and {key}; allow_override=True replaces it"
            )
        if self.ns in ("aten", "prim") and name not in _definitions:
            _definition_of(name, "Library.impl")  # says that ops of the registry keep their kernels
        register_kernel(name, [key], fn)
        of_libraries = (
            _definitions[name].may_alias if name in _definitions else _waiting_of_libraries.setdefault(name, set())
        )
        of_libraries.add(fn)
        self._registered.append((name, _DEVICES[key]))

    @property
    def m(self):
        """What has been registered; ``del library.m`` takes it back, as PyTorch's own programs do."""
        return tuple(self._registered)

    @m.deleter
    def m(self):
        self._destroy()

    def _destroy(self):
        """Takes back the kernels that this library has given; an op that it has defined stays, and says that it has no kernel."""
        for name, device in self._registered:
            if name in _definitions:
                _definitions[name].kernels.pop(device, None)
        self._registered.clear()
