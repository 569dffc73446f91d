"""adjoin.utils._python_dispatch: ``__torch_dispatch__``: modes and tensor classes that see each call below the tape.

Calls come as overloads of ``torch.ops.aten``: those of the forward pass, without what recorded them, and those that backward makes.
"""

import contextlib
import inspect
import threading
import types
import weakref

import adjoin

from .. import _aten, _C
from .._c_names import _disabled_torch_dispatch_impl

__all__ = ["TorchDispatchMode", "BaseTorchDispatchMode", "is_traceable_wrapper_subclass", "return_and_correct_aliasing", "transform_subclass"]  # fmt: skip

_Tensor = _C.Tensor


class _Thread(threading.local):
    def __init__(self):
        self.stack = []


_modes = _Thread()


def _overrides(cls):
    own = getattr(cls, "__torch_dispatch__", None)
    return own is not None and getattr(own, "__func__", own) not in _PASSING


def _disabled(func, types, args=(), kwargs=None):
    """``__torch_dispatch__`` of Tensor itself: the op, of which no class of the arguments is told."""
    with _no_class():
        return func(*args, **(kwargs or {}))


_PASSING = (_disabled, _disabled_torch_dispatch_impl)


@contextlib.contextmanager
def _no_class():
    before = _C.leave_out_classes(True)
    try:
        yield
    finally:
        _C.leave_out_classes(before)


