"""bench/cases.py: small calls: ops, views, creation; what one of them costs."""

from table import case


def pair(n, grad=False):
    def setup(T):
        a = T.ones(n).requires_grad_(grad)
        b = T.ones(n).requires_grad_(grad)
        return {
            "a": a,
            "b": b,
            "c": T.empty(n),
            "f64": T.float64,
            "off": T.no_grad,
            "nothing": lambda: None,
        }

    return setup


# ---- ops: what one call costs
for size in (1, 64, 1024):
    case("ops", f"add_{size}", "a + b", pair(size))
for name, statement in {
    "add_fn_64": "T.add(a, b)",
    "add__64": "a.add_(b)",
    "clone_64": "a.clone()",
    "add_out_64": "T.add(a, b, out=c)",
    "mul_scalar_64": "a * 2.0",
    "exp_64": "a.exp()",
    "sum_64": "a.sum()",
    "mean_64": "a.mean()",
    "argmax_64": "a.argmax()",
    "gt_64": "a > b",
    "cat2_64": "T.cat((a, b))",
    "attr_shape": "a.shape",
    "attr_dtype": "a.dtype",
    "attr_is_contiguous": "a.is_contiguous()",
    "attr_data_ptr": "a.data_ptr()",
    "attr_size0": "a.size(0)",
    "to_f64_64": "a.to(f64)",
}.items():
    case("ops", name, statement, pair(64))
for name, statement in {
    "add__1": "a.add_(b)",
    "item": "a.item()",
    "float_t": "float(a)",
    "bool_t": "bool(a)",
    "python_nop_call": "nothing()",
    "no_grad_ctx": "with off(): pass",
}.items():
    case("ops", name, statement, pair(1))
case("ops", "add_1_grad", "a + b", pair(1, True))
for name, statement in {
    "add_64_grad": "a + b",
    "clone_64_grad": "a.clone()",
    "clone_add__64_grad": "c = a.clone(); c.add_(b)",
    "sum_64_grad": "a.sum()",
}.items():
    case("ops", name, statement, pair(64, True))
case("ops", "mm_8x8", "a @ b", lambda T: {"a": T.ones(8, 8), "b": T.ones(8, 8)})
case("ops", "add_bcast_8x8_8", "a + b", lambda T: {"a": T.ones(8, 8), "b": T.ones(8)})

CHAIN = "x = a\n" + "x = x * b\nx = x + b\n" * 50
TANH_CHAIN = "x = a\n" + "x = x.tanh()\nx = x * b\n" * 50
case("ops", "chain100_fwd_nograd", CHAIN, pair(64), per=100)
case("ops", "chain100_fwd_grad", CHAIN, pair(64, True), per=100)
case("ops", "chain100_fwdbwd", CHAIN + "x.sum().backward()", pair(64, True), per=100)
case("ops", "chain100_tanh_fwdbwd", TANH_CHAIN + "x.sum().backward()", pair(64, True), per=100)


def built_chain(grad_b):
    """Only the backward of a chain is timed; retain_graph lets it be repeated."""

    def setup(T):
        a, b = T.ones(64).requires_grad_(True), T.ones(64).requires_grad_(grad_b)
        x = a
        for _ in range(50):
            x = x * b
            x = x + b
        return {"loss": x.sum()}

    return setup


case("ops", "chain100_bwd_only", "loss.backward(retain_graph=True)", built_chain(True), per=100)
case("ops", "chain100_bwd_only_a", "loss.backward(retain_graph=True)", built_chain(False), per=100)


def one_op(T):
    a = T.ones(1).requires_grad_(True)
    return {"a": a, "loss": a * 2.0}


case("ops", "backward_1op", "loss.backward(retain_graph=True)", one_op)
case("ops", "autograd_grad_1op", "T.autograd.grad(loss, a, retain_graph=True)", one_op)

MODULES = {
    "identity": lambda nn: nn.Identity(),
    "relu": lambda nn: nn.ReLU(),
    "linear": lambda nn: nn.Linear(16, 16),
    "seq": lambda nn: nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16)),
}
for kind, make in MODULES.items():
    case("ops", f"module_{kind}", "m(x)", lambda T, make=make: {"m": make(T.nn), "x": T.ones(4, 16)})


# ---- view: slicing, shapes, indexing
def matrices(T):
    return {
        "x": T.arange(64.0).reshape(8, 8),
        "x3": T.zeros(4, 4, 4),
        "idx": T.tensor([1, 3, 5]),
        "one": T.ones(1),
        "recorded": T.ones(8, 8).requires_grad_(True) * 1.0,
    }


for name, statement in {
    "select": "x[0]",
    "slice": "x[:, 1:3]",
    "elem": "x[0, 0]",
    "transpose": "x.t()",
    "transpose01": "x.transpose(0, 1)",
    "reshape": "x.reshape(4, 16)",
    "view": "x.view(64)",
    "unsqueeze": "x.unsqueeze(0)",
    "permute": "x3.permute(2, 0, 1)",
    "expand": "one.expand(64)",
    "detach": "x.detach()",
    "flatten": "x3.flatten(1)",
    "ellipsis": "x3[..., 0]",
    "newaxis": "x[None]",
    "split": "x.split(2)",
    "unbind": "x.unbind(0)",
    "chunk": "x.chunk(2)",
    "index_tensor": "x[idx]",
    "index_list": "x[[1, 3, 5]]",
    "mask": "x[x > 3]",
    "setitem": "x[0] = 1.0",
    "setitem_elem": "x[0, 0] = 1.0",
    "select_grad": "recorded[0]",
    "view_grad": "recorded.view(64)",
    "iter": "for r in x: pass",
    "tolist": "x.tolist()",
}.items():
    case("view", "view_" + name, statement, matrices)


# ---- create: tensors from nothing, numbers, lists and NumPy
def sources(T):
    import numpy as np

    return {
        "np": np,
        "array": np.ones(64, np.float32),
        "list3": [1.0, 2.0, 3.0],
        "list1000": [float(i) for i in range(1000)],
        "nested": [[float(i) for i in range(32)] for _ in range(32)],
        "t": T.ones(64),
    }


for name, statement in {
    "empty1": "T.empty(1)",
    "empty64": "T.empty(64)",
    "zeros64": "T.zeros(64)",
    "ones64": "T.ones(64)",
    "full64": "T.full((64,), 2.0)",
    "tensor_scalar": "T.tensor(3.0)",
    "tensor_list3": "T.tensor(list3)",
    "tensor_list1000": "T.tensor(list1000)",
    "tensor_nested32x32": "T.tensor(nested)",
    "from_numpy": "T.from_numpy(array)",
    "tensor_numpy": "T.tensor(array)",
    "as_tensor_np": "T.as_tensor(array)",
    "numpy": "t.numpy()",
    "arange10": "T.arange(10)",
    "rand64": "T.rand(64)",
    "randn64": "T.randn(64)",
    "zeros_like": "T.zeros_like(t)",
    "eye8": "T.eye(8)",
    "np_array": "np.asarray(t)",
    "from_dlpack": "T.from_dlpack(t)",
}.items():
    case("create", "create_" + name, statement, sources)
