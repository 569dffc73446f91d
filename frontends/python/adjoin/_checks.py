"""adjoin._checks: conditions that programs state: ``torch._check(x.dim() == 2, lambda: "a matrix is wanted")``, and control by them."""

import sys

import adjoin

_STANDARD = "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an enhancement request.)"


def _check_with(error_type, cond, message):
    """Raises an error of a class if a condition is false; message is a function that gives the text, or None."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if cond:
        return
    if message is None:
        raise error_type(_STANDARD)
    if not callable(message):
        raise TypeError("message must be a callable")
    raise error_type(str(message()))


def _check(cond, message=None):
    """RuntimeError if the condition is false."""
    _check_with(RuntimeError, cond, message)


def _check_index(cond, message=None):
    """IndexError if the condition is false."""
    _check_with(IndexError, cond, message)


def _check_value(cond, message=None):
    """ValueError if the condition is false."""
    _check_with(ValueError, cond, message)


def _check_type(cond, message=None):
    """TypeError if the condition is false."""
    _check_with(TypeError, cond, message)


def _check_not_implemented(cond, message=None):
    """NotImplementedError if the condition is false."""
    _check_with(NotImplementedError, cond, message)


def _check_is_size(i, message=None, *, max=None):
    """RuntimeError if a number is no size: negative, or above max."""
    _check(i >= 0 and (max is None or i <= max), message)


def _check_tensor_all_with(error_type, cond, message=None):
    """An error of a class if an element of a tensor is false."""
    if not isinstance(cond, adjoin.Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype != adjoin.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, cond.all().item(), message)


def _check_tensor_all(cond, message=None):
    """RuntimeError if an element of a tensor is false."""
    _check_tensor_all_with(RuntimeError, cond, message)


def _assert_tensor_metadata(a, size=None, stride=None, dtype=None, *, device=None, layout=None):
    """RuntimeError if a tensor is not of the size, the strides, the dtype, the device or the layout that are given."""
    wanted = (("size", a.shape, size, tuple), ("stride", None if stride is None else a.stride(), stride, tuple),
              ("dtype", a.dtype, dtype, lambda x: x), ("device", a.device, device, adjoin.device),
              ("layout", a.layout, layout, lambda x: x))  # fmt: skip
    for name, found, want, form in wanted:
        if want is not None and form(found) != form(want):
            raise RuntimeError(f"Tensor {name} mismatch! Expected: {want}, Got: {found}")


def _assert_async(input, assert_msg=""):
    """RuntimeError if a tensor of one element is 0. The value is waited for."""
    if input.numel() != 1:
        raise RuntimeError(f"_assert_async: one element is wanted, the tensor has {input.numel()}")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")


def _assert_scalar(self, assert_msg):
    """RuntimeError if a number is 0."""
    if not self:
        raise RuntimeError(assert_msg)


def _kept(name):
    """The function of jit that keeps the control flow in the program that is being traced, or None: nothing is traced."""
    jit = sys.modules.get(__package__ + ".jit")  # who traces has loaded it
    return getattr(jit, name) if jit is not None and jit.is_tracing() else None


def cond(pred, true_fn, false_fn, operands=()):
    """``true_fn(*operands)`` or ``false_fn(*operands)``, by a bool or a tensor of one. A program that is traced keeps both."""
    if isinstance(pred, adjoin.Tensor):
        if pred.numel() != 1:
            raise RuntimeError(f"cond: pred has {pred.numel()} elements, one is wanted; where() chooses by element")
        if kept := _kept("cond"):
            return kept(pred.reshape(()), true_fn, false_fn, operands)
    return (true_fn if pred else false_fn)(*operands)


def while_loop(cond_fn, body_fn, carried_inputs):
    """``carried_inputs = body_fn(*carried_inputs)`` as long as ``cond_fn(*carried_inputs)`` holds. A program that is traced keeps the loop."""
    carried = tuple(carried_inputs)
    if kept := _kept("while_loop"):
        return kept(cond_fn, body_fn, carried)
    while cond_fn(*carried):
        made = body_fn(*carried)
        carried = tuple(made) if isinstance(made, (tuple, list)) else (made,)
    return carried
