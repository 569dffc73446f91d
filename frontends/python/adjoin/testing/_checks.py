"""adjoin.testing._checks: what opcheck asks of an op, a function for each promise."""

import ctypes
import gc
import re
import sys
import threading
import time

import adjoin

from ..autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from ._samples import DTYPES, mapped, tensors_in


class Fault(Exception):
    """A promise that was not kept."""


class Skip(Exception):
    """There is nothing to check."""


def _listed(results):
    return list(results) if isinstance(results, (tuple, list)) else [results]


def clones(args, kwargs, f=lambda t: t.detach().clone()):
    return mapped(f, args, kwargs)


def _storage(t):
    s = t.untyped_storage()
    return s.data_ptr() if s.nbytes() and t.numel() else None


def _bits(t):
    dense = t.detach().cpu().contiguous().clone()
    return ctypes.string_at(dense.data_ptr(), dense.numel() * dense.element_size()) if dense.numel() else b""


def _float(t):
    return isinstance(t, adjoin.Tensor) and (t.is_floating_point() or t.is_complex())


def _named_tensors(op, args, kwargs):
    """(parameter, tensor) of a call."""
    by_name = dict(zip([p.name for p in op.params], args, strict=False)) | kwargs
    return [(p, t) for p in op.params for t in tensors_in([by_name.get(p.name)])]


def check_schema(op, samples):
    """Writes only what is marked (a!), shares memory only where (a) says so, returns what is declared."""
    for args, kwargs in samples:
        args, kwargs = clones(args, kwargs)
        inputs = _named_tensors(op, args, kwargs)
        before = [(_bits(t), t._version) for _, t in inputs]
        results = _listed(op.call(*args, **kwargs))
        for (p, t), (bits, version) in zip(inputs, before, strict=True):
            changed = _bits(t) != bits
            if changed and not p.written:
                raise Fault(f"writes to {p.name!r}, which the schema does not mark: say Tensor(a!) {p.name}")
            if changed and t._version == version:
                raise Fault(f"writes to {p.name!r} without counting it as a write")
        places = {_storage(t): p for p, t in inputs if _storage(t)}
        for i, (r, declared) in enumerate(zip(results, op.results, strict=False)):
            for t in tensors_in([r]):
                shared = places.get(_storage(t))
                if shared and not (declared.alias and declared.alias == shared.alias):
                    raise Fault(
                        f"result {i} shares memory with {shared.name!r}, which the schema does not say: copy it, or say Tensor(a)"
                    )
                if declared.alias and not shared and _storage(t):
                    raise Fault(f"result {i} is declared as memory of ({declared.alias}) and has its own")
        own = [_storage(t) for r in results for t in tensors_in([r]) if _storage(t) and _storage(t) not in places]
        if len(set(own)) < len(own) and not any(r.list for r in op.results):
            raise Fault("two results share memory, which the schema does not say")


def _differentiable(op, args, kwargs):
    """The call as a function of its float64 tensors, and those."""
    leaves = []

    def leaf(t):
        if not _float(t):
            return t.detach().clone()
        wide = adjoin.complex128 if t.is_complex() else adjoin.float64
        leaves.append(t.detach().to(wide).clone().requires_grad_())
        return leaves[-1]

    if any(p.written for p in op.params):
        raise Skip("it writes to its arguments")
    args, kwargs = mapped(leaf, args, kwargs)
    if not leaves:
        raise Skip("no argument is differentiable")

    def f(*given):
        given = iter(given)
        a, k = mapped(lambda t: next(given) if _float(t) else t, args, kwargs)
        return tuple(r for r in tensors_in(_listed(op.call(*a, **k))) if _float(r))

    results = f(*leaves)
    if not results:
        raise Skip("no result is differentiable")
    return f, leaves, results


def _first(samples):
    if not samples:
        raise Skip("no sample fits; give some with --samples")
    return samples


def check_gradient(op, samples):
    """The derivative agrees with differences, and is not silently zero."""
    for args, kwargs in _first(samples):
        f, leaves, results = _differentiable(op, args, kwargs)
        if not any(r.requires_grad for r in results):
            near = [(x.detach() + 1e-3) for x in leaves]
            if any(not adjoin.equal(a.detach(), b.detach()) for a, b in zip(results, f(*near), strict=True)):
                raise Fault(
                    "the result depends on its inputs and does not require grad: a gradient would silently be zero; define a derivative"
                )
            raise Skip("constant")
        try:
            adjoin.autograd.grad(sum(r.abs().sum() for r in results if r.requires_grad), leaves, allow_unused=True)
        except NotImplementedError as e:
            raise Skip(f"none is defined: {e}") from None
        except RuntimeError as e:
            if "no derivative" in str(e) or "not differentiable" in str(e) or "no autograd" in str(e):
                raise Skip(f"none is defined: {e}") from None
            raise
        _graded(gradcheck, f, leaves)


