"""tests/python/tensor/flags_test.py: a flag that is neither true nor false is an error of the caller, never of the library."""

import adjoin
import pytest
from adjoin import _C


class Neither:
    def __bool__(self):
        raise ValueError("neither true nor false")


def leaf():
    return adjoin.ones(2, requires_grad=True)


def root():
    return (leaf() * leaf()).sum()


def gradient(**flag):
    x = leaf()
    return adjoin.autograd.grad((x * x).sum(), x, **flag)


CALLS = {
    "to, non_blocking": lambda flag: leaf().to(adjoin.float64, non_blocking=flag),
    "to, copy": lambda flag: leaf().to(adjoin.float64, copy=flag),
    "cpu": lambda flag: leaf().cpu(non_blocking=flag),
    "requires_grad_": lambda flag: leaf().requires_grad_(flag),
    "backward, retain_graph": lambda flag: root().backward(retain_graph=flag),
    "backward, create_graph": lambda flag: root().backward(create_graph=flag),
    "autograd.backward": lambda flag: adjoin.autograd.backward(root(), retain_graph=flag),
    "grad, create_graph": lambda flag: gradient(create_graph=flag),
    "grad, retain_graph": lambda flag: gradient(retain_graph=flag),
    "grad, allow_unused": lambda flag: gradient(allow_unused=flag),
    "grad, materialize_grads": lambda flag: gradient(materialize_grads=flag),
    "Parameter": lambda flag: adjoin.nn.Parameter(adjoin.ones(2), flag),
    "set_grad_enabled": lambda flag: adjoin.set_grad_enabled(flag),
    "numpy": lambda flag: leaf().numpy(force=flag),
    "__dlpack__": lambda flag: adjoin.ones(2).__dlpack__(copy=flag),
    "from_dlpack": lambda flag: adjoin.from_dlpack(adjoin.ones(2), copy=flag),
    "tensor": lambda flag: adjoin.tensor([1.0], requires_grad=flag),
    "asarray": lambda flag: adjoin.asarray([1.0], copy=flag),
    "ones": lambda flag: adjoin.ones(2, requires_grad=flag),
    "relu": lambda flag: adjoin.nn.functional.relu(adjoin.ones(2), inplace=flag),
    "set_deterministic": lambda flag: _C.set_deterministic(flag),
}


@pytest.mark.parametrize("call", CALLS)
def test_neither_true_nor_false(call):
    for flag, kind in ((Neither(), ValueError), (adjoin.ones(2), RuntimeError)):
        with pytest.raises(
            (kind, TypeError), match="neither true nor false|is ambiguous|must be bool|not Neither|not Tensor|wanted"
        ):
            CALLS[call](flag)
    assert adjoin.is_grad_enabled()
