"""tests/compat/beside.py: moving tensors and weights between Adjoin and PyTorch, for tests that
compare the two."""

import adjoin
import numpy as np
import torch


def ours(tensor):
    """An Adjoin copy of a PyTorch tensor."""
    return adjoin.tensor(tensor.detach().numpy().tolist(), dtype=getattr(adjoin, dtype_name(tensor))).reshape(
        tuple(tensor.shape)
    )


def dtype_name(tensor):
    return str(tensor.dtype).rpartition(".")[2]


def theirs(tensor):
    """A PyTorch copy of an Adjoin tensor."""
    return torch.from_numpy(np.array(tensor.detach().numpy()))


def copy_weights(source, target):
    """Gives an Adjoin module the weights and buffers of a PyTorch one of the same layout."""
    state = {name: ours(tensor) for name, tensor in source.state_dict().items()}
    assert list(state) == list(target.state_dict())
    target.load_state_dict(state)


def near(actual, expected, tolerance=1e-5):
    """Fails unless an Adjoin and a PyTorch tensor (or numbers) hold nearly the same."""
    actual = actual.detach().numpy() if isinstance(actual, adjoin.Tensor) else np.asarray(actual)
    expected = expected.detach().numpy() if isinstance(expected, torch.Tensor) else np.asarray(expected)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def optimizers(name, settings, values):
    """PyTorch's and Adjoin's parameters with those values, each with its optimizer of that name."""
    made = []
    for lib, make in ((torch, lambda t: t.clone()), (adjoin, ours)):
        params = [lib.nn.Parameter(make(v)) for v in values]
        made.append((params, getattr(lib.optim, name)(params, **{"lr": 0.05, **settings})))
    return made


def step_both(pairs, grads):
    """A step of both with those gradients."""
    for (params, optimizer), make in zip(pairs, (lambda t: t.clone(), ours), strict=True):
        for p, g in zip(params, grads, strict=True):
            p.grad = None if g is None else make(g)
        optimizer.step()