def check_second_gradient(op, samples):
    """The derivative can be differentiated, and that is right too."""
    for args, kwargs in _first(samples):
        f, leaves, results = _differentiable(op, args, kwargs)
        if not any(r.requires_grad for r in results):
            raise Skip("there is no derivative")
        try:
            _graded(gradgradcheck, f, leaves)
        except (RuntimeError, NotImplementedError) as e:
            if isinstance(e, GradcheckError):
                raise
            raise Skip(f"once only: {e}") from None


def _graded(check, f, leaves):
    if sum(x.numel() for x in leaves) > 200:
        raise Skip("the sample has more than 200 elements")
    try:
        check(f, leaves)
    except GradcheckError as e:
        raise Fault(str(e)) from None


def check_meta(op, samples):
    """Shapes and dtypes without data are those of the results."""
    for args, kwargs in _first(samples):
        real = tensors_in(_listed(op.call(*clones(args, kwargs)[0], **clones(args, kwargs)[1])))
        a, k = mapped(lambda t: t.detach().to("meta"), args, kwargs)
        try:
            meta = tensors_in(_listed(op.call(*a, **k)))
        except (RuntimeError, NotImplementedError, TypeError, ValueError) as e:
            if _needs_data(op, e):
                raise Skip(f"its shapes depend on data: refused, as is right: {e}") from None
            raise Fault(f"does not work on the device meta: {e}") from None
        for i, (r, m) in enumerate(zip(real, meta, strict=True)):
            if tuple(r.shape) != tuple(m.shape) or r.dtype != m.dtype:
                raise Fault(f"result {i} is {tuple(r.shape)} {r.dtype}, on meta it is {tuple(m.shape)} {m.dtype}")
            if m.device.type != "meta":
                raise Fault(f"result {i} of meta tensors is on {m.device}")


def _needs_data(op, refusal):
    """Is it refused on meta because it, or an op that it is made of, must see values?"""
    if (
        op.info["allocates"]
        or "a meta tensor, which has no data" in str(refusal)
        or "device meta cannot copy" in str(refusal)
    ):
        return True
    lacks = re.search(r"kernel for (\S+) on meta", str(refusal))
    return bool(lacks) and any(i["allocates"] for i in adjoin._C.op_info(lacks[1]) or ())


