"""tests/python/autograd/vmap_test.py: func.vmap: levels inside each other, derivatives, writes, draws, functions of users, refusals."""

import collections
import functools
import subprocess
import sys

import adjoin
import adjoin.nn.functional as F
import pytest
from adjoin.func import functional_call, grad, hessian, jacrev, loops, vmap
from functions_of_a_vector import functions

randn = adjoin.randn
FUNCTIONS = functions(adjoin.float32)


@pytest.fixture(autouse=True)
def seed():
    adjoin.manual_seed(1)


def stacked(f, *args):
    return adjoin.stack([f(*(a[i] for a in args)) for i in range(len(args[0]))])


def agree(got, want):
    assert got.shape == want.shape and got.dtype == want.dtype
    assert adjoin.allclose(got, want, rtol=1e-4, atol=1e-5), (got, want)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nestings(name):
    f = FUNCTIONS[name]
    x = randn(3, 4)

    def number(v):
        return (f(v) * 1.5).sum()

    agree(vmap(f)(x), stacked(f, x))
    agree(vmap(f, -1)(x.t()), stacked(f, x))
    agree(vmap(grad(number))(x), stacked(grad(number), x))
    agree(grad(lambda v: vmap(number)(v).sum())(x), stacked(grad(number), x))
    agree(vmap(grad(lambda v: grad(number)(v).sin().sum()))(x), stacked(grad(lambda v: grad(number)(v).sin().sum()), x))
    pairs = randn(2, 3, 4)
    agree(vmap(vmap(f))(pairs), adjoin.stack([stacked(f, p) for p in pairs]))
    agree(vmap(vmap(grad(number)), 1)(pairs.transpose(0, 1)), adjoin.stack([stacked(grad(number), p) for p in pairs]))
    mixed = vmap(lambda a: vmap(lambda b: number(a * b))(x))(x)
    agree(mixed, adjoin.stack([stacked(lambda b, a=a: number(a * b), x) for a in x]))
    rows = jacrev(f)(x[0]).reshape(-1, 4)
    agree(rows, adjoin.stack([grad(lambda v, i=i: f(v).reshape(-1)[i])(x[0]) for i in range(len(rows))]))
    agree(jacrev(f, chunk_size=2)(x[0]).reshape(-1, 4), rows)
    agree(vmap(jacrev(f))(x), stacked(jacrev(f), x))
    agree(hessian(number)(x[0]), adjoin.stack([grad(lambda v, i=i: grad(number)(v)[i])(x[0]) for i in range(4)]))
    leaf = x.clone().requires_grad_()
    vmap(number)(leaf).sum().backward()
    agree(leaf.grad, stacked(grad(number), x))


def test_arguments_and_results():
    x, y = randn(3, 4), randn(4, 3)
    got = vmap(lambda a, b: {"sum": a + b, "pair": (a * 2, b)}, (0, 1), {"sum": 0, "pair": (1, -1)})(x, y)
    agree(got["sum"], x + y.t())
    agree(got["pair"][0], (x * 2).t())
    agree(got["pair"][1], y)
    agree(vmap(lambda t, k: t["a"] * k, ({"a": 0}, None))({"a": x}, 3), x * 3)
    shared = vmap(lambda a: (a, y), out_dims=(0, None))(x)[1]
    agree(shared, y)
    agree(vmap(lambda a: y)(x), y.expand(3, 4, 3))
    with pytest.raises(ValueError, match="out_dims has None"):
        vmap(lambda a: a, out_dims=None)(x)
    for size in (1, 2, 3, 7):
        agree(vmap(lambda a: a.sin().sum(), chunk_size=size)(x), x.sin().sum(1))
    assert vmap(lambda a: a.reshape(2, -1).sum(0))(randn(0, 4)).shape == (0, 2)
    assert adjoin.vmap is vmap


