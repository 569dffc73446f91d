"""tests/python/graph/script_types_test.py: what cannot be right is refused when a function is scripted, at its line; what can be is not."""

import enum
import math
import numbers
from collections import OrderedDict
from typing import Any, Dict, List, NamedTuple, Tuple  # noqa: UP035

import adjoin
import pytest
from adjoin import Tensor, jit, nn

Listed = List  # noqa: UP006


class Pair(NamedTuple):
    one: int
    two: Tensor


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Point:
    def __init__(self, x: int):
        self.x = x
        self.name = "p"

    def moved(self, by: int) -> int:
        return self.x + by


def takes_int(n: int) -> int:
    return n + 1


def gives_other(x: Tensor) -> int:
    return x + 1


def gives_sometimes(n: int) -> int:
    if n > 1:
        return 1


def gives_two(n: int):
    if n > 1:
        return 1
    return "one"


def maybe_computed(x: Tensor | None):
    return x + 1


def maybe_called(x: Tensor | None):
    return x.sum()


def maybe_given(x: Tensor, y: Tensor | None):
    return adjoin.matmul(x, y)


def maybe_in_a_loop(x: Tensor, y: List[int] | None):  # noqa: UP006
    for i in y:
        x = x + i
    return x


def no_attribute(x: Tensor):
    return x.nothing


def no_method(n: int):
    return n.append(1)


def text_and_number(n: int):
    return "a" + n


def one_way(x: Tensor):
    if x.sum() > 0:
        y = 1
    return y


def other_type(x: Tensor):
    y = 1
    if x.sum() > 0:
        y = "one"
    return y


def two_types(x: Tensor):
    if x.sum() > 0:
        y = 1
    else:
        y = "one"
    return y


def annotated_twice(n: int):
    a: int = n
    a: str = "b"
    return a


def wrong_annotation():
    a: int = "b"
    return a


def bare_list(x: Listed):
    return x


def bad_key(x: Dict[List[int], int]):  # noqa: UP006
    return x


def wrong_argument():
    return takes_int("a")


def too_many(n: int):
    return takes_int(n, n)


def wrong_put():
    a: List[int] = []  # noqa: UP006
    a.append("b")
    return a


def wrong_entry():
    a: Dict[str, int] = {}  # noqa: UP006
    a[1] = 2
    return a


def beyond():
    a = (1, 2)
    return a[2]


def item_of_tuple():
    a = (1, 2)
    a[0] = 3
    return a


def apart(x: Tuple[int, int]):  # noqa: UP006
    a, b, c = x
    return a + b + c


def no_field(p: Pair):
    return p.three


def wrong_field(x: Tensor):
    return Pair("a", x)


def no_member(c: Colour):
    return c.nothing


def no_such_attribute(p: Point):
    return p.y


def wrong_method(p: Point):
    return p.moved("a")


def wrong_operand(x: Tensor):
    return adjoin.sum("x")


def stacked(x: Tensor):
    return adjoin.stack(x)


def deleted(n: int):
    a = n
    del a
    return a  # noqa: F821


def commented(x, n):
    # type: (Tensor, int) -> str
    return x


def not_iterable(n: int):
    for i in n:
        print(i)


def decided_by_enum(c: Colour):
    return 1 if c else 2


REFUSED = [
    (gives_other, 1, "gives a int, and a Tensor"), (gives_sometimes, 0, "ends without return"), (gives_two, 3, "another type"),
    (maybe_computed, 1, "may be None.*is not None"), (maybe_called, 1, "may be None"), (maybe_given, 1, "Optional.*is not None"),
    (maybe_in_a_loop, 1, "Optional.*is not None"), (no_attribute, 1, "no attribute 'nothing'"), (no_method, 1, "no method 'append'"),
    (text_and_number, 1, "no str and int"), (one_way, 3, "no value where the condition does not hold"),
    (other_type, 3, "is a int, and a str"), (two_types, 5, "a int on one way and a str"), (annotated_twice, 2, "has a type already"),
    (wrong_annotation, 1, "is a int, and a str"), (bare_list, 0, "List.*what is inside"), (bad_key, 0, "keys of a Dict"),
    (wrong_argument, 1, "'n' is a int, and a str"), (too_many, 1, "too many"), (wrong_put, 2, "a str is put into"),
    (wrong_entry, 2, "a int with a int is put into"), (beyond, 2, "item 2 of a tuple of 2"), (item_of_tuple, 2, "make a new one"),
    (apart, 1, "a tuple of 2 becomes 3"), (no_field, 1, "no field 'three'"), (wrong_field, 1, "'one' is a int, and a str"),
    (no_member, 1, "no attribute 'nothing'"), (no_such_attribute, 1, "no attribute 'y'"), (wrong_method, 1, "'by' is a int"),
    (wrong_operand, 1, "is a str, and a Tensor is wanted"), (stacked, 1, "is a Tensor, and a Tensor.. is wanted"),
    (deleted, 3, "was deleted"), (commented, 2, "gives a str, and a Tensor"), (not_iterable, 1, "walks over a int"),
    (decided_by_enum, 1, "decides nothing"),
]  # fmt: skip


