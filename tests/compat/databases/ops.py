"""tests/compat/databases/ops.py: each entry of PyTorch's database of ops, by both."""

import functools
import random
import warnings

import adjoin
import torch
from torch.testing._internal.common_methods_invocations import op_db

from .modules import mapped, tensors
from .pair import Ours, name, rebound, remember_arguments, same, theirs
from .table import Differs

remember_arguments(torch.nn.PairwiseDistance)

MOST = {"values": 2, "derivatives": 4}  # samples of an entry: for each dtype, and in double precision
# Ways of others' compilers, not ops.
CHANCE = (
    "empty",
    "new_empty",
    "rand",
    "normal",
    "bernoulli",
    "nn.functional.dropout",
    "nn.functional.alpha_dropout",
    "svd_lowrank",
    "pca_lowrank",
)
LEFT_OUT = (
    "jiterator",
    "_refs.",
    "torch.ops.aten._flash_attention_forward",
    "torch.ops.aten._efficient_attention_forward",
)


# Results that are one of several: places of equal elements, vectors up to a factor, a logarithm up to 2 pi i.
PLACES = {
    "sort": 0,
    "argsort": 0,
    "mode": 0,
    "topk": 1,
    "kthvalue": 1,
}  # where the dimension stands among the arguments
FACTORS = ("linalg.eig", "linalg.eigh")
BRANCHES = ("logcumsumexp", "masked.logsumexp")
# Differences that are meant, and what is not there: not counted, but named with the table.
_POLES = "inf at the poles, where PyTorch has a large number"
_BYTES = "differences of places in uint8 do not wrap around"
_BESSEL = "the C library's digits, where PyTorch's are off by 1e-6"
_MOMENTS = "the gradients of the mean and the scale count, which PyTorch drops"
_KNOTS = "conjugation is done at once, so the result has memory of its own"
KNOWN = {
    ("values", "to"): "bcomplex32, a dtype of PyTorch 2.15, is not there",
    **{("values", f"polygamma.polygamma_n_{n}"): _POLES for n in range(5)},
    ("values", "special.polygamma.special_polygamma_n_0"): _POLES,
    **{("values", name): _BYTES for name in ("trapz", "trapezoid", "cumulative_trapezoid")},
    **{(column, f"special.bessel_{f}"): _BESSEL for f in ("j0", "j1", "y0", "y1") for column in (
        "values", "first derivatives", "second derivatives", "batching", "methods, in place", "out=")},
    **{("first derivatives", name): _MOMENTS for name in (
        "native_layer_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")},
    **{("second derivatives", name): "0 where nothing is added, where PyTorch has NaN" for name in (
        "linalg.norm.subgradients_at_zero", "masked.logaddexp")},
    ("errors", "__rdiv__"): "a number is divided by a tensor, where PyTorch says that numbers have no reciprocal()",
    ("values", "torch._scaled_mm"): "beyond the range of 8 bits the largest number, as casts give; PyTorch's product has NaN there",
    ("values", "nn.functional.linear_cross_entropy.chunked_none"): "scores of 256 in bfloat16 are whole numbers, rounded otherwise",
    ("first derivatives", "as_strided_scatter"): "the derivative by input is 0 where src is written; PyTorch has it inside out",
    ("second derivatives", "nn.functional.linear_cross_entropy.chunked"): "true with options, too, where PyTorch has 0",
    ("forward derivatives", "cholesky_inverse"): "1e-10 from differences, PyTorch 1e-5",
    ("forward derivatives", "logcumsumexp"): "1e-12 from the sums in long double, PyTorch 1e-6",
    **{("strides of views", name): _KNOTS for name in ("conj", "H", "mH")},
    ("values", "nn.functional.interpolate.bicubic"): "of bytes by one, where PyTorch's weights of 16 bits round otherwise",
    ("values", "_upsample_bilinear2d_aa"): "of bytes by one, where PyTorch's weights of 16 bits round otherwise",
    ("batching", "masked_select"): "another shape for each sample is refused, even where the counts agree",
}  # fmt: skip
LAYOUTS = (torch.sparse_coo, torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc)
WIDER = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


def run(table, seed=0, entries=None, told=None, part=1):
    """``part`` below 1 takes that share of the entries, chosen by the seed."""
    chosen = random.Random(seed)
    for info in op_db:
        called = info.name + (f".{info.variant_test_name}" if info.variant_test_name else "")
        if called.startswith(LEFT_OUT) or (entries and info.name not in entries) or chosen.random() >= part:
            continue
        entry = Entry(table, info, called, seed)
        if table.ask("there", called, "name", lambda entry=entry: entry.find() or True):
            entry.run()
        if told:
            told(called)