def test_a_sample_without_dimensions_promotes_weakly():
    many = adjoin.randn(3, 4)
    for one in (adjoin.randn(3, dtype=adjoin.float64), adjoin.arange(3), adjoin.tensor([True, False, True])):
        agree(vmap(lambda a, b: a * b)(one, many), stacked(lambda a, b: a * b, one, many))
    sides = adjoin.randn(3)
    agree(
        vmap(lambda a, b: adjoin.where(a > 0, b, b * 2))(sides, many),
        stacked(lambda a, b: adjoin.where(a > 0, b, b * 2), sides, many),
    )
    whole = adjoin.arange(3)
    wide = adjoin.tensor(2.0, dtype=adjoin.float64)
    agree(vmap(lambda a: a * wide)(whole.float()), stacked(lambda a: a * wide, whole.float()))


def test_per_sample_gradients_of_networks():
    net = adjoin.nn.Sequential(
        adjoin.nn.Conv2d(1, 3, 3), adjoin.nn.ReLU(), adjoin.nn.MaxPool2d(2), adjoin.nn.Flatten(), adjoin.nn.LayerNorm(27),
        adjoin.nn.Linear(27, 4),
    )  # fmt: skip
    parameters = {k: v.detach() for k, v in net.named_parameters()}
    images, classes = randn(5, 1, 8, 8), adjoin.tensor([0, 1, 2, 3, 0])

    def loss(p, image, label):
        return F.cross_entropy(functional_call(net, p, (image.unsqueeze(0),)), label.unsqueeze(0))

    got = vmap(grad(loss), (None, 0, 0))(parameters, images, classes)
    for name in parameters:
        agree(
            got[name], adjoin.stack([grad(loss)(parameters, i, c)[name] for i, c in zip(images, classes, strict=True)])
        )


def test_constants_of_levels_around():
    w = randn(4, requires_grad=True)
    x = randn(3, 4)
    vmap(lambda a: (a * w).sin().sum())(x).sum().backward()
    agree(w.grad, (x * (x * w).cos()).sum(0).detach())
    # The inner derivative is by its own argument alone, whatever else asks for gradients.
    agree(vmap(grad(lambda a: (a * w).sum()))(x).detach(), w.expand(3, 4).detach())
    with adjoin.no_grad():
        assert not vmap(lambda a: a * w)(x).requires_grad
    # grad of what is not mapped, inside of vmap.
    fixed = randn(4)
    agree(vmap(lambda a: grad(lambda v: (v * a).sum())(fixed))(x), x)


def test_draws_are_those_of_a_loop():
    x = randn(3, 5)
    for f in (
        lambda a: adjoin.rand(2), lambda a: a + adjoin.randn_like(a) * adjoin.rand(1), lambda a: F.dropout(a, 0.5),
        lambda a: a.clone().uniform_() + adjoin.bernoulli(adjoin.full((5,), 0.5)),
    ):  # fmt: skip
        adjoin.manual_seed(5)
        want, after = stacked(f, x), adjoin.rand(1)
        adjoin.manual_seed(5)
        mapped = vmap(f, randomness="different")
        assert mapped(x).equal(want) and adjoin.rand(1).equal(after)
        adjoin.manual_seed(5)
        assert mapped(x).equal(want) and adjoin.rand(1).equal(after)
        adjoin.manual_seed(5)
        same = vmap(f, randomness="same")(x * 0 + x[0])
        assert same[0].equal(same[1])
        with pytest.raises(RuntimeError, match="randomness='same' or 'different'"):
            vmap(f)(x)


def test_refusals():
    x = randn(3, 4)
    with pytest.raises(NotImplementedError, match="values of a batched tensor.*where"):
        vmap(lambda a: a if a.sum() > 0 else -a)(x)
    with pytest.raises(NotImplementedError, match="nonzero: vmap: its result has another shape"):
        vmap(lambda a: a.nonzero())(x)
    with pytest.raises(NotImplementedError, match="one number of Python's"):
        vmap(lambda a: adjoin.allclose(a, a))(x)
    outside = adjoin.zeros(4)
    with pytest.raises(NotImplementedError, match="all samples share is written in place"):
        vmap(lambda a: outside.add_(a))(x)
    assert not outside.any()
    kept = []
    vmap(lambda a: kept.append(a) or a)(x)
    for use in (lambda t: t + 1, lambda t: t.sum(), lambda t: t[0], lambda t: t.numpy(), lambda t: t.tolist()):
        with pytest.raises((RuntimeError, NotImplementedError), match="transform.*ended"):
            use(kept[0])
    assert vmap(lambda a: a.sin())(x).equal(x.sin())  # levels are closed after errors, too


