"""tests/python/autograd/trees_test.py: containers of every kind through vmap, grad, jvp, vjp and Jacobians."""

import collections

import adjoin
import pytest
from adjoin._functorch import eager_transforms
from adjoin.func import grad, grad_and_value, jacfwd, jacrev, jvp, vjp, vmap
from adjoin.utils import _pytree

Pair = collections.namedtuple("Pair", "a b")


class Box:
    """A class that a program registers."""

    def __init__(self, inside, label):
        self.inside, self.label = inside, label


@pytest.fixture(autouse=True, scope="module")
def registered():
    _pytree.register_pytree_node(Box, lambda b: ([b.inside], b.label), lambda parts, label: Box(*parts, label))
    yield
    _pytree._deregister_pytree_node(Box)


MAKERS = {
    "ordered": lambda t: collections.OrderedDict(b=t.sin(), a=t * 2),
    "default": lambda t: collections.defaultdict(list, {"b": t.sin(), "a": t * 2}),
    "named": lambda t: Pair(t.sin(), t * 2),
    "deque": lambda t: collections.deque([t.sin(), t * 2], maxlen=5),
    "own": lambda t: Box((t.sin(), [t * 2]), "label"),
}


def leaves(tree):
    return _pytree.tree_leaves(tree)


def told(tree):
    """What of a container is no tensor."""
    return (
        type(tree),
        getattr(tree, "label", None),
        getattr(tree, "maxlen", None),
        getattr(tree, "default_factory", None),
        list(tree) if isinstance(tree, dict) else None,
    )


def same(a, b):
    return len(a) == len(b) and all(adjoin.allclose(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("kind", MAKERS)
def test_results_keep_their_containers(kind):
    make = MAKERS[kind]
    x = adjoin.linspace(-1, 1, 6).view(2, 3)
    wanted = make(x)
    mapped = vmap(make)(x)
    assert told(mapped) == told(wanted) and same(leaves(mapped), leaves(wanted))
    value, moved = jvp(make, (x,), (adjoin.ones_like(x),))
    assert told(value) == told(moved) == told(wanted)
    assert same(leaves(value), leaves(wanted)) and same(leaves(moved), [x.cos(), x * 0 + 2])
    value, pull = vjp(make, x)
    assert told(value) == told(wanted) and same(pull(wanted), [x.sin() * x.cos() + 4 * x])
    row = x[0]
    for jacobian in (jacrev, jacfwd):
        rows = jacobian(make)(row)
        assert told(rows) == told(wanted) and same(leaves(rows), [row.cos().diag(), adjoin.eye(3) * 2])
    made, (_, aux) = grad_and_value(lambda t: (t.sum(), make(t)), has_aux=True)(row)
    assert made.tolist() == [1, 1, 1] and told(aux) == told(wanted) and same(leaves(aux), leaves(make(row)))


@pytest.mark.parametrize("kind", MAKERS)
def test_arguments_come_in_containers(kind):
    x = adjoin.linspace(-1, 1, 6).view(2, 3)
    given = MAKERS[kind](x)
    made = grad(lambda tree: sum((t * t).sum() for t in leaves(tree)))(given)
    assert told(made) == told(given) and same(leaves(made), [2 * t for t in leaves(given)])
    seen = []

    def total(tree):
        seen.append(told(tree))
        return sum(t.sum() for t in leaves(tree))

    assert same([vmap(total)(given)], [sum(t.sum(1) for t in leaves(given))]) and seen == [told(given)]
    where = MAKERS[kind](adjoin.ones(1))  # a container of the same kind says the dimension of each
    where = _pytree.tree_map(lambda _: 1, where)
    assert same([vmap(total, in_dims=(where,))(given)], [sum(t.sum(0) for t in leaves(given))])
    there = vmap(lambda tree: tree, out_dims=where)(given)
    assert told(there) == told(given) and same(leaves(there), [t.t() for t in leaves(given)])


def test_what_comes_along_is_made_of_tensors():
    x = adjoin.ones(3)
    for aux in (1, "a word", None, {"a": [x, 2.0]}):
        for ask in (
            lambda: grad(lambda t: (t.sum(), aux), has_aux=True)(x),
            lambda: vjp(lambda t: (t, aux), x, has_aux=True),
            lambda: jvp(lambda t: (t, aux), (x,), (x,), has_aux=True),
            lambda: jacrev(lambda t: (t, aux), has_aux=True)(x),
            lambda: jacfwd(lambda t: (t, aux), has_aux=True)(x),
        ):
            with pytest.raises(RuntimeError, match="Expected tensors, got unsupported type"):
                ask()


def test_a_container_that_takes_itself_apart_wrongly():
    class Odd:
        pass

    _pytree.register_pytree_node(Odd, lambda odd: [1, 2, 3], lambda parts, context: Odd())
    try:
        for ask in (lambda: grad(lambda odd: adjoin.ones(()))(Odd()), lambda: vmap(lambda odd: odd)(Odd())):
            with pytest.raises((TypeError, ValueError), match="children|unpack"):
                ask()
    finally:
        _pytree._deregister_pytree_node(Odd)


def test_derivatives_stand_where_libraries_look():
    assert eager_transforms.jvp is jvp and eager_transforms.grad_and_value is grad_and_value
    args = ((1, 2), 3, [4])
    assert eager_transforms._slice_argnums(args, (0, -1)) == ((1, 2), [4])
    assert eager_transforms._slice_argnums(args, -1) == ([4],)
    assert eager_transforms._slice_argnums(args, 1, as_tuple=False) == 3
    with pytest.raises(RuntimeError, match="unique"):
        eager_transforms._slice_argnums(args, (0, 0))