def check_threads(op, samples):
    """Four threads at once, one thread of ours or several, twice: the same bits."""
    if op.random:
        raise Skip("it draws random numbers")
    args, kwargs = _first(samples)[0]
    big = [(args, kwargs), *([] if any(p.written for p in op.params) else _bigger(op, args, kwargs))]
    for a, k in big:

        def run(a=a, k=k):
            return [_bits(t) for t in tensors_in(_listed(op.call(*clones(a, k)[0], **clones(a, k)[1])))]

        first, others = run(), []
        threads = [threading.Thread(target=lambda: others.extend(run() for _ in range(5))) for _ in range(4)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        if len(others) < 20 or any(o != first for o in others):
            raise Fault("called by four threads at once it gives other results: does it keep a state?")
        before = adjoin.get_num_threads()
        adjoin.set_num_threads(1)
        alone = run()
        adjoin.set_num_threads(before)
        if alone != first:
            raise Fault(f"one thread and {before} give different bits")


def _bigger(op, args, kwargs):
    """Large enough to be cut among threads, if the op takes it."""
    wide = mapped(
        lambda t: t.repeat(*[1] * (t.dim() - 1), max(1, 60000 // max(1, t.numel()))) if t.dim() else t, args, kwargs
    )
    try:
        op.call(*wide[0], **wide[1])
    except Exception:
        return []
    return [wide]


def _agree(got, wanted, what, loose=1e-6):
    for i, (a, b) in enumerate(zip(tensors_in(_listed(got)), tensors_in(_listed(wanted)), strict=True)):
        if tuple(a.shape) != tuple(b.shape):
            raise Fault(f"{what}: result {i} is {tuple(a.shape)}, {tuple(b.shape)} is right")
        wide = adjoin.complex128 if a.is_complex() or b.is_complex() else adjoin.float64
        if not adjoin.allclose(a.detach().to(wide), b.detach().to(wide), rtol=loose, atol=loose, equal_nan=True):
            raise Fault(f"{what}: result {i} has other values")


def _spread(t):
    """The same values with a stride of 2 in the last dimension."""
    if t.dim() == 0:
        return t.detach().clone()
    room = adjoin.zeros(*t.shape[:-1], 2 * t.shape[-1], dtype=t.dtype)
    room[..., ::2] = t.detach()
    return room[..., ::2]


def check_layouts(op, samples):
    """Strided, turned, empty and 0-dim inputs give the same values, or an error."""
    if op.random:
        raise Skip("it draws random numbers")
    turned = lambda t: t.detach().clone().t().contiguous().t() if t.dim() == 2 else t.detach().clone()  # noqa: E731
    for args, kwargs in _first(samples):
        wanted = op.call(*clones(args, kwargs)[0], **clones(args, kwargs)[1])
        for what, form in (("inputs with gaps", _spread), ("turned inputs", turned)):
            a, k = mapped(form, args, kwargs)
            try:
                got = op.call(*a, **k)
            except (RuntimeError, ValueError, TypeError, NotImplementedError):
                continue  # refused, and said so
            _agree(got, wanted, what)
    args, kwargs = samples[0]
    for what, form in (
        ("empty inputs", lambda t: t.detach()[:0] if t.dim() else t.detach()),
        ("0-dim inputs", lambda t: t.detach().reshape(-1)[0]),
    ):
        a, k = mapped(form, args, kwargs)
        try:
            got = tensors_in(_listed(op.call(*a, **k)))
            shapes = [
                tuple(m.shape)
                for m in tensors_in(
                    _listed(
                        op.call(*mapped(lambda t: t.to("meta"), a, k)[0], **mapped(lambda t: t.to("meta"), a, k)[1])
                    )
                )
            ]
        except Exception:
            continue
        if shapes != [tuple(t.shape) for t in got]:
            raise Fault(f"{what}: results are {[tuple(t.shape) for t in got]}, on meta {shapes}")


def check_dtypes(op, samples):
    """Each dtype gives the values of float64, or an error."""
    if op.random:
        raise Skip("it draws random numbers")
    args, kwargs = _first(samples)[0]
    taken = []
    for name, dtype in DTYPES.items():
        whole = lambda t, to: (t.detach() * 2).round().abs().to(to) if _float(t) else t.detach().clone()  # noqa: E731
        try:
            a, k = mapped(lambda t, d=dtype: whole(t, d), args, kwargs)
            got = op.call(*a, **k)
        except (RuntimeError, ValueError, TypeError, NotImplementedError, IndexError):
            continue
        taken.append(name)
        if name == "bool":
            continue
        a, k = mapped(lambda t: whole(t, adjoin.complex128 if t.is_complex() else adjoin.float64), args, kwargs)
        loose = {
            "float16": 1e-2,
            "bfloat16": 5e-2,
            "float32": 1e-4,
            "complex64": 1e-4,
            "float64": 1e-9,
            "complex128": 1e-9,
        }.get(name, 1.0001)
        got = mapped(lambda t: t if t.dtype is not adjoin.bool else t.to(adjoin.int8), _listed(got), {})[0]
        _agree(got, _listed(op.call(*a, **k)), f"{name} is taken and wrong: declare the kernel's dtypes; {name}", loose)
    if not taken:
        raise Fault("no dtype is taken")
    return "takes " + " ".join(taken)


class _Heap(ctypes.Structure):
    """What mallinfo2 returns."""

    _fields_ = [(name, ctypes.c_size_t) for name in "arena free fast maps mapped peak idle used left top".split()]


def _taken():
    """What tells a leak: bytes of tensors, bytes of malloc's, objects of Python's."""
    gc.collect()
    told = {"bytes of tensors": adjoin.memory.memory_allocated(), "objects of Python's": sys.getallocatedblocks()}
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallinfo2"):
        libc.mallinfo2.restype = _Heap
        heap = libc.mallinfo2()
        told["bytes of malloc's"] = heap.used + heap.mapped
    return told


def check_leaks(op, samples):
    """Calls, and backward passes, give back what they took."""
    for args, kwargs in _first(samples):
        try:
            leaves = _differentiable(op, args, kwargs)[1:] and True
        except Skip:
            leaves = False

        def forward(args=args, kwargs=kwargs):
            a, k = clones(args, kwargs)
            op.call(*a, **k)

        def backward(args=args, kwargs=kwargs):
            a, k = clones(args, kwargs, lambda t: t.detach().clone().requires_grad_(_float(t)))
            results = [r for r in tensors_in(_listed(op.call(*a, **k))) if r.requires_grad]
            if results:
                adjoin.autograd.backward(results, [adjoin.ones_like(r) for r in results])

        for what, run in (("a call", forward), *([("a call with its backward pass", backward)] if leaves else [])):
            try:
                grown = _growth(run)
            except (RuntimeError, NotImplementedError):
                continue  # refused: another check's matter
            if grown:
                raise Fault(f"{what} keeps {grown} for good: release what is owned, free what is allocated")


def _growth(run):
    """What each call keeps, or nothing. Caches fill up at first, leaks go on: two rounds after a first one have to grow."""
    before = time.perf_counter()
    for _ in range(20):
        run()
    calls = int(min(200, max(20, 20 * 0.2 / (time.perf_counter() - before))))
    rounds = [_taken()]
    for _ in range(3):
        for _ in range(calls):
            run()
        rounds.append(_taken())
    for what in rounds[0]:
        steps = [(b[what] - a[what]) / calls for a, b in zip(rounds[1:], rounds[2:], strict=False)]
        if min(steps) >= (0.9 if what.startswith("objects") else 8):
            return f"{min(steps):.0f} {what}"
    return ""


CHECKS = {
    "schema": check_schema, "gradient": check_gradient, "second gradient": check_second_gradient, "meta": check_meta,
    "threads": check_threads, "layouts": check_layouts, "dtypes": check_dtypes,
    "leaks": check_leaks,
}  # fmt: skip