def test_loops_are_told():
    x, labels, length = randn(3, 5, 4).log_softmax(-1), adjoin.tensor([[1, 2], [3, 1], [2, 2]]), adjoin.tensor(2)

    def loss(a, t):
        return adjoin.nn.functional.ctc_loss(a, t, length + 3, length)

    agree(vmap(loss)(x, labels), stacked(loss, x, labels))
    told = {line[0]: line for line in loops()}
    assert told["ctc_loss"][2] >= 1 and told["ctc_loss"][3] >= 3 and told["ctc_loss"][1]
    assert "sin" not in told and "mm" not in told
    loops("error")
    try:
        with pytest.raises(NotImplementedError, match="sample by sample"):
            vmap(loss)(x, labels)
    finally:
        loops("allow")


class Cube(adjoin.autograd.Function):
    """Its derivative is not that of its forward, so that nobody can mistake one for the other."""

    @staticmethod
    def forward(x):
        return x**3

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * x * 7


class MappedCube(Cube):
    seen = []

    @staticmethod
    def vmap(info, in_dims, x):
        MappedCube.seen.append((info.batch_size, info.randomness, in_dims))
        return MappedCube.apply(x.movedim(in_dims[0], 0)), 0


@pytest.mark.parametrize("cls", [Cube, MappedCube])
def test_functions_of_users(cls):
    x = randn(3, 4)
    agree(vmap(cls.apply)(x), x**3)
    agree(vmap(grad(lambda a: cls.apply(a).sum()))(x), x * 7)
    agree(grad(lambda v: vmap(cls.apply)(v).sum())(x), x * 7)
    agree(vmap(grad(lambda a: grad(lambda b: cls.apply(b).sum())(a).sin().sum()))(x), 7 * (7 * x).cos())
    agree(vmap(vmap(cls.apply))(x), x**3)
    if cls is MappedCube:
        assert (3, "error", (0,)) in MappedCube.seen
    else:
        assert any(line[0] == "Cube" for line in loops())


