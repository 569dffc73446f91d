"""tests/python/tensor/refusals_test.py: calls that PyTorch refuses, and what is told of each, word for word as in refusals.txt.

`python tests/python/tensor/refusals_test.py --write` renews refusals.txt; read its difference: a message says what was asked, what was found, what to do.
Each call stands on a line of its own below the class of its mistake; `x` is [2, 3] of float32, `k` [3] of int64, `b` [2, 3] of bool, `z` [2, 3]
of complex64, `m` [3, 3] of float32, `v` [3] of float32, `c` [1, 2, 4, 4] of float32.
"""

import sys
import warnings
from pathlib import Path

import adjoin
import pytest
from adjoin.nn import functional as F

GOLDEN = Path(__file__).with_name("refusals.txt")
CALLS = Path(__file__).with_name("refusals_calls.txt")


def names():
    made = adjoin.arange(6.0).reshape(2, 3)
    return {
        "torch": adjoin, "F": adjoin.nn.functional, "x": made, "k": adjoin.arange(3), "b": made > 2,
        "z": adjoin.complex(made, made), "m": adjoin.arange(9.0).reshape(3, 3) + adjoin.eye(3), "v": made[0].clone(),
        "c": adjoin.arange(32.0).reshape(1, 2, 4, 4),
    }  # fmt: skip


def told(call):
    """The class and the words of the error, or what was answered."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(call, names())
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return "ANSWERED"


def calls():
    """Every line that is no heading."""
    return [line for line in CALLS.read_text().splitlines() if line and not line.startswith("#")]


def golden():
    lines = [line for line in GOLDEN.read_text().splitlines() if line and not line.startswith("#")]
    return dict(zip(lines[::2], lines[1::2], strict=True))


WORDS = golden() if GOLDEN.exists() else {}


def test_each_call_stands_once_and_the_file_has_all_of_them():
    assert len(set(calls())) == len(calls()) >= 200
    assert list(WORDS) == calls()


@pytest.mark.parametrize("call", calls())
def test_what_is_told(call):
    assert told(call) == WORDS[call] != "ANSWERED", (
        "if the new message is better: python tests/python/tensor/refusals_test.py --write"
    )


if __name__ == "__main__":
    if sys.argv[1:] != ["--write"]:
        sys.exit("python tests/python/tensor/refusals_test.py --write")
    lines = ["# What is told of the calls in refusals_calls.txt, written by refusals_test.py --write."]
    for line in CALLS.read_text().splitlines():
        lines += [line] if not line or line.startswith("#") else [line, told(line)]
    GOLDEN.write_text("\n".join(lines) + "\n")


def test_classes_say_what_was_missing():
    x, complexes = adjoin.ones(2, 3), adjoin.ones(2, 3, dtype=adjoin.complex64)
    lacking = (
        lambda: complexes.sort(), lambda: complexes.mode(), lambda: complexes.clamp(0, 1), lambda: adjoin.bincount(x[0]),
        lambda: adjoin.repeat_interleave(x, x[:, 0], 0), lambda: adjoin.view_as_real(x), lambda: adjoin.fft.rfft(complexes),
        lambda: adjoin.istft(x, 4), lambda: F.pad(x, (1, 1), mode="what"),
    )  # fmt: skip
    for call in lacking:
        with pytest.raises(NotImplementedError):
            call()
    for call in (lambda: x[:0].mode(0), lambda: x[:0].kthvalue(1, 0), lambda: x[:, :0].mode(-1)):
        with pytest.raises(IndexError, match="dimension . without elements"):
            call()
    for call in (lambda: F.nll_loss(x[0], adjoin.tensor([0, 1])), lambda: F.local_response_norm(x, 2)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(RuntimeError) as caught:  # an index has one dtype: no kernel is missing
        x.gather(0, x)
    assert not isinstance(caught.value, NotImplementedError)