@pytest.mark.parametrize("at", range(len(REFUSED)), ids=[f.__name__ for f, _, _ in REFUSED])
def test_what_cannot_be_right_is_refused_at_its_line(at):
    f, line, what = REFUSED[at]
    line += f.__code__.co_firstlineno
    with pytest.raises(RuntimeError, match=rf"script_types_test.py:{line} in {f.__name__}: .*{what}"):
        jit.script(f)


def refined(x: Tensor | None, n: int | None, y: Tensor):
    if x is None:
        return y
    if n is not None and n > 1:
        x = x * n
    k = n if n is not None else 3
    return x + k


def refined_by_assert(x: Tensor | None):
    assert x is not None
    return x * 2


def of_a_union(x: int | str | Tensor):
    if isinstance(x, int):
        return x + 1
    elif isinstance(x, str):
        return len(x)
    else:
        return x.dim()


def one_of_two(n: int):
    if n > 1:
        a: int | None = 1
    else:
        a = None
    return a


def anything(x: Any):
    return [x, 1, "b"]


def later(n: int):
    last = None
    for i in range(n):
        if last is not None:
            last = last + i
        else:
            last = i
    return last


def walked(n: int):
    total = 0
    for i in range(n):
        total += i
    for k, (a, _) in enumerate([(1, 2), (3, 4)]):
        total += k * a
    return total + i + a


def known_by_annotation(n: int) -> str:
    if n % 2:
        y: str | int = "one"
    else:
        y: str | int = n
    if isinstance(y, str):
        return y
    else:
        return "none"


def given_a_tuple(x: Tensor):
    return sized((1, 2)), x


def sized(sizes: list[int] | None = None):
    return 0 if sizes is None else len(sizes)


def until(n: int) -> int:
    while True:
        n -= 2
        if n < 3:
            return n


def raises(n: int) -> int:
    if n > 0:
        return n
    raise ValueError("too small")


def pairs(x: Dict[str, Tensor]):  # noqa: UP006
    return {k: v.sum() for k, v in x.items() if v.dim() > 0}


def of_parts(p: Pair, c: Colour, q: Point):
    return p.one + q.moved(2), p.two.sum(), c == Colour.RED, c.value


def lists(x: List[Tensor], n: List[int]):  # noqa: UP006
    out = []
    for i, (t, k) in enumerate(zip(x, n)):
        out.append((t + i).sum() * k)
    return out, x[1:] + x[:1], [k for k in n if k > 1]


def of_many(x: Tensor, y: Tensor):
    grid = adjoin.meshgrid(x[0], y[0], indexing="ij")
    return (
        adjoin.einsum("i j, i k -> j k", x, y), adjoin.block_diag(x, y), adjoin.cartesian_prod(x[0], y[0]),
        adjoin.einsum("i j, i k -> j k", [x, y]), adjoin.chain_matmul(x, y.t(), x), grid[0] + grid[1],
    )  # fmt: skip


def of_a_number_or_several(size: List[int], x: Tensor, fill: List[float] | None = None):  # noqa: UP006
    if isinstance(size, numbers.Number):
        size = (int(size), int(size))
    elif isinstance(size, (tuple, list)) and len(size) == 1:
        size = (size[0], size[0])
    if fill is None:
        fill = [0.5 for _ in size]
    if len(fill) != len(size):
        fill = [fill[0]] * len(size)
    return adjoin.zeros((1, 2) + size).shape, size, fill, (x, x) * len(size)


def becomes_another(x: Tensor):
    parts: List[List[Tensor]] = []  # noqa: UP006
    for _ in range(2):
        parts.append([t for t in [x, x + 1]])
    parts = [adjoin.cat(p) for p in parts]
    return parts