def _tensors(values):
    for value in values:
        if isinstance(value, _Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _by_row(args):
    """The class of a tensor among the arguments that serves calls by the names of rows."""
    return next((type(t) for t in _tensors(args) if hasattr(type(t), "__row_dispatch__")), None)


def _linear(input, weight, bias):
    """The calls that PyTorch makes of a linear layer."""
    turned, dims = weight.t(), input.dim()
    folds = dims == 2 or (input.is_contiguous() and (bias is None or dims == 3))
    if weight.dim() != 2 or dims == 1 or not folds:
        made = input @ turned
        return made if bias is None else made + bias
    rows = input if dims == 2 else input.view(-1, input.shape[-1])
    made = rows.mm(turned) if bias is None else adjoin.addmm(bias, rows, turned)
    return made if dims == 2 else made.view(*input.shape[:-1], made.shape[-1])


rules = {}  # of library.register_torch_dispatch: (name of an op, class) -> what serves instead


def _asked(owner, cls, func, types, args, kwargs):
    rule = rules.get((func._qualified, cls)) if rules else None
    if rule is not None:
        return rule(owner, func, types, args, kwargs)
    return owner.__torch_dispatch__(func, types, args, kwargs)


_PARTS = {"nn::linear": _linear}


def _handle(name, in_place, args):
    """Serves a call that came to the key; nothing is recorded, and the key itself is out of the way."""
    stack = _modes.stack
    if not stack and (kind := _by_row(args)) is not None:
        return kind.__row_dispatch__(name, in_place, args)
    if in_place is None:  # the body's own error is told
        return NotImplemented
    if name in _PARTS:
        with _included(bool(stack)):
            return _PARTS[name](*args)
    func, args, kwargs = _aten.seen(name, in_place, args)
    types = tuple(dict.fromkeys(type(t) for t in _tensors((*args, *kwargs.values())) if _overrides(type(t))))
    if stack:
        mode = stack.pop()
        try:
            with _included(bool(stack)):
                return _answer(_asked(mode, type(mode), func, types, args, kwargs), func)
        finally:
            stack.append(mode)
    for cls in _by_rank(types):
        result = _asked(cls, cls, func, types, args, kwargs)
        if result is not NotImplemented:
            return _answer(result, func)
    if not types:  # an alias of a tensor with memory, whose object is gone
        with _no_class():
            return func(*args, **kwargs)
    raise _none_serves(func, types)


def _by_rank(types):
    """Classes in the order in which they are asked: as they stand, but a subclass before its bases."""
    asked = []
    for cls in types:
        before = next((i for i, other in enumerate(asked) if issubclass(cls, other)), len(asked))
        asked.insert(before, cls)
    return asked


def _none_serves(func, types):
    return TypeError(
        f"Multiple dispatch failed for 'torch.ops.{func}': no __torch_dispatch__ of {', '.join(t.__name__ for t in types)} "
        "serves it; all returned NotImplemented"
    )


def _number(tensor):
    """The only number of a tensor, as the ``__torch_dispatch__`` of a mode or its class tells it; NotImplemented where there is none."""
    return _C.find_op("item")(tensor) if _modes.stack or _overrides(type(tensor)) else NotImplemented


def _answer(result, func):
    if result is NotImplemented:
        raise TypeError(f"{func}: the mode's __torch_dispatch__ returned NotImplemented; return func(*args, **kwargs)")
    return tuple(result) if isinstance(result, tuple) else result


@contextlib.contextmanager
def _included(on):
    before = _C.include_key("python", on)
    try:
        yield
    finally:
        _C.include_key("python", before)


_C.set_dispatch_handler(_handle, _aten.OPENED, _aten.WHOLE)
_C.set_tensor_attribute("__torch_dispatch__", staticmethod(_disabled))  # for super() of a class that sees calls


class TorchDispatchMode:
    """``with mode:`` every call of this thread goes to the mode's ``__torch_dispatch__(func, types, args, kwargs)``, the last one
    entered first. There it does not see its own calls; one entered before it does."""

    def __init__(self, _dispatch_key=None):
        pass

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        raise NotImplementedError(
            f"{type(self).__name__} has no __torch_dispatch__(self, func, types, args=(), kwargs=None)"
        )

    def __enter__(self):
        _push_mode(self)
        return self

    def __exit__(self, *exc):
        _pop_mode()

    @classmethod
    def push(cls, *args, **kwargs):
        """The older way to write ``with cls(...)``."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls):
        """Whether it belongs to PyTorch's own machinery: none here does."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that changes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def _push_mode(mode):
    if isinstance(inspect.getattr_static(type(mode), "__torch_dispatch__"), classmethod):
        raise RuntimeError(
            f"{type(mode).__name__}.__torch_dispatch__ is a classmethod, and on a mode classmethod is not supported, please make it a "
            "plain method: def __torch_dispatch__(self, func, types, args=(), kwargs=None)"
        )
    _modes.stack.append(mode)
    _C.include_key("python", True)


def _pop_mode(mode_key=None):
    if not _modes.stack:
        raise RuntimeError("no TorchDispatchMode was entered")
    mode = _modes.stack.pop()
    _C.include_key("python", bool(_modes.stack))
    return mode


def _len_torch_dispatch_stack():
    return len(_modes.stack)


def is_in_torch_dispatch_mode(include_infra_modes=True):
    """Whether a mode is entered on this thread; ``include_infra_modes=False``: one that says it is none of PyTorch's machinery."""
    return any(include_infra_modes or not mode.is_infra_mode() for mode in _modes.stack)


def _get_current_dispatch_mode():
    """The mode that sees calls first, or None."""
    return _modes.stack[-1] if _modes.stack else None


def _get_current_dispatch_mode_stack():
    """All modes, the one that sees calls first last."""
    return list(_modes.stack)


@contextlib.contextmanager
def _pop_mode_temporarily(mode_key=None):
    mode = _pop_mode()
    try:
        yield mode
    finally:
        _push_mode(mode)


@contextlib.contextmanager
def _disable_current_modes():
    """Inside, no mode sees calls."""
    before, _modes.stack = _modes.stack, []
    try:
        with _included(False):
            yield before
    finally:
        _modes.stack = before


class _Kept:
    """A slot of such a class: its value lives with the tensor, as other attributes do, whichever object stands for it."""

    def __init__(self, name):
        self.name = name

    def __get__(self, tensor, cls=None):
        if tensor is None:
            return self
        if self.name not in tensor.__dict__:
            raise AttributeError(f"{type(tensor).__name__!r} object has no attribute {self.name!r}")
        return tensor.__dict__[self.name]

    def __set__(self, tensor, value):
        tensor.__dict__[self.name] = value

    def __delete__(self, tensor):
        self.__get__(tensor)
        del tensor.__dict__[self.name]


_looked_at, _keeps_slots = weakref.WeakSet(), weakref.WeakSet()


def _keep_slots(cls):
    for part in cls.__mro__[: cls.__mro__.index(_Tensor)]:
        for name, member in list(vars(part).items()):
            if isinstance(member, types.MemberDescriptorType):
                setattr(part, name, _Kept(name))
    _keeps_slots.add(cls)


def _prepared(cls):
    """Whether calls with tensors of the class are seen by it. What sees them below the tape does not see them above it as well, unless
    it says how: results stay what its ``__torch_dispatch__`` made."""
    if not _overrides(cls):
        return False
    if cls not in _looked_at:
        _looked_at.add(cls)
        if getattr(cls.__torch_function__, "__func__", None) is _Tensor.__torch_function__.__func__:
            cls.__torch_function__ = _C._disabled_torch_function_impl
    return True


def _make_wrapper_subclass(
    cls, size, strides=None, storage_offset=None, memory_format=None, dtype=None, layout=adjoin.strided, device=None,
    pin_memory=False, requires_grad=False, dispatch_sizes_strides_policy=None, dispatch_device=False, dispatch_layout=False,
    _extra_dispatch_keys=None, storage_size=None,
):  # fmt: skip
    """An instance of a class with ``__torch_dispatch__`` that has sizes, strides, dtype and device, and no memory."""
    if cls not in _keeps_slots and _overrides(cls):
        _keep_slots(cls)
    if not _prepared(cls):
        raise RuntimeError(
            f"_make_wrapper_subclass: {cls.__name__} has no __torch_dispatch__, which serves calls with its tensors"
        )
    like = adjoin.empty(tuple(size), dtype=dtype or adjoin.get_default_dtype(), device="meta")
    if strides is not None:
        like = adjoin.empty_strided(tuple(size), tuple(strides), dtype=like.dtype, device="meta")
    elif memory_format not in (None, adjoin.contiguous_format, adjoin.preserve_format):
        like = like.contiguous(memory_format=memory_format)
    made = _C.make_wrapper(cls, like, adjoin.device(device or "cpu"), bool(requires_grad))
    if dispatch_sizes_strides_policy is None and not dispatch_device and not dispatch_layout:
        return made
    from ._told_by_class import asks

    return asks(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)


def is_traceable_wrapper_subclass(t):
    """Whether it tells the tensors that it holds: ``__tensor_flatten__`` and ``__tensor_unflatten__``."""
    return isinstance(t, _Tensor) and type(t) is not _Tensor and is_traceable_wrapper_subclass_type(type(t))


def is_traceable_wrapper_subclass_type(t):
    """The same of a class."""
    return issubclass(t, _Tensor) and hasattr(t, "__tensor_flatten__") and hasattr(t, "__tensor_unflatten__")


def transform_subclass(t, callback, outer_size=None, outer_stride=None):
    """The same wrapper around ``callback(attribute's name, tensor)`` of each tensor that it holds."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    outer_size = t.size() if outer_size is None else outer_size
    outer_stride = t.stride() if outer_stride is None else outer_stride
    made = type(t).__tensor_unflatten__(inner, context, outer_size, outer_stride)
    if made.shape != outer_size or made.stride() != outer_stride:
        raise AssertionError(
            f"{type(t).__name__}.__tensor_unflatten__ gave sizes {tuple(made.shape)} and strides {made.stride()}, wanted are "
            f"{tuple(outer_size)} and {outer_stride}"
        )
    return made


def return_and_correct_aliasing(func, args, kwargs, out):
    """What a ``__torch_dispatch__`` returns: for an op that writes an argument that argument itself, else ``out``."""
    written = [at for at, p in enumerate(func._arguments()) if p.written]
    if not written or not func.__name__.partition(".")[0].endswith("_"):
        return out
    names = [p.name for p in func._arguments()]
    given = [args[at] if at < len(args) else (kwargs or {}).get(names[at]) for at in written]
    return given[0] if len(given) == 1 else tuple(given)
