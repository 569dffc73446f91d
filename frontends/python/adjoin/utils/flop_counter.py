"""adjoin.utils.flop_counter: how many operations with floating-point numbers a program makes, by its modules and ops."""

import functools
import math
import warnings

import adjoin

from .._op_overload import OpOverload
from ._python_dispatch import TorchDispatchMode
from ._pytree import tree_map
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula"]

aten = adjoin.ops.aten
flop_registry = {}


def get_shape(i):
    """The shape of a tensor; anything else as it is."""
    return i.shape if isinstance(i, adjoin.Tensor) else i


def shape_wrapper(f):
    """A function of shapes as one of tensors."""

    @functools.wraps(f)
    def of_tensors(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(get_shape, (args, kwargs, out_val))
        return f(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets, get_raw=False):
    """A decorator: the count of ops (packets such as ``torch.ops.aten.mm``) from their arguments' shapes, ``out_shape`` among them;
    with get_raw from the arguments themselves and ``out_val``."""

    def register(formula):
        counted = formula if get_raw else shape_wrapper(formula)
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if isinstance(target, OpOverload):
                raise ValueError(
                    f"register_flop_formula: expected each target to be OpOverloadPacket, as torch.ops.mylib.foo, got {target}, "
                    "which is one of its overloads"
                )
            if target in flop_registry:
                raise RuntimeError(f"register_flop_formula: {target} has a formula already")
            flop_registry[target] = counted
        return formula

    return register


@register_flop_formula(aten.mm)
def mm_flop(a_shape, b_shape, *args, out_shape=None, **kwargs):
    """A product of matrices: a multiplication and an addition for each pair."""
    (m, k), (other, n) = a_shape, b_shape
    assert k == other
    return 2 * m * n * k


@register_flop_formula(aten.addmm)
def addmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    """As the product in it."""
    return mm_flop(a_shape, b_shape)


@register_flop_formula(aten.bmm)
def bmm_flop(a_shape, b_shape, out_shape=None, **kwargs):
    """A product of matrices for each of the batch."""
    (b, m, k), (same, other, n) = a_shape, b_shape
    assert b == same and k == other
    return 2 * b * m * n * k


@register_flop_formula(aten.baddbmm)
def baddbmm_flop(self_shape, a_shape, b_shape, out_shape=None, **kwargs):
    """As the product in it."""
    return bmm_flop(a_shape, b_shape)


def conv_flop_count(x_shape, w_shape, out_shape, transposed=False):
    """Each pixel of the result, or of the input if transposed, times a kernel."""
    places = math.prod((x_shape if transposed else out_shape)[2:])
    c_out, c_in, *taps = w_shape
    return 2 * places * math.prod(taps) * x_shape[0] * c_out * c_in


@register_flop_formula(aten.convolution)
def conv_flop(x_shape, w_shape, _bias, _stride, _padding, _dilation, transposed, *args, out_shape=None, **kwargs):
    """A convolution, forward."""
    return conv_flop_count(x_shape, w_shape, out_shape, transposed=transposed)


def _swapped(shape):
    return [shape[1], shape[0], *shape[2:]]


@register_flop_formula(aten.convolution_backward, get_raw=True)
def conv_backward_flop(*args, out_val, **kwargs):
    """The gradients of input and weight that are asked for."""
    words = dict(zip(aten.convolution_backward.default._words(), args, strict=False)) | kwargs
    grad, x, w, transposed = (get_shape(words[name]) for name in ("grad", "input", "weight", "transposed"))
    mask = words.get("needs", (True, True))
    flops = 0
    if mask[0]:
        flops += conv_flop_count(grad, w, get_shape(x), not transposed)
    if mask[1]:
        flops += (
            conv_flop_count(_swapped(grad), _swapped(x), _swapped(w), transposed=False)
            if transposed
            else conv_flop_count(_swapped(x), _swapped(grad), _swapped(w), transposed=False)
        )
    return flops


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """Scores, and sums of values by them."""
    *_, h, s_q, d_q = query_shape
    b, s_k, d_v = query_shape[0], key_shape[-2], value_shape[-1]
    return bmm_flop((b * h, s_q, d_q), (b * h, d_q, s_k)) + bmm_flop((b * h, s_q, s_k), (b * h, s_k, d_v))


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu)
def sdpa_flop(query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    """Attention, forward."""
    return sdpa_flop_count(query_shape, key_shape, value_shape)


@register_flop_formula(aten._scaled_dot_product_flash_attention_for_cpu_backward)
def sdpa_backward_flop(grad_out_shape, query_shape, key_shape, value_shape, *args, out_shape=None, **kwargs):
    """Scores anew, and the gradients of both products."""
    b, h, s_q, d_q = query_shape
    s_k, d_v = key_shape[-2], value_shape[-1]
    products = [
        ((s_q, d_q), (d_q, s_k)), ((s_q, d_v), (d_v, s_k)), ((s_k, s_q), (s_q, d_v)), ((s_q, s_k), (s_k, d_q)), ((d_q, s_q), (s_q, s_k)),
    ]  # fmt: skip
    return sum(bmm_flop((b * h, *x), (b * h, *y)) for x, y in products)


_SUFFIXES = ["", "K", "M", "B", "T"]


def get_suffix_str(number):
    """The unit that a number is printed in."""
    return _SUFFIXES[max(0, min(len(_SUFFIXES) - 1, (len(str(number)) - 2) // 3))]


def convert_num_with_suffix(number, suffix):
    """A number in such a unit."""
    return f"{number / 1000 ** _SUFFIXES.index(suffix):.3f}".rstrip("0").rstrip(".") + suffix if suffix else str(number)


def convert_to_percent_str(num, denom):
    """A share."""
    return "0%" if denom == 0 else f"{num / denom:.2%}"


class FlopCounterMode:
    """``with FlopCounterMode() as counter:`` counts what is computed inside; ``counter.get_total_flops()``.

    ``depth``: how deep modules are told apart in the table that is printed at the end; ``custom_mapping``: formulas for more ops.
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            warnings.warn(
                "FlopCounterMode: the argument mods is not needed; modules are found as they run", stacklevel=2
            )
        self.flop_counts, self.depth, self.display = {}, depth, display
        self.mod_tracker, self._mode = ModuleTracker(), None
        self.flop_registry = {
            **flop_registry,
            **{k: v if getattr(v, "_get_raw", False) else shape_wrapper(v) for k, v in (custom_mapping or {}).items()},
        }

    def get_total_flops(self):
        """The sum over everything."""
        return sum(self.flop_counts.get("Global", {}).values())

    def get_flop_counts(self):
        """{module: {op: count}}; "Global" is all."""
        return {k: dict(v) for k, v in self.flop_counts.items()}

    def get_table(self, depth=None):
        """The counts as text."""
        depth = self.depth if depth is None else depth
        total, unit = self.get_total_flops(), get_suffix_str(self.get_total_flops())
        rows, seen_global = [], False

        def row(name, count, indent):
            rows.append(
                (" " * indent + name, convert_num_with_suffix(count, unit), convert_to_percent_str(count, total))
            )

        for module in sorted(self.flop_counts):
            if module == "Global":
                continue
            level = module.count(".") + 1
            if level > depth:
                continue
            counts = self.flop_counts[module]
            seen_global = seen_global or sum(counts.values()) >= total
            row(module, sum(counts.values()), level - 1)
            for op, count in counts.items():
                row(f"- {op}", count, level - 1)
        if "Global" in self.flop_counts and not seen_global:
            rows = [(" " + name, *rest) for name, *rest in rows]
            counts = self.flop_counts["Global"]
            ahead = [("Global", convert_num_with_suffix(total, unit), convert_to_percent_str(total, total))]
            ahead += [
                (f"- {o}", convert_num_with_suffix(c, unit), convert_to_percent_str(c, total))
                for o, c in counts.items()
            ]
            rows = ahead + rows
        rows = rows or [("Global", "0", "0%")]
        head = ("Module", "FLOP", "% Total")
        wide = [max(len(r[i]) for r in [head, *rows]) for i in range(3)]
        lines = [
            "  ".join((head[0].ljust(wide[0]), head[1].rjust(wide[1]), head[2].rjust(wide[2]))),
            "  ".join("-" * w for w in wide),
        ]
        lines += ["  ".join((r[0].ljust(wide[0]), r[1].rjust(wide[1]), r[2].rjust(wide[2]))) for r in rows]
        return "\n".join(lines)

    def __enter__(self):
        self.flop_counts.clear()
        self.mod_tracker.__enter__()
        self._mode = _Counting(self)
        self._mode.__enter__()
        return self

    def __exit__(self, *exc):
        self._mode.__exit__(*exc)
        self._mode = None
        self.mod_tracker.__exit__()
        if self.display:
            print(self.get_table(self.depth))

    def _count_flops(self, packet, out, args, kwargs):
        if packet in self.flop_registry:
            count = self.flop_registry[packet](*args, **kwargs, out_val=out)
            for module in set(self.mod_tracker.parents):
                counts = self.flop_counts.setdefault(module, {})
                counts[packet] = counts.get(packet, 0) + count
        return out


class _Counting(TorchDispatchMode):
    def __init__(self, counter):
        self.counter = counter

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        return self.counter._count_flops(func.overloadpacket, out, args, kwargs or {})
