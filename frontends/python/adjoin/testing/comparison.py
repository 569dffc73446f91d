"""adjoin.testing.comparison: assert_close, which compares tensors, numbers and containers of
them."""

import cmath
import collections.abc
import numbers

import adjoin

_TOLERANCES = {  # relative, absolute; other dtypes have to be equal
    "float16": (1e-3, 1e-5), "bfloat16": (1.6e-2, 1e-5), "float32": (1.3e-6, 1e-5),
    "float64": (1e-7, 1e-7), "complex64": (1.3e-6, 1e-5), "complex128": (1e-7, 1e-7),
}  # fmt: skip


def _name(dtype):
    return str(dtype).rpartition(".")[2]


def _tolerances(*dtypes):
    pairs = [_TOLERANCES.get(_name(dtype), (0.0, 0.0)) for dtype in dtypes]
    return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)


class _Settings:
    def __init__(self, rtol, atol, equal_nan, check_device, check_dtype, check_layout, check_stride,
                 msg):  # fmt: skip
        self.rtol, self.atol, self.equal_nan, self.msg = rtol, atol, equal_nan, msg
        self.check_device, self.check_dtype = check_device, check_dtype
        self.check_layout, self.check_stride = check_layout, check_stride

    def tolerances(self, *dtypes):
        return _tolerances(*dtypes) if self.rtol is None else (self.rtol, self.atol)


def assert_close(actual, expected, *, allow_subclasses=True, rtol=None, atol=None, equal_nan=False,
                 check_device=True, check_dtype=True, check_layout=True, check_stride=False,
                 msg=None):  # fmt: skip
    """Raises AssertionError unless ``|actual - expected| <= atol + rtol |expected|`` everywhere.

    Takes tensors, arrays, numbers, and sequences and mappings of these. Without tolerances they
    follow from the dtypes, and integers have to be equal. ``msg`` is the message, or a function of
    the one made here.
    """
    __tracebackhide__ = True
    if (rtol is None) != (atol is None):
        absent = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {absent}.")
    settings = _Settings(rtol, atol, equal_nan, check_device, check_dtype, check_layout,
                         check_stride, msg)  # fmt: skip
    if not allow_subclasses and type(actual) is not type(expected):
        raise TypeError(
            "assert_close: with allow_subclasses=False the types have to be equal: "
            f"{type(actual).__name__} and {type(expected).__name__}"
        )
    text = _difference(actual, expected, settings)
    if text is not None:
        message = text if msg is None else (msg(text) if callable(msg) else msg)
        raise AssertionError(message)


def assert_allclose(actual, expected, rtol=None, atol=None, equal_nan=True, msg=""):
    """The older form of assert_close(), which asks neither for equal dtypes nor devices."""
    __tracebackhide__ = True
    if not isinstance(actual, adjoin.Tensor):
        actual = adjoin.tensor(actual)
    if not isinstance(expected, adjoin.Tensor):
        expected = adjoin.tensor(expected, dtype=actual.dtype)
    if rtol is None and atol is None:
        rtol, atol = _tolerances(actual.dtype, expected.dtype)
    assert_close(actual, expected, rtol=rtol, atol=atol, equal_nan=equal_nan, check_device=True,
                 check_dtype=False, check_stride=False, msg=msg or None)  # fmt: skip


def _difference(actual, expected, settings, path=()):
    """None, or what differs first, with its place inside containers."""
    mapping, sequence = collections.abc.Mapping, collections.abc.Sequence
    if isinstance(actual, mapping) and isinstance(expected, mapping):
        return _mapping_difference(actual, expected, settings, path)
    plain = not isinstance(actual, str) and not isinstance(expected, str)
    if plain and isinstance(actual, sequence) and isinstance(expected, sequence):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            return _placed(text, path)
        for i, pair in enumerate(zip(actual, expected, strict=True)):
            text = _difference(*pair, settings, (*path, i))
            if text is not None:
                return text
        return None
    if actual is None and expected is None:
        return None
    if _is_number(actual) and _is_number(expected):
        return _placed(_number_difference(actual, expected, settings), path)
    if not all(_is_tensor_like(value) or _is_number(value) for value in (actual, expected)):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    return _placed(_tensor_difference(_as_tensor(actual), _as_tensor(expected), settings), path)


def _mapping_difference(actual, expected, settings, path):
    missing = [key for key in expected if key not in actual]
    more = [key for key in actual if key not in expected]
    if missing or more:
        text = "The keys of the mappings do not match:"
        if missing:
            text += f"\nMissing keys in the actual mapping: {sorted(missing)}"
        if more:
            text += f"\nAdditional keys in the actual mapping: {sorted(more)}"
        return _placed(text, path)
    for key in actual:
        text = _difference(actual[key], expected[key], settings, (*path, key))
        if text is not None:
            return text
    return None


def _placed(text, path):
    if text is None or not path:
        return text
    return text + "\n\nThe failure occurred for item " + "".join(f"[{key!r}]" for key in path)