def asks_what_it_is(x, fill: int):
    if isinstance(x, adjoin.Tensor):
        fill = [float(fill)] * 2
    return fill


def begun_where_none(x: Tensor, children: List[Tensor] | None = None):  # noqa: UP006
    if children is None:
        children = []
    if x.sum() > 0:
        children.append(x)
    return children


def ordered(x: Tensor):
    found: Dict[str, Tensor] = OrderedDict()  # noqa: UP006
    found["b"], found["a"] = x, x + 1
    return list(found.keys()), math.radians(x.sum().item()), math.degrees(0.25), adjoin.get_default_dtype()


def views_in_place(x: Tensor):
    y = x + 0
    same = y
    y.unsqueeze_(0).transpose_(0, 2)
    z = (x * 2).t_().unsqueeze_(-1)
    return same, z, z.squeeze_().shape


def commented_well(x, n):
    # type: (Tensor, Optional[int]) -> List[Tensor]
    out = []  # type: List[Tensor]
    if n is not None:
        out.append(x + n)
    return out


x = adjoin.ones(2, 3)
WELL = [
    (refined, (x, 2, x)), (refined, (None, 2, x)), (refined, (x, None, x)), (refined_by_assert, (x,)), (of_a_union, (x,)),
    (of_a_union, ("abc",)), (one_of_two, (1,)), (anything, (x,)), (later, (4,)), (walked, (3,)), (known_by_annotation, (1,)), (known_by_annotation, (2,)), (given_a_tuple, (x,)), (until, (9,)), (raises, (2,)),
    (pairs, ({"a": x},)), (of_parts, (Pair(1, x), Colour.RED, Point(4))), (lists, ([x, x + 1], [1, 2])), (commented_well, (x, 3)), (of_many, (x, x + 1)), (ordered, (x,)), (views_in_place, (x,)),
    (becomes_another, (x,)), (begun_where_none, (x,)), (begun_where_none, (x, [x])), (asks_what_it_is, (x, 3)),
]  # fmt: skip


def told(value):
    return adjoin._C.script_text(value)


@pytest.mark.parametrize("at", range(len(WELL)), ids=[f.__name__ for f, _ in WELL])
def test_what_is_right_is_let_through(at):
    f, given = WELL[at]
    assert told(jit.script(f)(*given)) == told(f(*given))


def test_lists_that_were_tuples_and_numbers_are_told_apart_while_compiling():
    f = jit.script(of_a_number_or_several)
    assert [list(part) for part in f([4], x)[:3]] == [[1, 2, 4, 4], [4, 4], [0.5, 0.5]]
    assert [list(part) for part in f([4, 5], x, [0.1])[:3]] == [[1, 2, 4, 5], [4, 5], [0.1, 0.1]]


def test_a_shape_is_not_changed_in_place_where_a_gradient_is_wanted():
    with pytest.raises(RuntimeError, match=r"unsqueeze_: a tensor that requires grad keeps its shape"):
        jit.script(views_in_place)(adjoin.ones(2, 3, requires_grad=True))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer, self.bias, self.width = nn.Linear(3, 3), None, 3

    def forward(self, x: Tensor):
        y = self.layer(x)
        if self.bias is not None:
            y = y + self.bias.nothing
        return y * self.width


def test_modules_are_looked_at():
    assert jit.script(Net())(x).shape == (2, 3)

    class Missing(Net):
        def forward(self, x: Tensor):
            return self.absent(x)

    class Unknown(Net):
        def forward(self, x: Tensor):
            return x + self.absent

    class Typed(Net):
        def forward(self, x: Tensor) -> int:
            return self.width + "a"

    class Wrong(Net):
        def forward(self, x: Tensor):
            return self.helped(x, 1, 2)

        def helped(self, x: Tensor, n: int):
            return x + n

    for net, what in (
        (Missing, "no method 'absent'"),
        (Unknown, "no attribute 'absent'"),
        (Typed, "int and str"),
        (Wrong, "too many"),
    ):
        with pytest.raises(RuntimeError, match=what):
            jit.script(net())


def test_classes_are_looked_at_when_they_are_given():
    class Bad:
        def __init__(self, n: int):
            self.n = n

        def read(self):
            return self.absent

    with pytest.raises(RuntimeError, match="no attribute 'absent'"):
        jit.script(Bad)
    assert jit.script(Point) is Point