def test_import_does_not_load_the_extension():
    program = """
import adjoin
plugins = lambda: open("/proc/self/maps").read()
x = adjoin.ones(3, requires_grad=True)
adjoin.func.grad(lambda v: v.sum())(x)
assert "libaj_transform" not in plugins()
adjoin.vmap(lambda v: v)(x)
assert "libaj_transform" in plugins()
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


@pytest.mark.parametrize("n", [0, 1, 7, 40])
def test_permutations_are_those_of_a_loop(n):
    adjoin.manual_seed(n)
    made = vmap(lambda v: adjoin.randperm(n), randomness="different")(adjoin.zeros(4))
    adjoin.manual_seed(n)
    assert adjoin.equal(made, adjoin.stack([adjoin.randperm(n) for _ in range(4)]))
    adjoin.manual_seed(n)
    made = vmap(lambda v: v[adjoin.randperm(len(v))], randomness="same")(adjoin.arange(12).reshape(3, 4))
    adjoin.manual_seed(n)
    assert adjoin.equal(made, adjoin.arange(12).reshape(3, 4)[:, adjoin.randperm(4)])


@pytest.mark.parametrize(
    "transform", [vmap, adjoin.func.grad, adjoin.func.grad_and_value, adjoin.func.jacrev, adjoin.func.jacfwd]
)
def test_a_transformed_function_has_the_name_and_the_words_of_its_own(transform):
    def square(x: float) -> float:
        """x by itself."""
        return (x * x).sum()

    square.mark = [1]
    made = transform(square)
    assert (made.__name__, made.__qualname__, made.__doc__) == ("square", square.__qualname__, square.__doc__)
    assert (made.__module__, made.mark, made.__wrapped__) == (__name__, [1], square)
    assert made.__annotations__ == {"x": float, "return": float}
    made.other = 2
    assert not hasattr(square, "other")
    part = functools.partial(lambda y, x: (x * y).sum(), adjoin.ones(2))
    assert transform(part).__wrapped__ is part


def test_arguments_and_results_in_a_structure_of_their_own():
    class Pair(tuple):
        pass

    Point = collections.namedtuple("Point", "x y")

    class Words(dict):
        pass

    x = adjoin.arange(3.0) + 1
    tree = Words(a=Point(x, [2 * x, "word"]), b=Pair((3 * x, None)))
    loss = lambda t: (t["a"].x * t["a"].y[0]).sum() + (t["b"][0] ** 2).sum()
    found = adjoin.func.grad(loss)(tree)
    assert type(found) is Words and type(found["a"]) is Point and type(found["b"]) is Pair
    assert found["a"].y[1] == "word" and found["b"][1] is None
    for given, wanted in ((found["a"].x, 2 * x), (found["a"].y[0], x), (found["b"][0], 6 * x)):
        assert adjoin.equal(given, wanted)
    endless = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        adjoin.func.grad(lambda t: x.sum())(endless)
    with pytest.raises(ValueError, match="values"):
        adjoin._C.tree_fill([x, x], [x])
    with pytest.raises(ValueError, match="values"):
        adjoin._C.tree_fill([x], [x, x])


@pytest.mark.parametrize("images", [None, 1, 3, 6])
@pytest.mark.parametrize(
    "shape, kernel, options",
    [
        ((3, 9), (5, 3, 2), {"stride": 2}),
        ((2, 7, 8), (4, 2, 3, 2), {"padding": (1, 2), "stride": (2, 1), "dilation": (1, 2)}),
        ((1, 6, 6), (2, 1, 1, 1), {}),
        ((2, 4, 5, 4), (3, 2, 2, 3, 2), {"padding": 1}),
        ((4, 6, 6), (4, 2, 3, 3), {"groups": 2}),
    ],
)
def test_convolutions_give_each_sample_its_gradient(shape, kernel, options, images):
    convolve = {2: F.conv1d, 3: F.conv2d, 4: F.conv3d}[len(shape)]
    x = randn(5, *(() if images is None else (images,)), *shape)
    weight, bias = randn(*kernel), randn(kernel[0])
    loss = lambda w, b, v: (convolve(v, w, b, **options) ** 2).sin().sum()
    for wanted in ((0,), (0, 1), (1, 2), (0, 1, 2), (2,)):
        of_one = grad(loss, wanted)
        found = vmap(of_one, (None, None, 0))(weight, bias, x)
        for number in range(5):
            for mine, own in zip(found, of_one(weight, bias, x[number]), strict=True):
                assert adjoin.allclose(mine[number], own, rtol=1e-3, atol=1e-3)
    mapped = vmap(vmap(grad(loss), (None, None, 0)), (None, None, 0))(weight, bias, x.expand(2, *x.shape))
    assert adjoin.allclose(mapped[1], vmap(grad(loss), (None, None, 0))(weight, bias, x), rtol=1e-3, atol=1e-3)


def test_a_derivative_is_recorded_where_what_it_is_of_is():
    x = randn(4, requires_grad=True)
    cube = lambda v: (v**3).sum()
    for made in (grad(cube)(x), jacrev(cube)(x), adjoin.func.vjp(cube, x)[1](adjoin.ones(()))[0]):
        assert made.requires_grad
        agree(adjoin.autograd.grad(made.sum(), x)[0], 6 * x.detach())
    weight = adjoin.ones((), requires_grad=True)
    pulled = adjoin.func.vjp(cube, x.detach())[1]
    for _ in range(2):  # again, with a graph and without
        assert not pulled(adjoin.ones(()))[0].requires_grad
        agree(adjoin.autograd.grad(pulled(weight)[0].sum(), weight)[0], (3 * x.detach() ** 2).sum())
    plain = x.detach()
    assert not any(t.requires_grad for t in (grad(cube)(plain), jacrev(cube)(plain), hessian(cube)(plain)))
    agree(hessian(cube)(plain), adjoin.diag(6 * plain))
    agree(jacrev(lambda v: v**2, chunk_size=3)(plain), adjoin.diag(2 * plain))
    both = jacrev(lambda v: (v**2, v.sum()))(plain)  # one graph, two results
    agree(both[1], adjoin.ones(4))


def test_a_derivative_inside_of_vmap_is_recorded_around_it():
    x, w = randn(5, 3), randn(3, requires_grad=True)
    loss = lambda v: ((w * v) ** 3).sum()
    for made in (
        vmap(grad(loss))(x),
        vmap(jacrev(loss))(x),
        vmap(lambda v: adjoin.func.vjp(loss, v)[1](adjoin.ones(()))[0])(x),
    ):
        agree(made.detach(), 3 * w.detach() ** 3 * x**2)
        agree(adjoin.autograd.grad(made.sum(), w)[0], (9 * w.detach() ** 2 * x**2).sum(0))
    pulled = adjoin.func.vjp(lambda v: v**3, x[0])[1]
    agree(grad(lambda c: vmap(pulled)(c)[0].sum())(randn(2, 3)), (3 * x[0] ** 2).expand(2, 3))


def test_keyword_arguments_are_the_same_for_all_samples():
    def f(x, k, scale=1.0):
        return (x * k).sum() * scale

    x, k = adjoin.ones(3, 2), adjoin.arange(6.0).reshape(3, 2)
    assert vmap(f)(x, k=k, scale=2.0).tolist() == [30, 30, 30]
    assert vmap(f, chunk_size=2)(x, k=k).tolist() == [15, 15, 15]
    assert vmap(f)(x, k).tolist() == [1, 5, 9]
    assert vmap(lambda x, k: x)(adjoin.ones(3), k=adjoin.ones(4)).tolist() == [1, 1, 1]


def test_what_is_no_tensor_is_not_mapped():
    with pytest.raises(ValueError, match="We cannot vmap over non-Tensor arguments"):
        vmap(lambda x, n: x * n)(adjoin.ones(3), 2)
    assert vmap(lambda x, n: x * n, in_dims=(0, None))(adjoin.ones(3), 2).tolist() == [2, 2, 2]


def test_chunks_by_their_number():
    from adjoin._functorch.vmap import chunk_vmap

    seen = []

    def f(x):
        seen.append(1)
        return x.sum()

    x = adjoin.arange(10.0).reshape(5, 2)
    assert chunk_vmap(f, chunks=3)(x).tolist() == x.sum(1).tolist() and len(seen) == 3
    with pytest.raises(ValueError, match="chunks is 0"):
        chunk_vmap(f, chunks=0)


@pytest.mark.parametrize(
    "write",
    [lambda x, y: x.clamp_(y), lambda x, y: x.masked_fill_(y > 0, 1.0), lambda x, y: x.lerp_(y, 0.5), lambda x, y: adjoin.mul(x, y, out=x)],
)  # fmt: skip
def test_a_refused_write_leaves_what_was_to_be_written(write):
    for _ in range(20):
        x = adjoin.ones(5)
        with pytest.raises(NotImplementedError, match="all samples share is written in place"):
            vmap(write, (None, 0))(x, adjoin.randn(2, 5))
        assert x.tolist() == [1, 1, 1, 1, 1] and (x + 1).sum() == 10


def test_samples_of_all_parts_draw_the_same():
    x = adjoin.zeros(5, 3)
    adjoin.manual_seed(4)
    whole = vmap(lambda x: x + adjoin.rand(3), randomness="same")(x)
    adjoin.manual_seed(4)
    parts = vmap(lambda x: x + adjoin.rand(3), randomness="same", chunk_size=2)(x)
    assert adjoin.equal(parts, whole) and adjoin.equal(whole[0], whole[4])
    after = adjoin.rand(3)
    adjoin.manual_seed(4)
    adjoin.rand(3)
    assert adjoin.equal(after, adjoin.rand(3))


def test_one_dimension_in_a_tuple_does_for_one_result():
    x = adjoin.arange(6.0).reshape(2, 3)
    assert adjoin.equal(vmap(lambda x: x * 2, out_dims=(1,))(x), (x * 2).T)
    assert adjoin.equal(vmap(lambda x: (x,), out_dims=(1,))(x)[0], x.T)
    with pytest.raises(ValueError, match="structure"):
        vmap(lambda x: x, out_dims=(1, 0))(x)