def steps(lib, value, needs):
    """The same structure with fresh leaves; tensors record if they are to."""
    made = mapped(value, lambda t: t.clone() if t.layout is torch.strided else t)
    return made if lib is torch else Ours()(made)


def bare(value):
    """The same structure of tensors that record nothing."""
    if isinstance(value, torch.Tensor):
        return value.detach()
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items()}
    return type(value)(map(bare, value)) if type(value) in (list, tuple) else value


def alike(a, b):
    """Whether two results of PyTorch's are one, as far as they are numbers."""
    a, b = a.detach().to_dense(), b.detach().to_dense()
    if a.dtype is torch.complex32:
        a, b = a.to(torch.complex64), b.to(torch.complex64)
    return torch.equal(a, b) or bool(a.isnan().any())


class Entry:
    def __init__(self, table, info, called, seed):
        self.table, self.info, self.called, self.seed = table, info, called, seed

    def find(self):
        """Adjoin's functions of the entry: plain, of a method, in place."""
        op = self.info.op
        mine = adjoin
        if hasattr(op, "__code__") and (op.__module__ or "").startswith("torch.testing"):
            mine = rebound(op)
        else:
            words = self.info.name.removeprefix("torch.")
            if isinstance(op, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
                words = f"ops.{op}".removesuffix(".default")
            elif words.startswith("__") or not callable(getattr(adjoin, words, len)):  # a dtype is named as the method
                mine = adjoin.Tensor
            for part in words.split("."):
                if not hasattr(mine, part):
                    raise Differs(f"there is no {words}")
                mine = getattr(mine, part)
        self.op = {torch: op, adjoin: mine}

    def ask(self, column, case, question):
        if (column, self.called) not in KNOWN:
            return self.table.ask(column, self.called, case, question)
        self.table.leave_out(column, self.called, KNOWN[column, self.called])
        try:
            return question()
        except Exception:
            return None

    def samples(self, dtype, grads, most, layout=torch.strided):
        torch.manual_seed(self.seed)
        draw = self.info.sample_inputs
        if layout is not torch.strided:
            draw = getattr(self.info, f"sample_inputs_{name(layout)}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                got = list(draw("cpu", dtype, requires_grad=grads))
        except Exception:
            return []
        return list(enumerate(got))[:: max(1, len(got) // most)]

    def run(self):
        for dtype in sorted(self.info.supported_dtypes("cpu"), key=str):
            for i, sample in self.samples(dtype, False, MOST["values"]):
                self.plain(sample, f"{name(dtype)} {i}")
        for dtype in (torch.float64, torch.complex128):
            if dtype in self.info.supported_backward_dtypes("cpu") and self.info.supports_autograd:
                for i, sample in self.samples(dtype, True, MOST["derivatives"]):
                    self.recorded(sample, f"{name(dtype)} {i}")
        for layout in LAYOUTS:
            if self.info.supports_sparse_layout(layout):
                self.sparse(layout)
        self.errors()

    def sparse(self, layout):
        """Samples without strides: values and layouts of results, and of gradients."""
        for dtype in sorted(self.info.supported_dtypes("cpu"), key=str):
            derived = dtype in (torch.float64, torch.complex128) and self.info.supports_autograd
            for i, sample in self.samples(dtype, derived, MOST["values"], layout):
                case, told = f"{name(layout)} {name(dtype)} {i}", self.expected(sample)
                if told is None:
                    continue
                if (
                    self.ask("sparse samples", case, lambda s=sample, t=told: self.value(s, t[0], t[2]))
                    and derived
                    and told[2]
                ):
                    process = sample.output_process_fn_grad
                    self.against("sparse derivatives", case, lambda lib, s=sample, p=process: self.derived(lib, s, p))

    def checked(self, lib):
        """The op as its derivatives are asked of it: of the triangle, or the Hermitian part, of what is given."""
        wrap, op = self.info.gradcheck_wrapper, self.op[lib]
        if self.info.name.startswith("masked."):
            return op  # its wrapper hides what lies outside of the mask, by private names
        wrap = wrap if lib is torch else rebound(wrap)
        return lambda *args, **kwargs: wrap(op, *args, **kwargs)

    def call(self, lib, sample, op=None):
        given = steps(lib, (sample.input, sample.args, sample.kwargs), None)
        return (op or self.op[lib])(given[0], *given[1], **given[2]), given

    def steady(self):
        """Whether the entry's results are not left to chance, nor to what memory held."""
        of_seed = "wrapper_set_seed" in getattr(getattr(self.info.op, "__code__", None), "co_names", ())
        return not of_seed and not self.info.name.startswith(CHANCE)

    def expected(self, sample):
        """PyTorch's result, its arguments afterwards, and whether they hang on a generator; None where it refuses."""
        try:
            torch.manual_seed(1)
            first, given = self.call(torch, sample)
            again = []
            for drawn in (2, 3, 4, 5):
                torch.manual_seed(drawn)
                again.append(self.call(torch, sample)[0])
        except Exception:
            return None
        steady = self.steady() and all(
            alike(a, b) for other in again for a, b in zip(tensors(first), tensors(other), strict=True)
        )
        return first, given, steady

    def plain(self, sample, case):
        told = self.expected(sample)
        if told is None:
            return
        yours, _, steady = told
        mine = self.ask("values", case, lambda: self.value(sample, yours, steady))
        if mine is None:
            return
        if steady:
            self.ask("strides of views", case, lambda: self.views(sample))
        self.ask("methods, in place", case, lambda: self.variants(sample, steady))
        if self.info.supports_out and steady:
            self.ask("out=", case, lambda: self.out(sample, yours))

    def value(self, sample, yours, steady):
        self.agree(sample, self.call(adjoin, sample)[0], yours, values=steady)
        return True

    def agree(self, sample, mine, yours, **how):
        """As `same` of an op's results, where PyTorch's are neither one choice of several nor rounded more."""
        mine, yours = self.settled(sample, mine, adjoin), self.settled(sample, yours, torch)
        try:
            same(mine, yours, **how)
        except Differs:
            if not self.nearer(sample, mine, yours):
                raise

    def settled(self, sample, result, lib):
        """The result, or what of it is no matter of choice: elements for their places, sizes for vectors, an exponential."""
        if self.info.name in FACTORS:
            return result[0], result[1].abs()
        if self.info.name in ("linalg.svd", "svd"):  # sizes, and what the parts give again
            u, s, v = result
            if u.numel() and v.numel():
                k = s.shape[-1]
                back = v[..., :k, :] if "linalg" in self.info.name else v.mH[..., :k, :]
                return u.abs() if u.shape[-1] == k else u.mH @ u, s, (u[..., :k] * s.unsqueeze(-2)) @ back
        if self.info.name == "linalg.cholesky_ex":  # of matrices that have no factor it is not defined
            return result[0].where((result[1] == 0)[..., None, None], lib.zeros((), dtype=result[0].dtype)), result[1]
        if self.info.name in BRANCHES and result.dtype.is_complex:
            return result.exp()
        if self.info.name not in PLACES or sample.kwargs.get("stable"):
            return result
        dim = sample.kwargs.get("dim", (*sample.args, -1, -1)[PLACES[self.info.name]])
        if not isinstance(dim, int) or isinstance(dim, bool):
            dim = -1
        x = sample.input.detach() if lib is torch else Ours()(sample.input.detach())
        places = result if lib.is_tensor(result) else result[1]
        keeps = places.dim() == x.dim()
        found = x.gather(dim, places if keeps else places.unsqueeze(dim)) if x.dim() else x
        found = found if keeps or not x.dim() else found.squeeze(dim)
        return found if lib.is_tensor(result) else (result[0], found)

    def nearer(self, sample, mine, yours):
        """Whether ours differs because PyTorch rounds more: nowhere farther from the result in double precision."""
        dtypes = {t.dtype for t in tensors(yours)} & set(WIDER)
        if not dtypes:
            return False
        same(mine, yours, values=False)

        def wide(t):
            return t.detach().to(WIDER.get(t.dtype, t.dtype))

        try:
            given = mapped((sample.input, sample.args, sample.kwargs), wide)
            kwargs = {k: WIDER.get(v, v) if isinstance(v, torch.dtype) else v for k, v in given[2].items()}
            truth = tensors(self.op[torch](given[0], *given[1], **kwargs))
        except Exception:
            return False
        for ours, other, true in zip(map(theirs, tensors(mine)), tensors(yours), truth, strict=True):
            finite = true.isfinite() & (true.abs() <= torch.finfo(other.dtype).max if other.dtype in WIDER else True)
            far, near = ((t.detach().to(true.dtype) - true)[finite].abs() for t in (ours, other))
            places = 32 if other.dtype.itemsize > 2 and other.dtype in WIDER else 1  # of sums that cancel
            most = true[finite].abs().max() if finite.any() else 0
            place = places * torch.finfo(other.dtype).eps * most if other.dtype in WIDER else 0
            if (ours.isfinite() != finite).any() or (far > max(near.max() if len(near) else 0, place) + 1e-9).any():
                return False
        return True

    def views(self, sample):
        """Where PyTorch's result lies in its input's memory, ours does, with the same strides."""
        told = []
        for lib in (torch, adjoin):
            result, given = self.call(lib, sample)
            places = {
                t.untyped_storage().data_ptr() for t in tensors(given[0]) if t.layout is lib.strided and t.numel()
            }
            told.append(
                [
                    tuple(t.stride()) if t.untyped_storage().data_ptr() in places and t.numel() else "own"
                    for t in tensors(result)
                    if t.layout is lib.strided
                ]
            )
        if told[0] != told[1]:
            raise Differs(f"views {told[1]}, not {told[0]}")

    def variants(self, sample, steady):
        for kind in ("method_variant", "inplace_variant"):
            yours_ = getattr(self.info, kind)
            if yours_ is None or not isinstance(sample.input, torch.Tensor) or sample.broadcasts_input and "in" in kind:
                continue
            try:
                yours, given = self.call(torch, sample, yours_)
            except Exception:
                continue
            called = getattr(yours_, "__name__", None) or self.info.name
            if isinstance(yours_, functools.partial):
                found_ = functools.partial(self.op[adjoin], *Ours()(yours_.args), **Ours()(yours_.keywords))
                self.variant(sample, steady, kind, called, found_, yours, given)
                continue
            mine_ = (
                getattr(adjoin.Tensor, called, None)
                if not hasattr(yours_, "__code__") or called != "<lambda>"
                else None
            )
            if mine_ is None:
                mine_ = rebound(yours_) if hasattr(yours_, "__code__") else None
            if mine_ is None:
                raise Differs(f"a tensor has no {called}")
            self.variant(sample, steady, kind, called, mine_, yours, given)

    def variant(self, sample, steady, kind, called, function, yours, given):
        mine, ours = self.call(adjoin, sample, function)
        self.agree(sample, mine, yours, values=steady, where=called)
        if kind == "inplace_variant":
            self.agree(sample, ours[0], given[0], values=steady, where=f"the input of {called}")

    def out(self, sample, yours):
        parts = tensors(yours)
        if not parts or any(t.layout is not torch.strided for t in parts):
            return
        for lib in (torch, adjoin):
            outs = [lib.empty(tuple(t.shape), dtype=getattr(lib, name(t.dtype))) for t in parts]
            outs = outs[0] if isinstance(yours, torch.Tensor) else tuple(outs)
            try:
                self.call(lib, sample, lambda *a, lib=lib, outs=outs, **k: self.op[lib](*a, **k, out=outs))
            except Exception:
                if lib is torch:
                    return
                raise
        self.agree(sample, outs, yours if isinstance(yours, torch.Tensor) else tuple(parts), where="out")

    def recorded(self, sample, case):
        told = self.expected(sample)
        if told is None or not told[2]:
            return
        process = sample.output_process_fn_grad
        grads = {}
        for lib in (torch, adjoin):
            if lib is adjoin and not grads:
                return
            column = "first derivatives"
            if lib is torch:
                try:
                    grads[lib] = self.derived(lib, sample, process)
                except Exception:
                    return
            else:
                grads[lib] = self.ask(column, case, lambda: self.compared(sample, process, grads[torch]))
        if grads[adjoin] is None:
            return
        if self.info.supports_gradgrad:
            self.against("second derivatives", case, lambda lib: self.derived(lib, sample, process, twice=True))
        if self.info.supports_forward_ad:
            self.against("forward derivatives", case, lambda lib: self.forward(lib, sample, process))
        self.against("batching", case, lambda lib: self.batched(lib, sample))

    def against(self, column, case, question):
        try:
            yours = question(torch)
        except Exception:
            return
        if yours is not None:
            self.ask(column, case, lambda: same(question(adjoin), yours, where=column))

    def compared(self, sample, process, yours):
        mine = self.derived(adjoin, sample, process)
        same(mine, yours, where="gradient")
        return mine

    def outs(self, lib, result, process):
        result = (process if lib is torch else rebound(process) if hasattr(process, "__code__") else process)(result)
        return [t for t in tensors(result) if (t.dtype.is_floating_point or t.dtype.is_complex) and t.numel()]

    def derived(self, lib, sample, process, twice=False):
        result, given = self.call(lib, sample, self.checked(lib))
        outs = [t for t in self.outs(lib, result, process) if t.requires_grad]
        ins = [t for t in tensors(list(given)) if t.requires_grad]
        draw = torch.Generator().manual_seed(4)
        cotangents = [torch.rand(tuple(t.shape), dtype=getattr(torch, name(t.dtype)), generator=draw) for t in outs]
        cotangents = [c.requires_grad_(twice) for c in cotangents]
        cotangents = cotangents if lib is torch else Ours()(cotangents)
        first = lib.autograd.grad(outs, ins, cotangents, create_graph=twice, allow_unused=True)
        if not twice:  # none and zeros say the same: that nothing changes
            return [lib.zeros_like(t).detach() if g is None else g for g, t in zip(first, ins, strict=True)]
        kept = [g for g in first if g is not None and g.requires_grad]
        weights = [torch.rand(tuple(g.shape), dtype=getattr(torch, name(g.dtype)), generator=draw) for g in kept]
        weights = weights if lib is torch else Ours()(weights)
        if not kept:
            return None
        second = lib.autograd.grad(kept, ins + cotangents, weights, allow_unused=True)
        # Zeros, or none: both say that nothing changes.
        return [lib.zeros_like(t).detach() if g is None else g for g, t in zip(second, ins + cotangents, strict=True)]

    def forward(self, lib, sample, process):
        ad = lib.autograd.forward_ad
        draw = torch.Generator().manual_seed(5)
        given = mapped(
            (sample.input, sample.args, sample.kwargs), lambda t: t.clone() if t.layout is torch.strided else t
        )
        moves = {
            id(t): torch.rand(t.shape, dtype=t.dtype, generator=draw) for t in tensors(list(given)) if t.requires_grad
        }
        ours = Ours()
        with ad.dual_level():

            def dual(t):
                mine = t.detach() if lib is torch else ours(t.detach())
                move = moves.get(id(t))
                return mine if move is None else ad.make_dual(mine, move if lib is torch else Ours()(move))

            def walk(value):
                if isinstance(value, torch.Tensor):
                    return dual(value)
                if isinstance(value, dict):
                    return {k: walk(v) for k, v in value.items()}
                if type(value) in (list, tuple):
                    return type(value)(map(walk, value))
                return value if lib is torch else Ours()(value)

            a, b, c = walk(given)
            result = self.checked(lib)(a, *b, **c)
            outs = self.outs(lib, result, process)
            moved = [(t, ad.unpack_dual(t).tangent) for t in outs]
            return [lib.zeros(tuple(t.shape), dtype=t.dtype) if move is None else move for t, move in moved]

    def batched(self, lib, sample):
        if not isinstance(sample.input, torch.Tensor):
            return None
        x = sample.input.detach()
        many = torch.stack([x, x.flip(0) if x.dim() else x])
        _, args, kwargs = steps(lib, bare((None, sample.args, sample.kwargs)), None)
        many = many if lib is torch else Ours()(many)
        made = lib.vmap(lambda t: self.op[lib](t, *args, **kwargs))(many)
        made = made if self.info.name in PLACES else self.settled(sample, made, lib)
        return made

    def errors(self):
        if self.info.error_inputs_func is None:
            return
        try:
            given = list(self.info.error_inputs("cpu"))
        except Exception:
            return
        for i, error in enumerate(given):
            self.ask("errors", f"error {i}", lambda error=error: self.refused(error))

    def refused(self, error):
        kinds = error.error_type if isinstance(error.error_type, tuple) else (error.error_type,)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error" if issubclass(kinds[0], Warning) else "ignore")
                self.call(torch, error.sample_input)
        except Exception as e:
            kinds = (type(e),)  # what PyTorch does is what counts
        else:
            return
        try:
            self.call(adjoin, error.sample_input)
        except kinds:
            return
        except Exception as e:
            raise Differs(f"raises {type(e).__name__} ({e}), not {kinds[0].__name__}: {error.error_regex}") from e
        raise Differs(f"does not refuse: {kinds[0].__name__}: {error.error_regex}")
