"""tests/python/toplevel/testing_test.py: assert_close and make_tensor."""

import adjoin
import numpy as np
import pytest
from adjoin.testing import FileCheck, assert_close, make_tensor

CLOSE = [
    (adjoin.ones(3), adjoin.ones(3) * (1 + 1e-7)),
    (1.0, 1.0 + 1e-9),
    ([1, {"a": adjoin.ones(1)}], [1, {"a": adjoin.ones(1)}]),
    (adjoin.tensor([float("inf")]), adjoin.tensor([float("inf")])),
    (np.ones(2), np.ones(2)),
    (adjoin.zeros(0), adjoin.zeros(0)),
    (adjoin.tensor([1 + 2j]), adjoin.tensor([1 + 2j])),
]


@pytest.mark.parametrize("pair", CLOSE, ids=str)
def test_close(pair):
    assert_close(*pair)


APART = [
    (adjoin.ones(3), adjoin.tensor([1.0, 2.0, 3.0]), r"Mismatched elements: 2 / 3 \(66.7%\)"),
    (adjoin.ones(3), adjoin.tensor([1.0, 2.0, 3.0]), r"absolute difference: 2.0 at index \(2,\)"),
    (adjoin.ones(2), adjoin.ones(3), "The values for attribute 'shape' do not match"),
    (adjoin.ones(2), adjoin.ones(2).double(), "The values for attribute 'dtype' do not match"),
    (1.0, 2.0, "Expected 2.0 but got 1.0"),
    ([1.0], [1.0, 2.0], "The length of the sequences mismatch: 1 != 2"),
    ({"a": 1}, {"b": 1}, r"Missing keys in the actual mapping: \['b'\]"),
    ({"a": [1, 2]}, {"a": [1, 3]}, r"The failure occurred for item \['a'\]\[1\]"),
    (adjoin.tensor([1, 2]), adjoin.tensor([1, 3]), "Tensor-likes are not equal!"),
    (adjoin.tensor([float("nan")]), adjoin.tensor([float("nan")]), "not close"),
    (adjoin.tensor([float("inf")]), adjoin.tensor([1.0]), "not close"),
]


@pytest.mark.parametrize("actual, expected, message", APART, ids=lambda v: str(v)[:20])
def test_apart(actual, expected, message):
    with pytest.raises(AssertionError, match=message):
        assert_close(actual, expected)


def test_settings():
    assert_close(adjoin.ones(1), adjoin.tensor([1.5]), rtol=0, atol=0.6)
    assert_close(adjoin.tensor([float("nan")]), adjoin.tensor([float("nan")]), equal_nan=True)
    assert_close(adjoin.ones(1), adjoin.ones(1).double(), check_dtype=False)
    with pytest.raises(ValueError, match="must be either specified or omitted, but got no atol"):
        assert_close(1.0, 1.0, rtol=1)
    with pytest.raises(AssertionError, match="^mine$"):
        assert_close(1.0, 2.0, msg="mine")
    with pytest.raises(AssertionError, match="^mine: Scalars"):
        assert_close(1.0, 2.0, msg=lambda text: "mine: " + text)
    with pytest.raises(TypeError, match="No comparison pair"):
        assert_close("a", adjoin.ones(1))


@pytest.mark.parametrize("name", ["bool", "uint8", "int8", "int64", "float16", "bfloat16", "float32",
                                  "float64", "complex64"])  # fmt: skip
def test_make_tensor(name):
    dtype = getattr(adjoin, name)
    plain = make_tensor((3, 4), dtype=dtype, device="cpu")
    assert plain.shape == (3, 4) and plain.dtype == dtype and plain.is_contiguous()
    spread = make_tensor(3, 4, dtype=dtype, device="cpu", noncontiguous=True, exclude_zero=True)
    assert not spread.is_contiguous() and not bool((spread == 0).any())
    if dtype.is_floating_point:
        narrow = make_tensor(50, dtype=dtype, device="cpu", low=2, high=3, requires_grad=True)
        assert narrow.requires_grad and 2 <= narrow.min().item() <= narrow.max().item() <= 3


def test_make_tensor_refuses():
    with pytest.raises(ValueError, match="not supported for boolean and integral"):
        make_tensor(2, dtype=adjoin.int64, device="cpu", requires_grad=True)
    with pytest.raises(ValueError, match="low has to be below high"):
        make_tensor(2, dtype=adjoin.float32, device="cpu", low=3, high=2)


# Pieces of a text

HOLDS = {
    "in order": (lambda c: c.check("a").check("b"), "x a y b"),
    "the next line": (lambda c: c.check("a").check_next("b"), "a\nxb"),
    "the same line": (lambda c: c.check("a").check_same("b"), "a b\n"),
    "not between": (lambda c: c.check("a").check_not("c").check("b"), "a b c"),
    "not after": (lambda c: c.check("a").check_not("c"), "c a b"),
    "so often": (lambda c: c.check_count("a", 2), "a a a"),
    "exactly so often": (lambda c: c.check_count("a", 2, exactly=True), "a a b"),
    "so often before the next": (lambda c: c.check_count("a", 1, exactly=True).check("b"), "a b a"),
    "in any order": (lambda c: c.check_dag("b").check_dag("a").check("c"), "a b c"),
    "a pattern": (lambda c: c.check_regex(r"a+\d").check("b"), "caa1b"),
    "highlighted": (lambda c: c.check_source_highlighted("foo"), "x = foo(y)\n    ~~~ <--- HERE"),
}
FAILS = {
    "absent": (lambda c: c.check("x"), "a", 'Expected to find "x" but did not find it'),
    "the wrong order": (lambda c: c.check("a").check("b"), "b a", 'find "b"'),
    "two lines further": (lambda c: c.check("a").check_next("b"), "a\n\nb", "on the next line, it is 2 lines further"),
    "another line": (lambda c: c.check("a").check_same("b"), "a\nb", "on the same line, it is 1 lines further"),
    "between": (lambda c: c.check("a").check_not("c").check("b"), "a c b", 'Expected to not find "c"'),
    "after": (lambda c: c.check("a").check_not("c"), "a c", 'Expected to not find "c"'),
    "too seldom": (lambda c: c.check_count("a", 3), "a a", 'find "a"'),
    "too often": (lambda c: c.check_count("a", 2, exactly=True), "a a a", 'not find "a"'),
    "no such pattern": (lambda c: c.check_regex("z+"), "a", "CHECK-REGEX: z"),
    "before a group": (lambda c: c.check("c").check_dag("b").check_dag("a"), "a c b", 'find "a"'),
    "not highlighted": (lambda c: c.check_source_highlighted("foo"), "x = foo(y)\n~~~", "highlighted but it is not"),
}


@pytest.mark.parametrize("name", HOLDS)
def test_pieces_that_are_there(name):
    rules, text = HOLDS[name]
    check = rules(FileCheck())
    check.run(text)
    check.run(text)  # it keeps nothing


@pytest.mark.parametrize("name", FAILS)
def test_pieces_that_are_not(name):
    rules, text, message = FAILS[name]
    with pytest.raises(RuntimeError, match=message):
        rules(FileCheck()).run(text)