def _is_number(value):
    return isinstance(value, numbers.Number) and not hasattr(value, "__array_interface__")


def _is_tensor_like(value):
    return isinstance(value, adjoin.Tensor) or hasattr(value, "__array_interface__")


def _as_tensor(value):
    return value if isinstance(value, adjoin.Tensor) else adjoin.as_tensor(value)


def _up_to(limit):
    return f" (up to {limit} allowed)" if limit else ""


def _number_difference(actual, expected, settings):
    kinds = {bool: "bool", int: "int64", float: "float64", complex: "complex128"}
    if settings.check_dtype and type(actual) is not type(expected):
        return f"The (d)types do not match: {type(actual)} != {type(expected)}."
    rtol, atol = settings.rtol, settings.atol
    if rtol is None:
        pairs = [_TOLERANCES.get(kinds.get(type(v)), (0.0, 0.0)) for v in (actual, expected)]
        rtol, atol = max(p[0] for p in pairs), max(p[1] for p in pairs)
    if actual == expected:
        return None
    if settings.equal_nan and cmath.isnan(actual) and cmath.isnan(expected):
        return None
    apart = abs(actual - expected)
    if cmath.isfinite(actual) and apart <= atol + rtol * abs(expected):
        return None
    relative = apart / abs(expected) if expected else float("inf")
    return (
        f"Scalars are not {'close' if rtol or atol else 'equal'}!\n\n"
        f"Expected {expected} but got {actual}.\n"
        f"Absolute difference: {apart}{_up_to(atol)}\n"
        f"Relative difference: {relative}{_up_to(rtol)}"
    )


def _tensor_difference(actual, expected, settings):
    pairs = [("shape", actual.shape, expected.shape)]
    if settings.check_device:
        pairs.append(("device", actual.device, expected.device))
    if settings.check_dtype:
        pairs.append(("dtype", actual.dtype, expected.dtype))
    if settings.check_layout:
        pairs.append(("layout", actual.layout, expected.layout))
    if settings.check_stride:
        pairs.append(("stride()", actual.stride(), expected.stride()))
    for name, mine, wanted in pairs:
        if mine != wanted:
            return f"The values for attribute '{name}' do not match: {mine} != {wanted}."
    rtol, atol = settings.tolerances(actual.dtype, expected.dtype)
    with adjoin.no_grad():
        a, b = _comparable(actual.detach()), _comparable(expected.detach())
        if a.dtype != b.dtype:
            common = adjoin.promote_types(a.dtype, b.dtype)
            a, b = a.to(common), b.to(common)
        apart = (a - b).abs()
        # Infinities of one sign are equal, and their difference is NaN: equality counts first.
        close = (a == b) | ((apart <= atol + rtol * b.abs()) & (apart < float("inf")))
        if settings.equal_nan:
            close = close | (a.isnan() & b.isnan())
        if bool(close.all()):
            return None
        text = _describe(a.shape, close, apart, b.abs(), rtol, atol, _exact(actual, expected))
        if a.dim() == 0:
            got = f"Expected {expected.item()} but got {actual.item()}."
            text = text.replace("\n\n", f"\n\n{got}\n", 1)
        return text


def _exact(actual, expected):
    return not any(t.dtype.is_floating_point or t.dtype.is_complex for t in (actual, expected))


def _comparable(tensor):
    """On the host, and wide enough that a difference neither wraps nor rounds."""
    tensor = tensor.cpu()
    if tensor.dtype.is_complex:
        return tensor.to(adjoin.complex128)
    if tensor.dtype.is_floating_point:
        return tensor.to(adjoin.float64)
    return tensor.to(adjoin.int64)


def _describe(shape, close, apart, size, rtol, atol, exact):
    wrong = close.logical_not()
    count, total = int(wrong.sum()), wrong.numel()
    scalar = len(shape) == 0
    what, how = ("Scalars" if scalar else "Tensor-likes"), ("close" if rtol or atol else "equal")
    lines = [f"{what} are not {how}!", ""]
    if not scalar:
        lines.append(f"Mismatched elements: {count} / {total} ({100 * count / total:.1f}%)")
    relative = apart.to(adjoin.float64) / size.to(adjoin.float64)
    for name, values, limit in (("absolute", apart, atol), ("relative", relative, rtol)):
        values = adjoin.where(close, adjoin.zeros_like(values), values)
        place = int(values.reshape(-1).argmax())
        value = values.reshape(-1)[place].item()
        if name == "absolute" and exact:
            value = int(value)
        if scalar:
            lines.append(f"{name.capitalize()} difference: {value}{_up_to(limit)}")
        else:
            index = _index(place, shape)
            lines.append(f"Greatest {name} difference: {value} at index {index}{_up_to(limit)}")
    return "\n".join(lines)


def _index(place, shape):
    index = []
    for size in reversed(shape):
        place, rest = divmod(place, size)
        index.append(rest)
    return tuple(reversed(index))
